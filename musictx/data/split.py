"""Which piece goes to which split: by piece, seeded, and copies of one piece never on two sides."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from musictx.errors import StoreError
from musictx.tokenizers import Ids, Tokenizer


def content_key(ids: Ids, tokenizer: Tokenizer) -> str:
    """The same for two pieces whose notes are the same up to transposition."""
    span = tokenizer.pitch_range(ids)
    return sha256(tokenizer.transpose(ids, tokenizer.lo - span[0]).tobytes() if span else ids.tobytes()).hexdigest()


def check_fractions(validation_fraction: float, test_fraction: float, seed: int) -> None:
    """Raises StoreError when the fractions are not shares that leave something to train on; asked before long work."""
    total = validation_fraction + test_fraction
    if not (validation_fraction >= 0 and test_fraction >= 0 and total < 1):  # refuses NaN too
        raise StoreError(
            f"validation_fraction={validation_fraction} and test_fraction={test_fraction} leave nothing "
            "to train on: give shares from 0 up whose sum is below 1"
        )
    if validation_fraction == 0:
        raise StoreError("validation_fraction=0 leaves nothing to choose a model by: give a share above 0")
    if seed < 0:
        raise StoreError(f"seed={seed}: give a number from 0 up")


def assign_splits(keys: Sequence[str], validation_fraction: float, test_fraction: float, seed: int) -> list[str]:
    """A split name for each key; equal keys share one. Every split with a fraction above 0 gets a piece.

    Raises StoreError when there are too few different pieces.
    """
    fractions = {"validation": validation_fraction, "test": test_fraction}
    groups = sorted(set(keys))
    wanted = {name: max(round(f * len(groups)), 1) if f else 0 for name, f in fractions.items()}
    if len(groups) <= sum(wanted.values()):
        raise StoreError(
            f"{len(groups)} different pieces cannot fill the splits: {sum(wanted.values())} would go to validation and "
            f"test and none be left to train on; give more files or smaller fractions than {validation_fraction} "
            f"and {test_fraction}"
        )
    order = np.random.default_rng(seed).permutation(len(groups))
    split_of = dict.fromkeys(groups, "train")
    start = 0
    for name, count in wanted.items():
        split_of.update((groups[i], name) for i in order[start : start + count])
        start += count
    return [split_of[key] for key in keys]
