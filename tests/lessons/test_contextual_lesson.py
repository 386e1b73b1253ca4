"""Contextual embeddings: each direction knows what it has read, both joined know most."""

import torch

from musictx.lessons import run
from musictx.lessons.contextual import NOTES, BothWays


def test_each_direction_reads_only_its_side():
    pitches = torch.randint(40, 80, (1, NOTES))
    other = pitches.clone()
    other[0, 10] += 1
    model = BothWays()
    (x, f, b), (new_x, new_f, new_b) = model(pitches), model(other)
    changed = [
        (old != new).any(-1)[0].nonzero().flatten().tolist() for old, new in ((x, new_x), (f, new_f), (b, new_b))
    ]
    assert changed == [[10], [*range(10, NOTES)], [*range(11)]]


def test_joined_states_tell_the_degree_of_a_note_that_its_embedding_cannot():
    rows = {name: [int(cell[:-1]) for cell in cells] for name, *cells in run("contextual", 0.1).rows}
    assert rows["both joined"][2] > rows["embedding"][2] + 8
    assert rows["both joined"][2] > rows["forward state"][2]
    assert rows["both joined"][2] > rows["backward state"][2]
    assert rows["embedding"][2] < rows["the most frequent degree"][2] + 8
    assert rows["forward state"][0] < rows["forward state"][1]
    assert rows["backward state"][0] > rows["backward state"][1]
