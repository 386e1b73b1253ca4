"""Cuts held-out pieces in two, and asks a model which continuation of a seed is the true one.

Each seed comes with its own continuation and those of other pieces, moved to the seed's key. If time is in seconds,
they also have as many notes a second. All are written alike, so that only the music differs. The model chooses the
one with the fewest nats a token after the seed. Without any memory it is right for one seed in N, the number of
continuations.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.likelihood import Scored
from musictx.analysis.seed_gain import log_p_of_last
from musictx.data.store import Split
from musictx.errors import UserError
from musictx.music.score import DRUMS, Score
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


OTHERS = 9
SLOWEST, FASTEST = 2.0, 0.5  # limits of the factor on another piece's time; beyond them its music would change


class Identified(NamedTuple):
    """`right` is the share of seeds for which the model chose their own continuation; `nats` (P, 1 + OTHERS) are
    those a token of each, the seed's own first."""

    right: Interval
    nats: NDArray[np.float64]


def identify(
    model: Scored,
    tokenizer: Tokenizer,
    held_out: Beginnings,
    random_seed: int = 0,
    device: str = "cpu",
) -> Identified:
    """Lets a model choose each seed's continuation, of more pieces than OTHERS."""
    rng, rows = np.random.default_rng(random_seed), []
    for i, begun in enumerate(held_out.seeds):
        drawn = rng.choice(len(held_out.seeds) - 1, OTHERS, replace=False)
        offered = [held_out.true[i], *(_like(held_out.true[j + (j >= i)], begun, tokenizer) for j in drawn.tolist())]
        rows.append([_nats(model, tokenizer, begun, held_out.seed_s, music, device) for music in offered])
    nats = np.array(rows)
    cheapest = nats == nats.min(1, keepdims=True)
    return Identified(interval(cheapest[:, 0] / cheapest.sum(1)), nats)  # a tie counts as a guess


def _like(music: Score, seed: Score, tokenizer: Tokenizer) -> Score:
    """Another piece's continuation, transposed to the seed's key by the nearest way, with as many notes a second."""
    of_seed, of_music = (_pitch_classes(score) for score in (seed, music))
    shifts = sorted(range(-5, 7), key=abs)
    low, high = int(music.pitch.min()), int(music.pitch.max())
    shifts = [k for k in shifts if tokenizer.lo <= low + k and high + k <= tokenizer.hi]
    best = max(shifts, key=lambda k: float(of_seed @ np.roll(of_music, k)))  # a tie goes to the smallest shift
    moved = music.transpose(best)
    if tokenizer.metrical:
        return moved
    wanted = len(seed) / max(float(seed.onset_s.max()), 1e-3)
    own = len(music) / max(float(music.onset_s.max()), 1e-3)
    return moved.stretch(float(np.clip(own / wanted, FASTEST, SLOWEST)))


def _pitch_classes(score: Score) -> NDArray[np.float64]:
    """(12,) the seconds of each pitch class, as a vector of length 1."""
    kept = score.select(score.program != DRUMS)
    seconds = np.bincount(kept.pitch % 12, kept.offset_s - kept.onset_s, 12)
    return seconds / max(float(np.linalg.norm(seconds)), 1e-9)


def _nats(model: Scored, tokenizer: Tokenizer, seed: Score, seed_s: float, music: Score, device: str) -> float:
    """Nats a token of the music, after the seed and the silence at its end."""
    begun, rest = tokenizer.encode(seed), tokenizer.encode(music)
    silence = tokenizer.silence(seed_s - tokenizer.seconds(begun, seed.quarter_s), seed.quarter_s)
    ids = np.concatenate([[tokenizer.vocab.bos], begun, silence, rest])
    return float(-log_p_of_last(model, ids, len(rest), device).mean())
