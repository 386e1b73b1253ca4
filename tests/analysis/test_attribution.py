"""Which notes decided on a label: a task whose answer is planted."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from musictx.analysis.attribution import log_odds, log_odds_falls, split, without
from musictx.analysis.embedding import Embedder, passages
from musictx.analysis.folds import LabelledVectors
from musictx.model.build import build_model, model_config
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer

LENGTH_S = 5.0
PLANTED = 61  # the pitch that decides


def tune(seed, planted, notes=40):
    """Random white keys, ten of them at random places replaced by the planted pitch or by a neighbour."""
    rng = np.random.default_rng(seed)
    pitch = rng.choice([60, 62, 64, 65, 67, 69, 71, 72], notes)
    pitch[rng.choice(notes, 10, replace=False)] = PLANTED if planted else 66
    onset_s = np.arange(notes) * 0.25
    return Score(onset_s, onset_s + 0.2, pitch, np.full(notes, 80))


@pytest.fixture(scope="module")
def hear():
    torch.manual_seed(0)
    tokenizer = build_tokenizer("performance")
    sizes = {"vocab_size": tokenizer.vocab.size, "d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 32}
    model: Any = build_model(model_config("transformer", sizes)).eval()
    return Embedder(model, tokenizer).vectors


@pytest.fixture(scope="module")
def layer(hear):
    """Fitted to 40 tunes, half of them with the planted pitch."""
    vectors = hear([tune(seed, seed % 2) for seed in range(40)])
    return LabelledVectors(vectors, np.arange(40), np.arange(40) % 2, np.arange(40)).fit(2, [1e-3])[0]


@pytest.mark.parametrize("readings", [200, 50])
def test_the_ten_notes_that_are_named_decide_more_than_ten_others(hear, layer, readings):
    score, read = tune(99, True), Mock(side_effect=hear)
    heard = list(passages(score, LENGTH_S, LENGTH_S / 2))
    fall = log_odds_falls(score, heard, LENGTH_S, read, layer, 1, readings)
    assert sum(len(call.args[0]) for call in read.call_args_list) <= readings + len(heard)
    assert fall.shape == (40,)
    ranked = np.argsort(-np.nan_to_num(fall))
    assert (score.pitch[ranked[:10]] == PLANTED).mean() >= (0.8 if readings == 200 else 0.5)

    def odds(notes):
        kept = without(score, notes)
        parts = [kept.clip(p.from_s, p.from_s + LENGTH_S) for p in heard]
        return float(log_odds(layer.logits(hear(parts).mean(0)), 1))

    whole, rng = odds(np.array([], int)), np.random.default_rng(0)
    named = whole - odds(ranked[:10])
    others = [whole - odds(rng.choice(ranked[10:], 10, replace=False)) for _ in range(5)]
    assert named > 2 * max(others)
    assert named > 0


def test_one_note_left_out_is_its_own_change(hear, layer):
    score = tune(3, True, 12)
    fall = log_odds_falls(score, [*passages(score, LENGTH_S, LENGTH_S)], LENGTH_S, hear, layer, 1, 12)
    before, after = log_odds(layer.logits(hear([score, without(score, np.array([4]))])), 1)
    assert fall[4] == pytest.approx(before - after, abs=1e-4)


def test_notes_outside_the_passages_have_no_change(hear, layer):
    score = tune(3, True)
    first = next(passages(score, LENGTH_S, LENGTH_S))
    fall = log_odds_falls(score, [first], LENGTH_S, hear, layer, 1, 100)
    np.testing.assert_array_equal(np.isnan(fall), score.onset_s >= LENGTH_S)


def test_parts_are_small_and_never_a_whole_passage():
    assert [len(part.notes) for part in split([4, 2], 6)] == [1] * 6
    parts = split([50, 4, 31], 12)
    assert len(parts) <= 12
    for passage, size in enumerate([50, 4, 31]):
        notes = [part.notes for part in parts if part.passage == passage]
        assert len(notes) >= 2
        np.testing.assert_array_equal(np.concatenate(notes), np.arange(size))


def test_log_odds_of_known_logits():
    assert log_odds(np.log([0.2, 0.3, 0.5]), 2) == pytest.approx(0.0)
    np.testing.assert_allclose(log_odds(np.log([[0.8, 0.2], [0.5, 0.5]]), 0), [np.log(4), 0])
