"""musictx listen: make a blind listening sheet: a page on which people separate models from composers."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from musictx.analysis.continuations import beginnings, continue_beginnings
from musictx.commands import check_within
from musictx.config.command import Command
from musictx.errors import ConfigError, counted
from musictx.files import check_new, check_suffix, only_new, replacing
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
from musictx.viz.sheet import LATE_S, MOST, excerpt, listening_sheet, make_trials, mp3, orders


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
    if (n := len(held_out.seeds)) < config.pieces:
        lasts = f"seed_seconds={config.seed_seconds:g}, length_seconds={config.length_seconds:g} and {LATE_S:g} s more"
        why = f"{n} of the {len(split)} in the {config.split} split last for {lasts}"
        raise ConfigError("pieces", got=config.pieces, why=why, allowed="less")
    if config.split == "train":
        say("split=train: models trained on this store have heard these pieces, and may know how they continue")
    out.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(out.parent, os.W_OK) or out.is_dir():
        raise ConfigError("out", got=out, why="it cannot be written", allowed="another")
    font = Path(config.soundfont) if config.soundfont else None
    mp3(excerpt(Score.empty(), 1.0, font))  # reports what prevents sound before the first model draws
    music, suited = {COMPOSER: held_out.true}, {}
    for name, bundle in zip(names, bundles, strict=True):
        opened = open_bundle(bundle, device)
        say(f"{name}: {opened.header.origin}")
        own = opened.header.sampling
        suited[name] = config.sampler.suited(own)
        continued = continue_beginnings(
            TorchPlayer(for_steps(opened.model), device), opened.tokenizer, held_out, request, own=own
        )
        music[name] = continued.scores
        say(f"{name}: {counted(len(continued.scores), 'continuation')}, {continued.tokens_per_s:.0f} tokens/s")
    corpus = store.manifest.corpus
    about = f"{config.split} split of {corpus.name}, seeds of {held_out.seed_s:.4g} s; {drawn_with(config, suited)}."
    order = orders(list(music), config.pieces, config.random_seed)
    rows = make_trials(held_out.seeds, held_out.seed_s, music, config.length_seconds, order, font)
    page = listening_sheet(rows, COMPOSER, about, f"Music: {corpus.name}, {corpus.licence}.")
    with replacing(out) as partial:
        partial.write_text(page, encoding="utf-8")
    each, size = counted(len(music), "continuation"), f"{out.stat().st_size / 1e6:.1f} MB"
    what = f"{counted(config.pieces, 'piece')} with {each} each, {size}"
    say(f"{out}: {what}; open it in a browser, the key is at its end")


def drawn_with(config: ListenConfig, suited: dict[str, Sampling]) -> str:
    """The settings of all music in words; `suited`: the sampler's of each model."""
    usual = asdict(Rules())
    ruled = {name: value for name, value in asdict(config.rules).items() if value != usual[name]}
    words = {name: in_words(asdict(each) | ruled) for name, each in suited.items()}
    is_same = len(set(words.values())) == 1
    samplers = words.popitem()[1] if is_same else "; ".join(f"{name}: {text}" for name, text in words.items())
    return f"random_seed={config.random_seed}, {samplers}"


def in_words(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def plan(config: ListenConfig) -> Continue:
    """The request to each model. Raises UserError for settings that are wrong for any store and model."""
    check_suffix("out", config.out, [".html", ".htm"])
    check_new(config.overwrite, Path(config.out))
    check_within(config, "pieces", 1)
    Part(seconds=config.seed_seconds)  # raises for an impossible one
    length = Length(seconds=config.length_seconds)
    return Continue(config.sampler, length, rules=config.rules, random_seed=config.random_seed)


COMMAND = Command("listen", only_new(listen), ListenConfig, {"sampler": "auto"}, main="bundles")
