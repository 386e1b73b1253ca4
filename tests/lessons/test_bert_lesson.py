"""BERT: what is masked and joined, that each note sees both sides, and that a short training beats the baselines."""

import torch

from musictx.lessons import run
from musictx.lessons.bert import CLS, HALF, MASK, SEP, Bert, drawn, joined, mask, motion, pairs


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
    notes, of, _ = pairs()
    ids, follows = drawn(notes, of, 400)
    assert 0.35 < follows.float().mean() < 0.65
    as_heard = {tuple((row - row[0]).tolist()) for row in notes}
    for row, yes in zip(ids, follows, strict=True):
        pair = row[row < CLS]
        assert not yes or tuple((pair - pair[0]).tolist()) in as_heard


def test_motion_is_that_to_the_next_note():
    assert motion(torch.tensor([[60, 60, 58, 59, 55, 60]])).tolist() == [[0, 1, 2, 3, 4]]


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
