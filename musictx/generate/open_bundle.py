"""Bundles by their names, opened with PyTorch."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from musictx.data.store import Store
from musictx.errors import BundleError, ConfigError, counted
from musictx.generate.draw import OF_SCORES
from musictx.generate.open_player import check_task, tokenizer_of
from musictx.model.build import Model, can, describe_model, inputs_of, kind_of
from musictx.model.bundle import load_bundle
from musictx.model.header import BundleHeader, read_header
from musictx.model.packaged import BUNDLES, KNOWN, bundle_path
from musictx.model.protocol import LanguageModel
from musictx.model.settings import AUTO, WEIGHTS, one_of
from musictx.model.static_steps import StaticSteps
from musictx.model.torch_steps import TorchPlayer, TorchSourcePlayer
from musictx.model.weights import choose_weights, for_steps, on_cpu
from musictx.system import processor
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.score import ScoreTokenizer


class Opened(NamedTuple):
    model: Model
    tokenizer: Tokenizer
    header: BundleHeader


def open_bundle(path: Path, device: str = "cpu", attention: str = "auto", continues: bool = True) -> Opened:
    """Opens a bundle. Raises BundleError for another file or unknown tokens, and with `continues` as
    `check_continues`."""
    model, header = load_bundle(path, device, attention)
    if continues:
        check_continues(model, header, path)
    return Opened(model, tokenizer_of(path, header), header)


def check_continues(model: object, header: BundleHeader | None, bundle: object) -> None:
    """Raises BundleError for a model that takes more than ids, or was not trained to continue music."""
    if (inputs := inputs_of(model)) != ("ids",):
        takes = " and ".join(inputs)
        what = f"{bundle}: {kind_of(model)} models take {takes}, and cannot continue music"
        raise BundleError(what, "give another")
    check_task(header, bundle)


def chosen_weights(weights: str, model: Model) -> tuple[str, list[str]]:
    """The form of the weights, and remarks. Raises ConfigError."""
    form, remarks = choose_weights(one_of("weights", weights, (AUTO, *WEIGHTS)), model), []
    if form not in (weights, "float32"):
        remarks.append(f"weights: {form}, faster on this CPU; weights=float32 for the exact ones")
    if weights == "bfloat16" and not processor().bfloat16 and on_cpu(model):
        sets = processor().sets
        remarks.append(f"weights=bfloat16: this processor ({sets}) only emulates it; float32 is exact and faster")
    return form, remarks


def fast_model(model: Model, weights: str = AUTO, graph: bool = False, device: str = "cpu") -> LanguageModel:
    """The model in a form for fast steps. Raises ConfigError."""
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


def torch_player(model: Model, weights: str, graph: bool, device: str) -> tuple[TorchPlayer, tuple[str, ...]]:
    """A player of the model, and remarks. Raises ConfigError."""
    form, remarks = chosen_weights(weights, model)
    description = describe_model(model)
    return TorchPlayer(fast_model(model, form, graph, device), device), (description, *remarks)


def torch_source_player(model: Any, weights: str, device: str) -> tuple[TorchSourcePlayer, tuple[str, ...]]:
    form, remarks = chosen_weights(weights, model)
    description = describe_model(model)
    return TorchSourcePlayer(for_steps(model, form), device), (description, *remarks)


COMPOSER = "the composer"  # all models are compared with it


def find_bundles(runs: Sequence[str], setting: str = "runs") -> list[Path]:
    """The bundles of names, run folders, files and patterns, each once. Raises ConfigError where there is none."""
    if not runs:
        raise ConfigError(setting, got=[], allowed="at least one run folder, bundle or pattern of them")
    files: list[Path] = []
    for run in runs:
        if run in BUNDLES:
            files.append(bundle_path(run))
            continue
        paths = [Path(p) for p in sorted(glob.glob(run))] if glob.has_magic(run) else [Path(run)]
        bundles = [p / "model.safetensors" if p.is_dir() else p for p in paths]
        bundles = [p for p in bundles if p.is_file()]
        if not bundles:
            allowed = f"run folders, bundles or patterns of them, or {KNOWN}"
            raise ConfigError(setting, got=run, why="no model.safetensors there", allowed=allowed)
        files += bundles
    return list(dict.fromkeys(files))


def name_bundles(bundles: Sequence[Path], names: Sequence[str] | None, setting: str = "runs") -> list[str]:
    """The `names`, or those of the folders or files. Raises ConfigError where two are equal, or one is the
    composer's."""
    names = names or [p.parent.name if p.name == "model.safetensors" else p.stem for p in bundles]
    if len(names) != len(bundles) or len({*names, COMPOSER}) != len(names) + 1:
        why = f"{setting}= has {counted(len(bundles), 'bundle')}"
        raise ConfigError("names", got=list(names), why=why, allowed="each bundle another name")
    return list(names)


def common_store(path: Path, bundles: Sequence[Path]) -> Store:
    """Opens the store. Raises BundleError for a bundle with other tokens, and for one of scores."""
    headers = [read_header(bundle) for bundle in bundles]
    store = Store(path)
    for bundle, header in zip(bundles, headers, strict=True):
        if header.vocab_fingerprint != store.tokenizer.vocab.fingerprint:
            raise BundleError(
                f"{bundle} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, {path} has "
                f"{store.manifest.tokenizer} tokens {store.tokenizer.vocab.fingerprint}",
                "give models and a store of the same tokens",
            )
        if isinstance(store.tokenizer, ScoreTokenizer):
            hint = "musictx evaluate compares likelihoods, musictx generate and accompany draw from scores"
            raise BundleError(f"{bundle}: {OF_SCORES}", hint)
    return store
