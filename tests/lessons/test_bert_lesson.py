"""BERT: what is masked and joined, that each note sees both sides, and that a short training beats the baselines."""

import torch

from musictx.lessons import run
from musictx.lessons.bert import CLS, HALF, MASK, SEP, Bert, drawn, joined, mask, pairs


def test_a_pair_is_joined_and_masked_as_in_the_paper():
    a, b = torch.full((500, HALF), 60), torch.full((500, HALF), 62)
    ids = joined(a, b)
    assert ids[0].tolist() == [CLS, *[60] * HALF, SEP, *[62] * HALF, SEP]
    hidden, chosen = mask(ids)
    assert (hidden[~chosen] == ids[~chosen]).all()
    assert not chosen[ids >= CLS].any()
    assert 0.13 < chosen[ids < CLS].float().mean() < 0.17
    assert 0.76 < (hidden[chosen] == MASK).float().mean() < 0.84
    assert 0.02 < (hidden[chosen] == 122 - ids[chosen]).float().mean() < 0.08  # half of the other notes


def test_b_follows_a_or_comes_from_another_hymn():
    music = pairs()
    ids, follows = drawn(music, 400)
    assert 0.35 < follows.float().mean() < 0.65
    as_heard = {tuple((row - row[0]).tolist()) for row in music.notes}
    for row, yes in zip(ids, follows, strict=True):
        pair = row[row < CLS]
        assert not yes or tuple((pair - pair[0]).tolist()) in as_heard


def test_the_bass_is_no_arithmetic_on_what_the_encoder_hears():
    music = pairs()
    assert music.notes.shape == music.bass.shape
    heard: dict[tuple[int, ...], set[int]] = {}
    for notes, bass in zip(music.notes, music.bass, strict=True):
        for n in range(1, len(notes) - 1):
            near = notes[n - 1 : n + 2]
            heard.setdefault(tuple((near - near[0]).tolist()), set()).add(int(bass[n]))
    often = [basses for basses in heard.values() if len(basses) > 3]
    assert len(often) > 20  # the same three notes stand over many basses


def test_each_note_sees_both_sides():
    ids = joined(torch.full((1, HALF), 60), torch.full((1, HALF), 62))
    other = ids.clone()
    other[0, HALF] = 70
    model = Bert()
    assert (model(ids) != model(other)).any(-1).all()


def test_a_short_training_is_better_than_chance():
    rows = run("bert", 0.1).rows
    guessed, _, _, key = (int(row[-1][:-1]) for row in rows)
    assert guessed > 14  # the most frequent pitch is 8 % of the notes
    assert key > 16
