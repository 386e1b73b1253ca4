import math

import numpy as np
import pytest
import torch

from musictx.analysis.held_out import Beginnings, identify
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer

CHORALE, PERFORMANCE = build_tokenizer("chorale"), build_tokenizer("performance")
STEP_S, STEPS = 0.15, 16


def tune(seed, key=0, step_s=STEP_S):
    pitch = 48 + key + np.random.default_rng(seed).choice([0, 2, 4, 5, 7, 9, 11], (STEPS, 4)) + 12 * np.arange(4)[::-1]
    onset_s = np.repeat(np.arange(STEPS) * step_s, 4)
    return Score(onset_s, onset_s + step_s, pitch.reshape(-1), np.full(4 * STEPS, 80), step_s * 4)


class Echo:
    """Expects what stood `lag` tokens ago."""

    window, cycle = None, 1

    def __init__(self, vocab, lag):
        self.vocab, self.lag, self.read = vocab, lag, []

    def __call__(self, ids):
        self.read.append(ids[0].tolist())
        logits = torch.zeros(*ids.shape, self.vocab.size)
        for t in range(self.lag, ids.shape[1] + 1):
            logits[0, t - 1, ids[0, t - self.lag]] = 9.0
        return logits


class Blank(Echo):
    def __call__(self, ids):
        return torch.zeros(*ids.shape, self.vocab.size)


PIECES = Beginnings([tune(k, k % 5) for k in range(12)], [tune(k, k % 5) for k in range(12)], STEPS * STEP_S, 2.4)


def test_a_model_that_remembers_knows_the_true_continuation_and_one_that_does_not_guesses():
    lag = len(CHORALE.encode(tune(0)))
    found = identify(Echo(CHORALE.vocab, lag), CHORALE, PIECES)
    assert found.right == (1.0, 1.0, 1.0)
    assert found.nats.shape == (12, 10)
    assert found.nats[:, 0] == pytest.approx(0.0, abs=0.05)
    blank = identify(Blank(CHORALE.vocab, lag), CHORALE, PIECES)
    assert blank.right.mean == pytest.approx(0.1)
    assert blank.nats == pytest.approx(math.log(CHORALE.vocab.size), rel=1e-5)


def test_what_is_offered_is_in_the_seeds_key_and_pace():
    scale = {0, 2, 4, 5, 7, 9, 11}
    slow = Beginnings([tune(k) for k in range(3)], [tune(k + 5, 1 + k, STEP_S * 1.5) for k in range(3)], 2.4, 3.6)
    model = Echo(PERFORMANCE.vocab, 1)
    identify(model, PERFORMANCE, slow, others=2)
    begun = len(PERFORMANCE.encode(tune(0)))
    for n, ids in enumerate(model.read):
        score = PERFORMANCE.decode(np.array(ids[1 + begun :]))
        if n % 3:  # another piece's
            assert {int(p) % 12 for p in score.pitch} <= scale
            assert score.onset_s.max() == pytest.approx(15 * STEP_S, rel=0.1)
        else:
            assert score.onset_s.max() == pytest.approx(15 * STEP_S * 1.5, rel=0.1)


def test_the_others_are_other_pieces_and_a_function_of_the_seed():
    one, two, other = (identify(Echo(CHORALE.vocab, 64), CHORALE, PIECES, random_seed=s).nats for s in (0, 0, 1))
    assert one.tolist() == two.tolist() != other.tolist()
    assert (one[:, 1:] > one[:, :1] + 1).all()  # none is the piece itself
