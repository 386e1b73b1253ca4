"""musictx inspect: show a MIDI file's tracks, tokens or broken rules, what a store has, or what a bundle says."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from musictx.analysis.facts import bundle_facts, midi_facts, rules_facts, store_facts
from musictx.commands import print_table
from musictx.config.command import Command
from musictx.config.train import TokenizerConfig
from musictx.data.prepare import print_summary
from musictx.data.store import Store, beside_store, is_store
from musictx.errors import ConfigError, UserError
from musictx.files import all_printable, check_new, check_suffix, only_new
from musictx.model.packaged import BUNDLES, SEEDS, bundle_path, is_run, seed_path
from musictx.music.repairs import say_repairs
from musictx.setting import setting
from musictx.terminal import say, shows_all


@dataclass
class InspectConfig:
    """musictx inspect: show a MIDI file's tracks and tokens, or the rules of four voices that it breaks. Or what a
    store has, or what a bundle says."""

    midi: str | None = setting(
        None,
        "a MIDI file or a score; or elise, gymnopedie, chorale. A store, a run's folder and a bundle are known as such "
        "without store= and bundle=",
        path=True,
    )
    store: str | None = setting(None, "the folder of a token store", path=True)
    rules: bool = setting(False, "of a MIDI file in four voices: where it breaks the rules of part-writing")
    beside: str | None = setting(
        None, "with rules=true: a store of chorales; how often its training pieces break them", path=True
    )
    bundle: str | None = setting(
        None, "piano, chorale, harmoniser, a file that `musictx train` made or a run's folder", path=True
    )
    out: str | None = setting(
        None, "of a store: the picture, a .png file; null: STORE-histograms.png beside it", path=True
    )
    overwrite: bool = setting(False, "of a store: replace an existing picture")
    json: bool = setting(False, "everything as JSON, for programs")
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)


WIDEST = 40  # letters of a track's name, so that a line of the table stays a line


def print_midi(facts: dict[str, Any]) -> None:
    say(f"{facts['file']}: {facts['seconds']:.2f} s, {facts['quarters_per_minute']:g} quarters a minute")
    for remark in say_repairs(Counter(facts["discarded"])):
        say(remark)
    rows = []
    for track in facts["tracks"]:
        pitches = f"{track['lowest']} … {track['highest']}" if track["notes"] else ""
        pedal = f"{track['pedal_presses']}" + (f", {n} not heard" if (n := track["pedal_forgotten"]) else "")
        name = track["name"] if len(track["name"]) <= WIDEST else f"{track['name'][: WIDEST - 1]}…"
        rows.append((track["part"], name, track["program"], track["notes"], pitches, pedal))
    print_table(["part", "track", "program", "notes", "pitches", "pedal presses"], rows, right=4)
    if facts["tokens"] is None:
        say(f"cannot be written in {facts['tokenizer']} tokens: {facts['why_not']}")
        return
    say(f"{facts['tokens']:,} {facts['tokenizer']} tokens: {', '.join(facts['first_tokens'])} …")
    back = facts["round_trip"]
    say(
        f"and back: {back['notes_back']:,} of {back['notes']:,} notes, onsets within "
        f"{back['largest_onset_error_s'] * 1000:.1f} ms, velocity off by {back['mean_velocity_error']:.2f} on average"
    )


VOICES = {
    "tracks": "each track is a voice",
    "by height": "voices go by height, so none crosses another",
    "tracks and height": "four tracks of one line are voices; elsewhere voices go by height",
}
SHOWN = 5  # findings of each rule


def print_rules(facts: dict[str, Any]) -> None:
    say(f"{facts['file']}: {facts['beats']:g} beats in four voices; {VOICES[facts['voices']]}")
    rates = {"per 100 beats": "per_100_beats"}
    if facts["beside"]:
        rates[f"in {facts['beside']}"] = "beside_per_100_beats"
    rows = [(r["rule"], r["count"], *(f"{r[rate]:.2f}" for rate in rates.values())) for r in facts["rules"]]
    print_table(["rule", "count", *rates], rows, right=1 + len(rates))
    for rule in facts["rules"]:
        if rule["count"]:
            first = ", ".join(f"{f['bar']}:{f['beat']:g} {f['voices']}" for f in rule["findings"][:SHOWN])
            say(f"{rule['rule']} ({rule['meaning']}), at bar:beat {first}{', …' * (rule['count'] > SHOWN)}")


def print_bundle(facts: dict[str, Any]) -> None:
    say(f"{facts['file']}: trained on {facts['corpus']}, licence {facts['licence']}, by musictx {facts['version']}")
    say(facts["described"])
    say(f"tokens: {facts['tokenizer']} {facts['vocab_fingerprint']}; trained for {facts['objective']['name']}")
    nll = facts["val_nll"]
    say(f"validation: {'not known' if nll is None else f'{nll:.4f} nats a token'}")
    for name, value in facts["notes"].items():
        say(f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")


def print_store(path: Path, facts: dict[str, Any]) -> None:
    print_summary(path, Store(path).manifest)
    say("\n".join([*facts["whole"], f"{path} is sound", f"histograms: {facts['png']}"]))


def by_kind(config: InspectConfig) -> InspectConfig:
    """The config in which a store or a bundle, given as a word alone, has its own setting."""
    if (word := config.midi) is None or config.store is not None or config.bundle is not None:
        return config
    path = Path(word)
    if word in SEEDS:
        return config
    if word in BUNDLES or is_run(path) or (path.suffix.lower() in (".safetensors", ".ckpt") and not path.is_dir()):
        return replace(config, midi=None, bundle=word)
    return replace(config, midi=None, store=word) if is_store(path) else config


def inspect(config: InspectConfig) -> None:
    """Prints facts of one thing. Raises UserError for none or several, MidiError, StoreError, BundleError."""
    config = by_kind(config)
    inputs = [name for name in ("midi", "store", "bundle") if getattr(config, name) is not None]
    if len(inputs) != 1:
        got = " and ".join(f"{name}=" for name in inputs) or "nothing"
        raise UserError(f"got {got}", "give one of midi=, store= and bundle=")
    if config.midi is not None and config.midi not in SEEDS and Path(config.midi).is_dir():
        why = "it is a folder, and neither a store nor a run's"
        raise ConfigError("midi", got=config.midi, why=why, allowed="a MIDI file, a score, a store or a bundle")
    for name, goes_with in (("out", "store"), ("rules", "midi"), ("beside", "rules")):
        if (value := getattr(config, name)) and not getattr(config, goes_with):
            raise ConfigError(name, got=value, why=f"it goes with {goes_with}=", hint="leave it out")
    if config.rules and config.tokenizer.name != "performance":
        name = config.tokenizer.name
        raise ConfigError("tokenizer", got=name, why="the rules count sixteenths, not tokens", hint="leave it out")
    if (merges := config.tokenizer.bpe_vocab) is not None:
        raise ConfigError("bpe_vocab", got=merges, why="musictx prepare learns merges", hint="leave it out")
    show: Callable[[Any], None]
    if config.store is not None:
        path = Path(config.store)
        beside = beside_store(path, "histograms.png")
        if config.out:
            check_suffix("out", config.out, [".png"])
        png = Path(config.out or beside)
        check_new(config.overwrite, png)
        facts, show = store_facts(path, png), partial(print_store, path)
    elif config.rules:
        other = Store(Path(config.beside)) if config.beside is not None else None
        facts, show = rules_facts(seed_path(str(config.midi)), other), print_rules
    elif config.midi is not None:
        facts, show = midi_facts(seed_path(config.midi), config.tokenizer.name), print_midi
    else:
        facts, show = bundle_facts(bundle_path(str(config.bundle))), print_bundle
    if config.json:
        say(json.dumps(all_printable(facts), indent=1, ensure_ascii=not shows_all()))
    else:
        show(facts)


COMMAND = Command("inspect", only_new(inspect), InspectConfig, {"tokenizer": "performance"}, main="midi")
