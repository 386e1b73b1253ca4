"""Held-out pieces cut in two, and a model's continuations of their beginnings."""

from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from musictx.data.store import Split
from musictx.errors import UserError, counted
from musictx.generate.draw import continue_primers
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue, Length
from musictx.model.steps import Player
from musictx.music.score import Meter, Score
from musictx.tokenizers import Tokenizer


class Beginnings(NamedTuple):
    """Seeds, and the composers' continuations from time 0, `length_s` each."""

    seeds: list[Score]
    true: list[Score]
    seed_s: float
    length_s: float


def beginnings(
    split: Split, tokenizer: Tokenizer, pieces: int, seed_s: float, length_s: float, *, least: int = 2
) -> Beginnings:
    """The first `pieces` long enough, with notes in both parts. Raises UserError for fewer than `least`."""
    on_grid = tokenizer.voices > 0
    if on_grid:
        seed_s = tokenizer.seconds(tokenizer.silence(seed_s))
    # the true continuations begin as a model's do: on a grid at the nearest step
    seeds, true = [], []
    for ids in split:
        score = tokenizer.decode(np.asarray(ids))
        seed, rest = score.clip(0.0, seed_s), score
        if on_grid:  # notes that sound through the cut begin there
            sustains = (score.onset_s < seed_s) & (score.offset_s > seed_s)
            rest = replace(score, onset_s=np.where(sustains, seed_s, score.onset_s))
        rest = rest.clip(seed_s, seed_s + length_s)
        if score.duration_s >= seed_s + length_s and len(seed) and len(rest):
            seeds.append(seed)
            true.append(rest)
        if len(seeds) == pieces:
            break
    if len(seeds) < least:
        found = counted(len(seeds), "piece is", "pieces are")
        what = f"{found} long enough for a seed of {seed_s:g} s and {length_s:g} s of music after it"
        raise UserError(what, "give less for seed_seconds= or length_seconds=")
    return Beginnings(seeds, true, seed_s, length_s)


class Continuations(NamedTuple):
    """A model's continuation of each seed, from time 0."""

    scores: list[Score]
    tokens_per_s: float


def continue_beginnings(
    player: Player, tokenizer: Tokenizer, held_out: Beginnings, request: Continue, **settings: Any
) -> Continuations:
    """One continuation of each seed, as long as the true one. Raises UserError for an early end."""
    request = replace(request, length=Length(seconds=held_out.length_s), include_seed=False)
    primers = [Primer(seed, held_out.seed_s, Meter(seed.quarter_s)) for seed in held_out.seeds]
    start = perf_counter()
    continuations = continue_primers(primers, player, tokenizer, request, **settings)
    seconds = perf_counter() - start
    reasons = {row.stopped for rows in continuations for row in rows} - {""}
    if reasons:
        raise UserError(f"continuations ended before {held_out.length_s:g} s", ", ".join(reasons))
    scores = [rows[0].score.clip(0.0, held_out.length_s) for rows in continuations]
    return Continuations(scores, sum(len(tokenizer.encode(score)) for score in scores if len(score)) / seconds)
