"""Arcs: heads look at a chorus's first time, not as far back in a verse, and without them the chorus costs more."""

import numpy as np
import torch

from musictx.generate.open_bundle import open_bundle
from musictx.lessons import run
from musictx.lessons.arcs import STEPS, nats, silent, songs
from musictx.model.packaged import CHORALE, packaged_bundle


def test_two_heads_find_the_first_chorus_and_the_model_needs_them():
    first, second, both, beside, whole = run("arcs", 0.1).rows
    for row in (first, second):
        chorus, verse = (float(cell.rstrip("%")) for cell in row[1:3])
        assert chorus > 40 > 20 > verse
    silenced, untouched, all_heads = (float(row[3]) for row in (both, beside, whole))
    assert silenced > 1.5 * all_heads
    assert abs(untouched - all_heads) < 0.2
    assert abs(float(both[4]) - float(whole[4])) < 0.2  # the verse needs none


def test_only_the_chorus_comes_again_and_a_head_speaks_again_when_it_is_asked_no_more():
    (song,) = songs(1)
    verse, chorus, other, again = song.reshape(4, STEPS, 4)
    assert (again == chorus).all()
    assert not (other == verse).all()
    model, ids = open_bundle(packaged_bundle(CHORALE)).model, torch.arange(40)
    before = nats(model, ids)
    with silent(model, [(3, 1)]):
        assert not np.array_equal(nats(model, ids), before)
    assert np.array_equal(nats(model, ids), before)
