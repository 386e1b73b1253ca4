"""The experiment behind motif retention, copying and statistics: held-out pieces' beginnings, continued."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from musictx.data.store import Split
from musictx.errors import UserError
from musictx.model.protocol import LanguageModel
from musictx.notes.meter import Meter
from musictx.notes.score import Score
from musictx.sampling.length import Length
from musictx.sampling.motif import Motif
from musictx.sampling.music import continue_motifs
from musictx.sampling.settings import Settings
from musictx.tokenizers import Tokenizer


class Beginnings(NamedTuple):
    """Held-out pieces cut in two: the seed, and how its composer went on from time 0 (`length_s` of it)."""

    seeds: list[Score]
    true: list[Score]
    seed_s: float
    length_s: float


class Continued(NamedTuple):
    """What a model made of each seed, from time 0 on, and how fast it drew."""

    scores: list[Score]
    tokens_per_s: float


def beginnings(
    split: Split,
    tokenizer: Tokenizer,
    pieces: int,
    seed_s: float,
    length_s: float,
    *,
    least: int = 2,
) -> Beginnings:
    """The first `pieces` of a split that last for seed and continuation, with notes in both.

    The true continuations begin as a model's do: on a grid at the nearest step, with the notes that are held over the
    cut. Raises UserError for fewer than `least`.
    """
    on_grid = tokenizer.voices > 0
    if on_grid:
        seed_s = tokenizer.seconds(tokenizer.silence(seed_s))
    seeds, true = [], []
    for ids in split:
        score = tokenizer.decode(np.asarray(ids))
        seed, rest = score.clip(0.0, seed_s), _hold(score, seed_s) if on_grid else score
        rest = rest.clip(seed_s, seed_s + length_s)
        if score.duration_s >= seed_s + length_s and len(seed) and len(rest):
            seeds.append(seed)
            true.append(rest)
        if len(seeds) == pieces:
            break
    if len(seeds) < least:
        raise UserError(
            f"{len(seeds)} pieces last for a seed of {seed_s:g} s and {length_s:g} s of music after it: "
            "give a shorter seed_seconds or length_seconds"
        )
    return Beginnings(seeds, true, seed_s, length_s)


def _hold(score: Score, cut_s: float) -> Score:
    """Notes that sound through the cut begin there."""
    held = (score.onset_s < cut_s) & (score.offset_s > cut_s)
    return replace(score, onset_s=np.where(held, cut_s, score.onset_s))


def continue_all(model: LanguageModel, tokenizer: Tokenizer, held_out: Beginnings, settings: Settings) -> Continued:
    """One continuation of each seed, as long as the true one, batched. Raises UserError for one that stops early."""
    settings = settings._replace(length=Length(seconds=held_out.length_s), include_seed=False)
    motifs = [Motif(seed, held_out.seed_s, Meter(seed.quarter_s)) for seed in held_out.seeds]
    start = perf_counter()
    drawn = continue_motifs(motifs, model, tokenizer, settings)
    seconds = perf_counter() - start
    stopped = {row.stopped for rows in drawn for row in rows} - {""}
    if stopped:
        raise UserError(f"continuations ended before {held_out.length_s:g} s: {', '.join(stopped)}")
    scores = [rows[0].score.clip(0.0, held_out.length_s) for rows in drawn]
    return Continued(scores, count_tokens(tokenizer, scores) / seconds)


def count_tokens(tokenizer: Tokenizer, scores: Sequence[Score]) -> int:
    """How many tokens tell this music."""
    return sum(len(tokenizer.encode(score)) for score in scores if len(score))
