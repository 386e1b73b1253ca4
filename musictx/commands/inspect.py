"""musictx inspect: show a MIDI file's tracks, tokens or broken rules, what a store has, or what a bundle says."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from musictx.analysis.part_writing_report import rules_report
from musictx.commands import check_new, check_suffix, print_table
from musictx.config.command import Command
from musictx.config.train import TokenizerConfig
from musictx.data.prepare import print_summary
from musictx.data.store import Store, beside_store, verify_split
from musictx.errors import ConfigError, StoreError, TokenError, UserError
from musictx.files import all_printable, only_new
from musictx.model.packaged import bundle_path, seed_path
from musictx.music.read import read_bytes, read_tracks
from musictx.music.repairs import say_repairs
from musictx.music.score import Score
from musictx.setting import setting
from musictx.terminal import say, shows_all
from musictx.tokenizers import Tokenizer, build_tokenizer
from musictx.viz.curves import count_music, plot_histograms


@dataclass
class InspectConfig:
    """musictx inspect: show a MIDI file's tracks and tokens, or the rules of four voices that it breaks. Or what a
    store has, or what a bundle says."""

    midi: str | None = setting(None, "a MIDI file; or elise, gymnopedie, chorale", path=True)
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


FIRST = 24  # tokens that are shown
MOST_PIECES = 2000  # of a large store every n-th piece is counted


def inspect_midi(path: Path, name: str) -> dict[str, Any]:
    """A MIDI file's tracks, and its music as tokens and back. Raises MidiError, ConfigError."""
    tokenizer = build_tokenizer(name)
    tracks = read_tracks(read_bytes(path), path, one_tempo=tokenizer.metrical)
    score = tracks.merge()
    facts: dict[str, Any] = {
        "file": str(path),
        "seconds": round(tracks.merge(drums=True).duration_s, 3),
        "quarters_per_minute": round(60 / tracks.quarter_s, 3),
        "tracks": [
            {
                "part": track.part,
                "name": track.name,
                "program": "drums" if track.is_drums else track.program,
                "notes": len(track.score),
                "lowest": int(track.score.pitch.min()) if len(track.score) else None,
                "highest": int(track.score.pitch.max()) if len(track.score) else None,
                "pedal_presses": track.pedal_presses,
                "pedal_forgotten": track.pedal_forgotten,
            }
            for track in tracks.tracks
        ],
        "discarded": dict(+tracks.repairs),
        "tokenizer": name,
    }
    try:
        ids = tokenizer.encode(score)
    except TokenError as error:
        return facts | {"tokens": None, "why_not": str(error)}
    facts["tokens"] = len(ids)
    facts["first_tokens"] = [tokenizer.vocab.describe(int(i)) for i in ids[:FIRST]]
    facts["round_trip"] = round_trip(score, tokenizer)
    return facts


def round_trip(score: Score, tokenizer: Tokenizer) -> dict[str, float]:
    """What encoding and decoding does to notes: each beside the nearest of its pitch that comes back.

    Notes of one pitch struck in one step of the encoding's clock become one, so fewer may come back.
    """
    back = tokenizer.decode(tokenizer.encode(score), score.quarter_s)
    onset, velocity = [np.zeros(0)], [np.zeros(0)]
    for pitch in np.unique(score.pitch):
        sent, came = (s.select(s.pitch == pitch) for s in (score, back))
        if not len(came):
            continue
        right = np.searchsorted(came.onset_s, sent.onset_s).clip(0, len(came) - 1)
        left = np.maximum(right - 1, 0)
        is_left = sent.onset_s - came.onset_s[left] <= came.onset_s[right] - sent.onset_s
        nearest = np.where(is_left, left, right)
        onset.append(np.abs(came.onset_s[nearest] - sent.onset_s))
        velocity.append(np.abs(came.velocity[nearest].astype(float) - sent.velocity))
    onset_s, loudness = np.concatenate(onset), np.concatenate(velocity)
    return {
        "notes": len(score),
        "notes_back": len(back),
        "largest_onset_error_s": round(float(onset_s.max(initial=0)), 5),
        "mean_velocity_error": round(float(loudness.mean()) if len(loudness) else 0.0, 3),
    }


def inspect_rules(path: Path, beside: Store | None) -> dict[str, Any]:
    """The rules of part-writing that a MIDI file in four voices breaks. Raises MidiError, StoreError, and UserError for
    other music."""
    from musictx.generate.choose_bundle import not_four_voices

    tracks = read_tracks(read_bytes(path), path, one_tempo=True)
    if why := not_four_voices(tracks.merge()):
        raise UserError(f"{path} is not four voices on a grid: {why}", "give a file of soprano, alto, tenor and bass")
    return {"file": str(path)} | rules_report(tracks, beside)


def inspect_store(path: Path, png: Path) -> dict[str, Any]:
    """A store's manifest, and its histograms as numbers and as a picture. Raises StoreError, also for a store that is
    not as it was written."""
    store = Store(path)
    whole = [verify_split(store, name) for name, info in store.manifest.splits.items() if info.pieces]
    pieces = [ids for name in store.manifest.splits for ids in store.split(name)]
    if not pieces:
        raise StoreError(f"{path} has no pieces", "prepare the data again")
    chosen = pieces[:: -(-len(pieces) // MOST_PIECES)]
    histograms = count_music([store.tokenizer.decode(ids) for ids in chosen], [len(ids) for ids in pieces])
    plot_histograms(f"{store.manifest.corpus.name}: {len(pieces):,} pieces", histograms, png)
    shown = {name: {"counts": c.tolist(), "edges": e.tolist()} for name, (c, e) in histograms.items()}
    facts = {"histograms": shown, "pieces_counted": len(chosen), "png": str(png), "whole": whole}
    return asdict(store.manifest) | facts


def inspect_bundle(bundle: str) -> dict[str, Any]:
    """What a bundle's header says, and what its model is made of. Raises BundleError."""
    from musictx.generate.open_bundle import open_bundle
    from musictx.model.build import describe_model  # PyTorch: a second for those who need it
    from musictx.objectives import NEXT_TOKEN

    path = bundle_path(bundle)
    opened = open_bundle(path, continues=False)
    facts = {"file": str(path), "described": describe_model(opened.model)} | asdict(opened.header)
    del facts["tokenizer_state"]  # merges by the thousand
    return facts | {"objective": facts["objective"] or {"name": NEXT_TOKEN}}


def print_midi(facts: dict[str, Any]) -> None:
    say(f"{facts['file']}: {facts['seconds']:.2f} s, {facts['quarters_per_minute']:g} quarters a minute")
    for said in say_repairs(Counter(facts["discarded"])):
        say(said)
    rows = []
    for track in facts["tracks"]:
        pitches = f"{track['lowest']} … {track['highest']}" if track["notes"] else ""
        pedal = f"{track['pedal_presses']}" + (f", {n} not heard" if (n := track["pedal_forgotten"]) else "")
        rows.append((track["part"], track["name"], track["program"], track["notes"], pitches, pedal))
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


def inspect(config: InspectConfig) -> None:
    """Raises UserError unless it is asked for one thing, and as the readers of that thing do."""
    given = [name for name in ("midi", "store", "bundle") if getattr(config, name) is not None]
    if len(given) != 1:
        got = " and ".join(f"{name}=" for name in given) or "nothing"
        raise UserError(f"got {got}", "give one of midi=, store= and bundle=")
    if config.midi is not None and (
        Path(config.midi).is_dir() or Path(config.midi).suffix in (".safetensors", ".ckpt")
    ):
        raise ConfigError("midi", got=config.midi, allowed="a MIDI file", hint="store= shows a store, bundle= a model")
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
        facts, show = inspect_store(path, png), partial(print_store, path)
    elif config.rules:
        other = Store(Path(config.beside)) if config.beside is not None else None
        facts, show = inspect_rules(seed_path(str(config.midi)), other), print_rules
    elif config.midi is not None:
        facts, show = inspect_midi(seed_path(config.midi), config.tokenizer.name), print_midi
    else:
        facts, show = inspect_bundle(str(config.bundle)), print_bundle
    if config.json:
        say(json.dumps(all_printable(facts), indent=1, ensure_ascii=not shows_all()))
    else:
        show(facts)


COMMAND = Command("inspect", only_new(inspect), InspectConfig, {"tokenizer": "performance"}, main="midi")
