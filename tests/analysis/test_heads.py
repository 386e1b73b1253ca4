"""Heads that are built by hand look where they must, and the summary says so."""

import numpy as np
import pytest
import torch

from musictx.analysis.heads import attention_map, attention_to_past, repeats
from musictx.errors import ConfigError
from musictx.model.position.table import Table
from musictx.model.transformer import Block, Transformer, TransformerConfig
from musictx.music.grid import grid_to_score
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer

STEP_S = 0.15


def looking_back(tokenizer, distances):
    """A layer a list of distances, a head a distance: it puts all its weight so many tokens back."""
    config = TransformerConfig(
        vocab_size=tokenizer.vocab.size,
        d_model=8 * len(distances[0]),
        n_layers=len(distances),
        n_heads=len(distances[0]),
        d_ff=8,
        max_distance=200,
    )
    model = Transformer(config).double().eval()
    for block, heads in zip(model.blocks, distances, strict=True):
        assert isinstance(block, Block)
        assert isinstance(block.attend, Table)
        block.qkv.weight.data.zero_()
        block.qkv.bias.data.zero_()
        block.qkv.bias.data[: config.d_model] = 1.0  # queries of ones, keys of zeros
        block.attend.rel.data.zero_()
        for head, distance in enumerate(heads):
            block.attend.rel.data[head, distance] = 30.0
    return model


def see(grid, distances, note, **settings):
    tokenizer = build_tokenizer("chorale")
    score = grid_to_score(np.array(grid, np.int16), 4 * STEP_S)
    ids = tokenizer.encode(score)
    traced = tokenizer.trace(ids, score.quarter_s)
    note = note if note >= 0 else len(traced.score) + note
    return attention_to_past(looking_back(tokenizer, distances), tokenizer, ids, traced, note, **settings), traced


MOVING = [[72 + k % 3, 65 + k % 2, 60 - k % 2, 50 + k % 3] for k in range(12)]  # no note is held


def test_a_head_that_looks_at_the_same_voice_a_step_before():
    # the token that begins a note is predicted by the one before it, 3 back from there is the same voice
    looks, traced = see(MOVING, [[3, 7], [0, 3]], -1)
    n = len(traced.score)
    assert looks.weight.shape == (2, 2, n) == (2, 2, 48)
    before = [int(m) for m in np.flatnonzero(traced.score.onset_s == traced.score.onset_s[-1] - STEP_S)]
    soprano = max(before, key=lambda m: traced.score.pitch[m])
    assert traced.score.pitch[-1] == 74
    np.testing.assert_allclose(looks.weight[0, 0, soprano], 1.0)
    np.testing.assert_allclose(looks.weight[1, 1], looks.weight[0, 0])
    np.testing.assert_allclose(looks.weight.sum(-1), 1.0)


def test_distance_is_in_seconds_and_bos_does_not_count():
    looks, _ = see(MOVING * 5, [[3, 7, 11]], -1)
    np.testing.assert_allclose(looks.distance_s, [[0.15, 0.30, 0.45]], atol=0.02)  # but for the first notes
    late, _ = see(MOVING * 5, [[3, 7, 11]], -1, max_tokens=16)
    assert (late.queries, looks.queries) == (13, 236)  # from the bass before the step on that 16 tokens reach back to
    held, _ = see([[72, 65, 60, 50]] * 12 + [[74, 65, 60, 50]], [[3, 7]], -1)
    assert held.queries == 4
    np.testing.assert_allclose(held.weight[0, :, -2], 1.0)  # the soprano held before is one note


def test_rests_are_no_notes():
    # every note is a soprano: just before it is the bass, before that a rest
    looks, _ = see([[72 + k % 3, 65, -1, 50] for k in range(12)], [[0, 1, 2]], -1)
    np.testing.assert_allclose(looks.weight.sum(-1), [[1, 0, 1]], atol=1e-9)


TUNE = [72, 74, 76, 75, 73, 77]
PERIODIC = [[pitch, -1, -1, -1] for pitch in TUNE * 3]


def test_a_head_that_follows_the_repetition():
    # one period of 6 steps is 24 tokens: 23 back from the token before lies the note after the motif's last occurrence
    looks, _ = see(PERIODIC, [[23, 3]], -1, motif_notes=3)
    assert (looks.queries, looks.repeated) == (17, 9)
    np.testing.assert_allclose(looks.on_repeat, [[1.0, 0.0]], atol=1e-9)
    # 3 notes of the motif and the one after it, among the 4 · n + 1 tokens before note n
    even = np.mean([4 / (4 * n + 1) for n in range(9, 18)])
    assert looks.even_repeat == pytest.approx(even)
    new, _ = see(MOVING[:3], [[3]], -1, motif_notes=8)
    assert (new.repeated, np.isnan(new.on_repeat).all()) == (0, True)


def test_the_first_note_has_nothing_before_it():
    with pytest.raises(ConfigError, match="at=…: "):
        see(PERIODIC, [[0]], 0)


def melody(pitches, step_s=0.5):
    on = np.arange(len(pitches)) * step_s
    return Score(on, on + step_s, pitches, np.full(len(pitches), 80))


def test_a_motif_repeats_in_another_key_and_does_not_overlap_itself():
    found = repeats(melody([60, 62, 64, 50, 65, 67, 69, 55]), 3)
    assert {n: runs.tolist() for n, runs in found.items()} == {7: [[0, 1, 2, 3], [4, 5, 6, 7]]}
    assert repeats(melody([60, 62, 64, 66, 68]), 3) == {}
    assert repeats(melody([60, 62, 1, 60, 62, 1, 60, 62, 1]), 2)[8].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert repeats(melody([60, 62, 64, 66, 68, 70, 72]), 3)[6].tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]


@pytest.mark.parametrize("name", ["performance", "miditok-remi"])
def test_other_encodings(name):
    tokenizer = build_tokenizer(name)
    score = melody(TUNE * 2)
    ids = tokenizer.encode(score)
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=tokenizer.vocab.size, d_model=8, n_layers=1, n_heads=2, d_ff=8))
    looks = attention_to_past(model.eval(), tokenizer, ids, tokenizer.trace(ids, 0.5), 11, motif_notes=3)
    assert 0 < looks.distance_s.min() < looks.distance_s.max() < 5.5
    np.testing.assert_allclose(looks.even_repeat, np.nanmean(looks.on_repeat), rtol=0.2)  # untrained: nearly even
    assert looks.repeated == 3


def test_the_map_of_all_tokens_has_each_head_where_it_looks():
    tokenizer = build_tokenizer("chorale")
    model, ids = looking_back(tokenizer, [[3, 7], [0, 3]]), tokenizer.encode(grid_to_score(np.array(MOVING, np.int16)))
    one, first = attention_map(model, tokenizer, ids, len(ids), layer=0, head=1, most=32)
    assert (one.shape, first) == ((32, 32), 16)  # the newest
    np.testing.assert_allclose(one[7:], np.eye(32)[:-7], atol=1e-3)  # 7 back
    np.testing.assert_allclose(one[:7], 0, atol=1e-3)  # that lies further back than the first column
    whole, first = attention_map(model, tokenizer, ids, len(ids))
    assert (len(whole), first) == (len(ids) + 1, -1)  # BOS
    np.testing.assert_allclose(whole.sum(1), 1)
    assert (whole[np.triu_indices(len(whole), 1)] == 0).all()
    np.testing.assert_allclose([whole[20, 20 - back] for back in (0, 3, 7)], [0.25, 0.5, 0.25], atol=1e-3)


@pytest.mark.parametrize("max_tokens", [2048, 16])
def test_the_map_ends_with_the_weights_that_the_arcs_have(max_tokens):
    tokenizer = build_tokenizer("chorale")
    torch.manual_seed(0)
    size = tokenizer.vocab.size
    config = TransformerConfig(size, 16, n_layers=2, n_heads=2, d_ff=16, position="learned", max_positions=64)
    model = Transformer(config).double().eval()
    score = grid_to_score(np.array(MOVING, np.int16), 4 * STEP_S)
    ids = tokenizer.encode(score)
    traced = tokenizer.trace(ids, score.quarter_s)
    looks = attention_to_past(model, tokenizer, ids, traced, 40, max_tokens=max_tokens)
    weight, first = attention_map(model, tokenizer, ids, int(traced.struck_by[40]), max_tokens=max_tokens)
    owner = [-1 if n < 0 else traced.note[n] for n in range(first, first + len(weight))]
    arcs = [weight[-1][np.array(owner) == note].sum() for note in range(len(score))]
    np.testing.assert_allclose(arcs, looks.weight.mean((0, 1)), atol=1e-12)
