"""musictx listen: make a blind listening sheet: a page on which people separate models from composers."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import MISSING

from musictx.analysis.continuations import Beginnings, beginnings, continue_beginnings
from musictx.commands import check_new, check_suffix, check_within
from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import only_new, replacing
from musictx.generate.open_bundle import COMPOSER, common_store, find_bundles, name_bundles, open_bundle
from musictx.generate.open_player import check_device
from musictx.generate.primer import Part
from musictx.generate.requests import Continue, Length, Sampling
from musictx.model.torch_steps import TorchPlayer
from musictx.model.weights import for_steps
from musictx.music.score import Score
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers.rules import Rules
from musictx.viz.sheet import MOST, Trial, excerpt, listening_sheet, match_loudness, mp3
from musictx.waiting import estimated


@dataclass
class ListenConfig:
    """musictx listen: make a blind listening sheet, one HTML file in which people separate models from composers."""

    bundles: list[str] = setting(
        MISSING, "run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too", path=True
    )
    names: list[str] | None = setting(None, "names for the key; null: each run's own")
    store: str = setting(MISSING, "a store of the tokens that all of them were trained on", path=True)
    out: str = setting("outputs/listening.html", "the .html file", path=True)
    split: str = setting("validation", "validation or test; or train, whose pieces the models may know")
    pieces: int = setting(8, "held-out pieces whose beginnings are continued")
    seed_seconds: float = setting(10.0, "seconds of each piece to continue")
    length_seconds: float = setting(20.0, "length of each continuation")
    random_seed: int = setting(0, "random seed of the music and of the order in which people hear it")
    soundfont: str | None = setting(None, "a .sf2 file; null: the installed General MIDI one", path=True)
    overwrite: bool = setting(False, "replace an existing sheet")
    device: str = setting("cpu", "cpu or cuda")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=Rules)


LATE_S = 3.0  # in MAESTRO's validation split the first note after a ten-second seed is never later


def listen(config: ListenConfig) -> None:
    request = plan(config)
    device = check_device(config.device)
    bundles = find_bundles(config.bundles, "bundles")
    names = name_bundles(bundles, config.names, "bundles")
    if len(names) >= MOST:
        why = f"it has {len(names)} bundles"
        raise ConfigError("bundles", why=why, allowed=f"at most {MOST - 1}, the letters go to Z")
    store = common_store(Path(config.store), bundles)
    split, out = store.split(config.split), Path(config.out)
    length_s, tokenizer = config.length_seconds + LATE_S, store.tokenizer
    held_out = beginnings(split, tokenizer, config.pieces, config.seed_seconds, length_s, least=0)
    if (found := len(held_out.seeds)) < config.pieces:
        lasts = f"seed_seconds={config.seed_seconds:g}, length_seconds={config.length_seconds:g} and {LATE_S:g} s more"
        why = f"{found} of the {len(split)} in the {config.split} split last for {lasts}"
        raise ConfigError("pieces", got=config.pieces, why=why, allowed="less")
    if config.split == "train":
        say("split=train: models trained on this store have heard these pieces, and may know how they continue")
    out.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(out.parent, os.W_OK) or out.is_dir():
        raise ConfigError("out", got=out, why="it cannot be written", allowed="another")
    font = Path(config.soundfont) if config.soundfont else None
    mp3(excerpt(Score.empty(), 1.0, font))  # reports what prevents sound before the first model draws
    heard, suited = {COMPOSER: held_out.true}, {}
    for name, bundle in zip(names, bundles, strict=True):
        opened = open_bundle(bundle, device)
        say(f"{name}: {opened.header.origin}")
        own = opened.header.sampling
        suited[name] = config.sampler.suited(own)
        drawn = continue_beginnings(
            TorchPlayer(for_steps(opened.model), device), opened.tokenizer, held_out, request, own=own
        )
        heard[name] = drawn.scores
        say(f"{name}: {len(drawn.scores)} continuations, {drawn.tokens_per_s:.0f} tokens/s")
    corpus = store.manifest.corpus
    about = f"{config.split} split of {corpus.name}, seeds of {held_out.seed_s:.4g} s; {drawn_with(config, suited)}."
    page = listening_sheet(
        trials(held_out, heard, config, font), COMPOSER, about, f"Music: {corpus.name}, {corpus.licence}."
    )
    with replacing(out) as partial:
        partial.write_text(page, encoding="utf-8")
    what = f"{config.pieces} pieces with {len(heard)} continuations each, {out.stat().st_size / 1e6:.1f} MB"
    say(f"{out}: {what}; open it in a browser, the key is at its end")


def drawn_with(config: ListenConfig, suited: dict[str, Sampling]) -> str:
    """The settings of all music in words; `suited` has the sampler's settings of each model by name."""
    usual = asdict(Rules())
    ruled = {name: value for name, value in asdict(config.rules).items() if value != usual[name]}
    words = {name: in_words(asdict(each) | ruled) for name, each in suited.items()}
    same = len(set(words.values())) == 1
    drawn = words.popitem()[1] if same else "; ".join(f"{name}: {said}" for name, said in words.items())
    return f"random_seed={config.random_seed}, {drawn}"


def in_words(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def plan(config: ListenConfig) -> Continue:
    """What is asked of each model; checks every setting that needs neither store nor models. Raises UserError."""
    check_suffix("out", config.out, [".html", ".htm"])
    check_new(config.overwrite, Path(config.out))
    check_within(config, "pieces", 1)
    Part(seconds=config.seed_seconds)  # raises for an impossible one
    length = Length(seconds=config.length_seconds)
    return Continue(config.sampler, length, rules=config.rules, random_seed=config.random_seed)


def trials(
    held_out: Beginnings, heard: dict[str, list[Score]], config: ListenConfig, font: Path | None = None
) -> list[Trial]:
    """Each seed with its continuations, as sound, in the order in which people hear them."""
    out = []
    rows = list(enumerate(orders(list(heard), len(held_out.seeds), config.random_seed)))
    for i, order in estimated(rows, f"sound of {len(rows)} pieces"):
        sounds = [excerpt(held_out.seeds[i], held_out.seed_s, font)]
        sounds += [excerpt(from_first_note(heard[name][i]), config.length_seconds, font) for name in order]
        first, *others = map(mp3, match_loudness(sounds))
        out.append(Trial(first, others, order))
    return out


def orders(sources: list[str], pieces: int, random_seed: int) -> list[list[str]]:
    """A random order for each piece, in which every source gets every letter about equally often. People prefer the
    first or the last of several, whoever made it."""
    chance, n = np.random.default_rng(random_seed), len(sources)
    rows: list[NDArray[np.int64]] = []
    while len(rows) < pieces:
        square = chance.permutation(n)
        rows += [np.roll(square, k) for k in range(n)]
    return [[sources[k] for k in rows[i]] for i in chance.permutation(pieces)]


def from_first_note(score: Score) -> Score:
    """Cuts silence off the beginning. After a cut through long notes a piece's next note comes late. Models hear the
    notes end at the cut, and continue at once."""
    return score.clip(min(float(score.onset_s.min(initial=LATE_S)), LATE_S), np.inf)


COMMAND = Command("listen", only_new(listen), ListenConfig, {"sampler": "auto"}, main="bundles")
