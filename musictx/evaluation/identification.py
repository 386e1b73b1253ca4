"""Which continuation is the true one: a model that remembers the seed finds it likelier than those of other pieces.

Each seed is offered its own continuation and those of other pieces, moved to the seed's key and, where time is told in
seconds, to as many notes a second; all are written alike, so that nothing but the music tells them apart. The model
chooses the one that costs the fewest nats a token after the seed. Without any memory it is right one time in as many
as are offered.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.evaluation.bootstrap import Interval, interval
from musictx.evaluation.continuations import Beginnings
from musictx.evaluation.seed_gain import log_p_of_last
from musictx.model.protocol import LanguageModel
from musictx.notes.score import DRUMS, Score
from musictx.tokenizers import Tokenizer

OTHERS = 9
SLOWEST, FASTEST = 2.0, 0.5  # factors on the time of another piece; beyond them it would be other music


class Identified(NamedTuple):
    """`right` is the share of the seeds whose own continuation was chosen, `nats` (P, 1 + others) what each cost a
    token, its own first."""

    right: Interval
    nats: NDArray[np.float64]


def identify(
    model: LanguageModel,
    tokenizer: Tokenizer,
    held_out: Beginnings,
    others: int = OTHERS,
    seed: int = 0,
    device: str = "cpu",
) -> Identified:
    """Raises ConfigError for fewer pieces than are offered."""
    pieces = len(held_out.seeds)
    if pieces <= others:
        raise ConfigError(
            f"{pieces} pieces: each needs the continuations of {others} others; give more, or fewer others"
        )
    rng, rows = np.random.default_rng(seed), []
    for i, begun in enumerate(held_out.seeds):
        drawn = rng.choice(pieces - 1, others, replace=False)
        offered = [held_out.true[i], *(_like(held_out.true[j + (j >= i)], begun, tokenizer) for j in drawn.tolist())]
        rows.append([_nats(model, tokenizer, begun, held_out.seed_s, music, device) for music in offered])
    nats = np.array(rows)
    cheapest = nats == nats.min(1, keepdims=True)
    return Identified(interval(cheapest[:, 0] / cheapest.sum(1)), nats)  # of several alike one is guessed


def _like(music: Score, seed: Score, tokenizer: Tokenizer) -> Score:
    """Another piece's continuation in the seed's key, nearest to its own, and with as many notes a second."""
    of_seed, of_music = (_pitch_classes(score) for score in (seed, music))
    shifts = sorted(range(-5, 7), key=abs)
    low, high = int(music.pitch.min()), int(music.pitch.max())
    shifts = [k for k in shifts if tokenizer.lo <= low + k and high + k <= tokenizer.hi]
    best = max(shifts, key=lambda k: float(of_seed @ np.roll(of_music, k)))  # of equals the first, the smallest
    moved = music.transpose(best)
    if tokenizer.metrical:
        return moved
    wanted = len(seed) / max(float(seed.onset_s.max()), 1e-3)
    own = len(music) / max(float(music.onset_s.max()), 1e-3)
    return moved.stretch(float(np.clip(own / wanted, FASTEST, SLOWEST)))


def _pitch_classes(score: Score) -> NDArray[np.float64]:
    """(12,) seconds of each, as a direction."""
    kept = score.select(score.program != DRUMS)
    seconds = np.bincount(kept.pitch % 12, kept.offset_s - kept.onset_s, 12)
    return seconds / max(float(np.linalg.norm(seconds)), 1e-9)


def _nats(model: LanguageModel, tokenizer: Tokenizer, seed: Score, seed_s: float, music: Score, device: str) -> float:
    """A token of the music, after the seed and the silence at its end."""
    begun, rest = tokenizer.encode(seed), tokenizer.encode(music)
    silence = tokenizer.silence(seed_s - tokenizer.seconds(begun, seed.quarter_s), seed.quarter_s)
    ids = np.concatenate([[tokenizer.vocab.bos], begun, silence, rest])
    return float(-log_p_of_last(model, ids, len(rest), device).mean())
