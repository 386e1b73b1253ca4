"""Cuts held-out pieces in two: what a model continues, and the composer's own continuation."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from musictx.data.store import Split
from musictx.errors import UserError
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer


class Beginnings(NamedTuple):
    """Held-out pieces cut in two: the seed, and the composer's continuation from time 0 (`length_s` of it)."""

    seeds: list[Score]
    true: list[Score]
    seed_s: float
    length_s: float


def beginnings(
    split: Split, tokenizer: Tokenizer, pieces: int, seed_s: float, length_s: float, *, least: int = 2
) -> Beginnings:
    """The first `pieces` of a split that are long enough for seed and continuation, with notes in both.

    The true continuations begin as a model's do: on a grid at the nearest step, with the notes that sound over the cut.
    Raises UserError for fewer than `least`.
    """
    on_grid = tokenizer.voices > 0
    if on_grid:
        seed_s = tokenizer.seconds(tokenizer.silence(seed_s))
    seeds, true = [], []
    for ids in split:
        score = tokenizer.decode(np.asarray(ids))
        seed, rest = score.clip(0.0, seed_s), score
        if on_grid:  # notes that sound through the cut begin there
            held = (score.onset_s < seed_s) & (score.offset_s > seed_s)
            rest = replace(score, onset_s=np.where(held, seed_s, score.onset_s))
        rest = rest.clip(seed_s, seed_s + length_s)
        if score.duration_s >= seed_s + length_s and len(seed) and len(rest):
            seeds.append(seed)
            true.append(rest)
        if len(seeds) == pieces:
            break
    if len(seeds) < least:
        what = f"{len(seeds)} pieces are long enough for a seed of {seed_s:g} s and {length_s:g} s of music after it"
        raise UserError(what, "give less for seed_seconds= or length_seconds=")
    return Beginnings(seeds, true, seed_s, length_s)
