"""Pairs cut by voice: what is read, what is asked for, and the same lower voices for the baselines of one stream."""

import numpy as np
import pytest
import torch

from musictx.errors import ConfigError
from musictx.objectives import build_objective
from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("chorale")
PAD, BOS, EOS = TOK.vocab.pad, TOK.vocab.bos, TOK.vocab.eos
RNG = np.random.default_rng(0)
# two steps of S A T B, then the end of the piece
WHOLE = [BOS, 51, 46, 41, 30, 52, 47, 42, 31]
ENDED = torch.tensor([*WHOLE, EOS, PAD, PAD, PAD])


def asked(name, window=ENDED):
    objective = build_objective(name, None, TOK)
    inputs, targets = objective.example(window, RNG)
    return [x.tolist() for x in inputs], targets.tolist()


def test_the_soprano_goes_in_and_the_others_come_out():
    (source, ids), targets = asked("conditional")
    assert source == [51, 52, PAD]
    assert ids == [BOS, 46, 41, 30, 47, 42, 31, PAD, PAD]
    assert targets == [46, 41, 30, 47, 42, 31, PAD, PAD, PAD]


def test_inside_a_piece_the_bass_before_stands_where_BOS_would():
    (source, ids), targets = asked("conditional", torch.tensor([29, *WHOLE[1:]]))
    assert (source, ids[0], targets) == ([51, 52], 29, [46, 41, 30, 47, 42, 31])


def test_one_stream_reads_the_soprano_first_and_is_asked_for_the_same():
    voices = EOS + 1
    (ids,), targets = asked("melody_first")
    assert ids == [BOS, 51, 52, voices, 46, 41, 30, 47, 42, 31, PAD, PAD, PAD]
    assert targets == [PAD, PAD, PAD, 46, 41, 30, 47, 42, 31, PAD, PAD, PAD, PAD]
    (ids,), targets = asked("melody_first", ENDED[:9])
    assert ids == [BOS, 51, 52, voices, 46, 41, 30, 47, 42]
    assert targets == [PAD, PAD, PAD, 46, 41, 30, 47, 42, 31]


def test_one_stream_that_hears_no_soprano_is_asked_for_the_same():
    (ids,), targets = asked("lower_voices")
    assert ids == [BOS, 46, 41, 30, 47, 42, 31, PAD, PAD]
    assert targets == [46, 41, 30, 47, 42, 31, PAD, PAD, PAD]


@pytest.mark.parametrize("name", ["conditional", "melody_first", "lower_voices"])
def test_what_has_no_voices_or_no_whole_steps_is_refused(name):
    with pytest.raises(ConfigError, match=f"^objective={name}: performance tokens have no voices; choose tokenizer=ch"):
        build_objective(name, None, build_tokenizer("performance"))
    objective = build_objective(name, None, TOK)
    with pytest.raises(ConfigError, match=f"^objective={name}: windows of 7 ids are not whole steps of 4 voices; give"):
        objective.example(ENDED[:8], RNG)
