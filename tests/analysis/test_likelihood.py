import math

import numpy as np
import pytest
import torch
from strategies import split_of

from musictx.analysis.likelihood import negative_log_likelihood, notes_and_seconds, unigram_nll
from musictx.data.store import Split
from musictx.errors import ConfigError, StoreError
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("performance")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Transformer(
        TransformerConfig(vocab_size=TOK.vocab.size, d_model=16, n_layers=1, n_heads=2, d_ff=32, max_distance=8)
    ).eval()


def split():
    rng = np.random.default_rng(0)
    return split_of(*(rng.integers(0, TOK.vocab.n_events, length) for length in (30, 7, 55)))


def test_whole_pieces_equal_the_obvious_sum(model):
    pieces, total = split(), 0.0
    for ids in pieces:
        full = torch.tensor([TOK.vocab.bos, *ids.tolist()])
        with torch.inference_mode():
            log_p = model(full[None, :-1])[0].log_softmax(-1)
        total -= float(log_p[range(len(ids)), full[1:]].double().sum())
    result = negative_log_likelihood(model, pieces, TOK, None)
    assert result.tokens == 92
    assert result.nll == pytest.approx(total / 92, rel=1e-5)


def test_an_empty_split_and_a_segment_of_nothing_are_refused(model):
    empty = Split(np.zeros(0, np.uint16), np.zeros(1, np.int64), [])
    with pytest.raises(StoreError, match="no tokens"):
        negative_log_likelihood(model, empty, TOK, None)
    with pytest.raises(ConfigError, match="^segment=-1: give 1 or more"):
        negative_log_likelihood(model, split(), TOK, -1)


def test_unigram_by_hand():
    train = np.array([0, 0, 1], np.uint16)
    # counts plus one: 3 for id 0, 2 for id 1, 1 for each of the other 386
    expected = -(math.log(3 / 391) + math.log(1 / 391)) / 2
    assert unigram_nll(train, np.array([0, 5], np.uint16), TOK.vocab) == pytest.approx(expected)


@pytest.mark.parametrize("segment", [None, 16])
def test_each_piece_owns_its_nats(model, segment):
    whole = negative_log_likelihood(model, split(), TOK, segment, batch_tokens=40)
    assert (whole.tokens, whole.tokens_of.tolist()) == (92, [30, 7, 55])
    for i, ids in enumerate(split()):
        alone = negative_log_likelihood(model, split_of(ids), TOK, segment)
        assert alone.nats[0] == pytest.approx(whole.nats[i], rel=1e-5)


def test_notes_and_seconds_of_a_piece():
    # velocity, note on 60, half a second, note off 60; then a piece of two notes over one second
    on, off, shift, velocity = (TOK.vocab.offsets[name] for name in ("NOTE_ON", "NOTE_OFF", "TIME_SHIFT", "VELOCITY"))
    one = [velocity + 16, on + 60, shift + 49, off + 60]
    two = [*one, on + 62, shift + 49, off + 62]
    notes, seconds = notes_and_seconds(split_of(np.array(one), np.array(two)), TOK)
    assert notes.tolist() == [1, 2]
    assert seconds.tolist() == [0.5, 1.0]
