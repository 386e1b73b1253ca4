"""objective=voices: which voices are read, and which count."""

import numpy as np
import pytest
import torch

from musictx.errors import ConfigError
from musictx.music.grid import VOICE_SETS, VOICES
from musictx.objectives import build_objective
from musictx.objectives.voices import REGION_SHARE, SOPRANO_SHARE, Voices
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer

TOK = ChoraleTokenizer()
PAD, BOS, EOS = TOK.vocab.pad, TOK.vocab.bos, TOK.vocab.eos
# two steps of S A T B, then the end of the piece
WINDOW = torch.tensor([BOS, 51, 46, 41, 30, 52, 47, 42, 31, EOS, PAD, PAD, PAD])


def asked(given, window=WINDOW, seed=0):
    objective = build_objective("voices", {"given": given}, TOK)
    (source, ids), targets = objective.example(window, np.random.default_rng(seed))
    return source.tolist(), ids.tolist(), targets.tolist()


def test_given_voices_are_read_and_the_others_count():
    source, ids, targets = asked("AB")
    assert source == [PAD, 46, PAD, 30, PAD, 47, PAD, 31, PAD, PAD, PAD, PAD]
    assert ids == [BOS, 51, 46, 41, 30, 52, 47, 42, 31, PAD, PAD, PAD]
    assert targets == [51, PAD, 41, PAD, 52, PAD, 42, PAD, PAD, PAD, PAD, PAD]


def test_every_id_is_either_given_or_asked_for():
    window = torch.cat([torch.tensor([BOS]), torch.arange(40)])
    seen = set()
    for seed in range(400):
        source, ids, targets = (np.array(x).reshape(-1, 4) for x in asked("any", window, seed))
        given = source != PAD
        assert (np.where(given, source, targets) == np.arange(40).reshape(-1, 4)).all()
        assert ((targets == PAD) == given).all()
        assert ids.flatten().tolist() == window[:-1].tolist()
        seen.add("".join(VOICES[v] for v in given.all(0).nonzero()[0]))
    assert set(VOICE_SETS) <= seen


def test_the_shares_of_what_is_given():
    objective = Voices(TOK)
    grids = [objective.choose(30, np.random.default_rng(seed)) for seed in range(2000)]
    whole = [g for g in grids if (g == g[0]).all()]
    assert 1 - len(whole) / 2000 == pytest.approx(REGION_SHARE, abs=0.05)
    only_soprano = np.mean([g[0].tolist() == [True, False, False, False] for g in whole])
    assert only_soprano == pytest.approx(SOPRANO_SHARE + (1 - SOPRANO_SHARE) / len(VOICE_SETS), abs=0.05)
    for region in grids:
        if not (region == region[0]).all() and region[0].all():  # all is given, then less, then all again
            assert (np.diff(region.all(1).astype(int)) == -1).sum() <= 1


def test_every_example_asks_for_something():
    for seed in range(100):  # most of the window is after the piece
        source, _, targets = (np.array(x) for x in asked("any", torch.cat([WINDOW, torch.full((40,), PAD)]), seed))
        assert (targets != PAD).any()
        assert (targets[8:] == PAD).all()
        assert (source[8:] == PAD).all()


def test_wrong_voices_and_wrong_tokens_are_refused():
    with pytest.raises(ConfigError, match="given="):
        asked("BA")
    with pytest.raises(ConfigError, match="^objective=voices: performance tokens"):
        build_objective("voices", None, PerformanceTokenizer())
