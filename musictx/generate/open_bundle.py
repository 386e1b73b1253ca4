"""Finds a bundle by its name, opens it with its tokenizer, checks it, and puts the model on a device.

Without `bundle=` the chorale model continues a seed of four voices on a grid, and the piano model plays all else.
"""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from musictx.data.store import Store
from musictx.errors import BundleError, ConfigError, TokenError
from musictx.generate.requests import Own, Sampling
from musictx.model.build import Model, can, inputs_of, kind_of
from musictx.model.bundle import load_bundle
from musictx.model.header import BundleHeader, read_header
from musictx.model.own import check_parts
from musictx.model.packaged import BUNDLES, CHORALE, KNOWN, PIANO, bundle_path, packaged_bundle
from musictx.model.protocol import LanguageModel
from musictx.model.static_steps import StaticSteps
from musictx.model.weights import AUTO, WEIGHTS, check_weights, choose_weights, for_steps, on_cpu
from musictx.music.grid import REST, beside_grid, quantise, score_to_grid
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.objectives import NEXT_TOKEN, find_objective
from musictx.system import processor
from musictx.tokenizers import TOKENIZERS, Tokenizer, build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer


class Opened(NamedTuple):
    model: Model
    tokenizer: Tokenizer
    header: BundleHeader


def open_bundle(path: Path, device: str = "cpu", attention: str = "auto", continues: bool = True) -> Opened:
    """Opens a bundle. Raises BundleError for a file that is none, or whose tokens this version does not make;
    with `continues` it also raises what `check_continues` does."""
    model, header = load_bundle(path, device, attention)
    if continues:
        check_continues(model, header, path)
    check_parts(path, header, TOKENIZERS)
    tokenizer = build_tokenizer(header.tokenizer, header.tokenizer_state, header.added)
    if tokenizer.vocab.without_added.fingerprint != header.vocab_fingerprint:
        raise BundleError(
            f"{path} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, this version makes "
            f"{tokenizer.vocab.without_added.fingerprint}",
            f"use musictx {header.version}",
        )
    if header.model["vocab_size"] != tokenizer.vocab.size:
        raise BundleError(
            f"{path} is damaged: its model has {header.model['vocab_size']} tokens, its tokenizer "
            f"{tokenizer.vocab.size}",
            "copy or train it again",
        )
    return Opened(model, tokenizer, header)


def check_continues(model: object, header: BundleHeader | None, bundle: object) -> None:
    """Raises BundleError for a model that takes more than the ids so far, or that was not trained to continue
    music."""
    if (inputs := inputs_of(model)) != ("ids",):
        takes = " and ".join(inputs)
        what = f"{bundle}: {kind_of(model)} models take {takes}, and cannot continue music"
        raise BundleError(what, "give another")
    if can(model, "both_ways"):
        raise BundleError(f"{bundle}: {kind_of(model)} models read music, and continue none", "give another")
    task = header.objective.get("name", NEXT_TOKEN) if header is not None else NEXT_TOKEN
    if ":" not in task and not find_objective(task).continues:
        raise BundleError(f"{bundle} was trained for objective {task}, and cannot continue music", "give another")


def open_and_print(bundle: str, device: str = "cpu", attention: str = "auto", continues: bool = True) -> Opened:
    """Opens what `bundle=` says, a name or a path; prints its corpus and licence."""
    opened = open_bundle(bundle_path(bundle), device, attention, continues)
    print(f"{bundle}: {opened.header.origin}")
    return opened


def choose_and_print(weights: str, *models: Model) -> list[str]:
    """What `weights=` means for each of these models; prints what `auto` has chosen. Raises ConfigError."""
    chosen = [choose_weights(check_weights(weights, (AUTO, *WEIGHTS)), model) for model in models]
    if fewer := set(chosen) - {weights, "float32"}:
        print(f"weights: {fewer.pop()}, faster on this CPU; weights=float32 for the exact ones")
    if weights == "bfloat16" and not processor().bfloat16 and all(map(on_cpu, models)):
        print(f"weights=bfloat16: this processor ({processor().sets}) only emulates it; float32 is exact and faster")
    return chosen


def print_own(sampling: Sampling, own: Own) -> None:
    """Prints which settings of the sampler are the bundle's `own`, since a person leaves them to it."""
    suited = sampling.suited(own)
    said = [
        f"sampler.{name}={'null' if value is None else f'{value:g}'}"
        for name, value in own.items()
        if getattr(suited, name) == value != getattr(sampling, name) and (value is not None or name == "top_p")
    ]
    if said:
        print(f"{' '.join(said)}, as its bundle says")


def faster(model: Model, weights: str = AUTO, graph: bool = False, device: str = "cpu") -> LanguageModel:
    """The model prepared for fast single steps. Raises ConfigError."""
    if graph and device != "cuda":
        raise ConfigError("graph", got=graph, why="a CPU gains nothing", allowed="device=cuda, or leave it out")
    fast = for_steps(model, choose_weights(weights, model))
    if not graph:
        return fast
    if not can(fast, "static_steps"):
        raise ConfigError(
            "graph", got=graph, why=f"{kind_of(fast)} models have no steps of one shape", hint="leave it out"
        )
    return StaticSteps(fast)  # type: ignore[arg-type] # its row in build.py says so


ORNAMENTS = 0.05  # share of notes that may begin beside the grid; at most 0.012 in the chorales of music21
FULL = 0.5  # share of the sounding sixteenths in which all four voices sound


class Choice(NamedTuple):
    bundle: str
    why: str


def choose_bundle(music: Score, name: object) -> Choice:
    """The name of a model for the music called `name`, and the reason."""
    otherwise = not_four_voices(music)
    if otherwise:
        return Choice(PIANO, f"{name} is not four voices on a grid: {otherwise}")
    beside = int(beside_grid(music).sum())
    but = f", except for {beside} of its {len(music)} notes" if beside else ""
    return Choice(CHORALE, f"{name} is four voices on a grid{but}")


def not_four_voices(music: Score) -> str:
    """Why the chorale encoding cannot take this music unchanged, or would hear fewer than four voices in it; "" if it
    is four voices on a grid, perhaps with a few ornaments beside it."""
    if not len(music):
        return "there are no notes"
    beside = np.flatnonzero(beside_grid(music))
    if len(beside) > ORNAMENTS * len(music):
        first = music.onset_s[beside[0]] / music.quarter_s
        return f"{len(beside)} of {len(music)} notes begin beside the sixteenths, the first at quarter {first:.2f}"
    try:
        grid = score_to_grid(quantise(music).score)
        ChoraleTokenizer().encode_grid(grid)
    except TokenError as error:
        return error.what  # the mistake, without the advice
    voices = (grid != REST).sum(axis=1)
    full = np.count_nonzero(voices == grid.shape[1]) / np.count_nonzero(voices)
    return f"all four sound in {full:.0%} of it" if full < FULL else ""


def name_bundle(bundle: str | None, seeds: Iterable[Path], drums: bool = False, *, played: bool = False) -> str:
    """What `bundle=` says; without it, the model that suits all seeds, and a printed reason. Seeds are read in beats,
    whatever their tempo does, or with `played` as they sound. Raises MidiError for a seed that cannot be read."""
    if bundle is not None:
        return bundle
    choice = Choice(PIANO, "there is no seed")
    for seed in seeds:
        music = read_tracks(read_bytes(seed), seed, one_tempo=not played).merge(drums)
        choice = choose_bundle(music, seed.name)
        if choice.bundle == PIANO:
            break
    packaged_bundle(choice.bundle)  # raises here if the package lacks it, before the line below promises it
    print(f"no bundle= is given: the {choice.bundle} model inside musictx plays, since {choice.why}")
    return choice.bundle


COMPOSER = "the composer"  # all models are compared with it


def find_bundles(runs: Sequence[str], setting: str = "runs") -> list[Path]:
    """The bundle of each name, run folder, file or pattern, in order, each once. Raises ConfigError for a name
    without a bundle."""
    if not runs:
        raise ConfigError(setting, got=[], allowed="at least one run folder, bundle or pattern of them")
    found: list[Path] = []
    for run in runs:
        if run in BUNDLES:
            found.append(bundle_path(run))
            continue
        paths = [Path(p) for p in sorted(glob.glob(run))] if glob.has_magic(run) else [Path(run)]
        bundles = [p / "model.safetensors" if p.is_dir() else p for p in paths]
        bundles = [p for p in bundles if p.is_file()]
        if not bundles:
            allowed = f"run folders, bundles or patterns of them, or {KNOWN}"
            raise ConfigError(setting, got=run, why="no model.safetensors there", allowed=allowed)
        found += bundles
    return list(dict.fromkeys(found))


def name_bundles(bundles: Sequence[Path], names: Sequence[str] | None, setting: str = "runs") -> list[str]:
    """The names that were given, or those of the folders or files. Raises ConfigError unless each bundle has one of its
    own, which is not the composer's."""
    names = names or [p.parent.name if p.name == "model.safetensors" else p.stem for p in bundles]
    if len(names) != len(bundles) or len({*names, COMPOSER}) != len(names) + 1:
        why = f"{setting}= has {len(bundles)} bundles"
        raise ConfigError("names", got=list(names), why=why, allowed="each bundle another name")
    return list(names)


def common_store(path: Path, bundles: Sequence[Path]) -> Store:
    """Opens the store. Raises BundleError for a bundle that was trained on other tokens."""
    headers = [read_header(bundle) for bundle in bundles]
    store = Store(path)
    for bundle, header in zip(bundles, headers, strict=True):
        if header.vocab_fingerprint != store.tokenizer.vocab.fingerprint:
            raise BundleError(
                f"{bundle} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, {path} has "
                f"{store.manifest.tokenizer} tokens {store.tokenizer.vocab.fingerprint}",
                "give models and a store of the same tokens",
            )
    return store


def check_device(device: str) -> str:
    """The device, if this machine has it. Raises ConfigError otherwise."""
    if device == "cpu":
        return device
    if device != "cuda":
        raise ConfigError("device", got=device, allowed="cpu or cuda")
    if not torch.cuda.is_available():
        raise ConfigError("device", got=device, why="this machine has no CUDA device", allowed="cpu")
    return device
