"""A bundle as a person uses it: the model together with the tokenizer it was trained on, checked against each other."""

from pathlib import Path
from typing import NamedTuple

from musictx.errors import BundleError
from musictx.model.build import Model, inputs_of, kind_of
from musictx.model.bundle import BundleHeader, load_bundle
from musictx.model.shipped import bundle_path
from musictx.model.weights import AUTO, WEIGHTS, check_weights, choose_weights
from musictx.objectives import NEXT_TOKEN, find_objective
from musictx.tokenizers import Tokenizer, build_tokenizer


class Opened(NamedTuple):
    model: Model
    tokenizer: Tokenizer
    header: BundleHeader


def open_bundle(path: Path, device: str = "cpu", attention: str = "auto", continues: bool = True) -> Opened:
    """Raises BundleError for a file that is no bundle, or whose tokens this version does not make; and, with
    `continues`, as `check_continues`."""
    model, header = load_bundle(path, device, attention)
    if continues:
        check_continues(model, header, path)
    tokenizer = build_tokenizer(header.tokenizer, header.tokenizer_state, header.added)
    if tokenizer.vocab.without_added.fingerprint != header.vocab_fingerprint:
        raise BundleError(
            f"{path} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, this version makes "
            f"{tokenizer.vocab.without_added.fingerprint}: use musictx {header.version}"
        )
    if header.model["vocab_size"] != tokenizer.vocab.size:
        raise BundleError(
            f"{path} is damaged: its model has {header.model['vocab_size']} tokens, its tokenizer "
            f"{tokenizer.vocab.size}; copy or train it again"
        )
    return Opened(model, tokenizer, header)


def check_continues(model: object, header: BundleHeader | None, bundle: object) -> None:
    """Raises BundleError for a model that takes more than the ids so far, or has learnt something else than to go on
    from a beginning."""
    if (inputs := inputs_of(model)) != ("ids",):
        takes = " and ".join(inputs)
        raise BundleError(f"{bundle}: model.kind={kind_of(model)} takes {takes}, and continues no music: give another")
    learnt = header.objective.get("name", NEXT_TOKEN) if header is not None else NEXT_TOKEN
    if ":" not in learnt and not find_objective(learnt).continues:
        raise BundleError(f"{bundle} was trained for objective={learnt}, and continues no music: give another")


def open_told(bundle: str, device: str = "cpu", attention: str = "auto", continues: bool = True) -> Opened:
    """What `bundle=` says, a name or a path, opened; a line tells what it learnt from and under which licence."""
    opened = open_bundle(bundle_path(bundle), device, attention, continues)
    print(f"{bundle}: {opened.header.origin}")
    return opened


def weights_told(weights: str, *models: Model) -> list[str]:
    """What `weights=` comes to for each of these models; a line says what `auto` has chosen. Raises ConfigError."""
    chosen = [choose_weights(check_weights(weights, (AUTO, *WEIGHTS)), model) for model in models]
    if fewer := set(chosen) - {weights, "float32"}:
        print(f"weights: {fewer.pop()}, faster on this CPU; weights=float32 for the exact ones")
    return chosen
