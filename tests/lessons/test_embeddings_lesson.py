"""Embeddings: chords that go together lie together, and a sum of vectors finds relative minors that no neighbour is."""

import numpy as np

from musictx.lessons import run
from musictx.lessons.embeddings import CHORDS, NUMBER, SPAN, questions, windows
from musictx.music.harmony import Chord


def test_each_question_asks_for_a_relative_minor_of_a_neighbouring_key():
    names = [[str(CHORDS[n]) for n in each] for each in questions()]
    assert ["C", "Am", "G", "Em"] in names
    assert ["C", "Am", "F", "Dm"] in names
    assert len({tuple(each) for each in names}) == 24


def test_every_chord_comes_as_often_as_in_any_other_key():
    chords, neighbours = windows()
    often = chords.bincount(minlength=len(CHORDS)).view(4, 12)  # (quality, root)
    assert (often == often[:, :1]).all()
    assert neighbours.shape == (len(chords), 2 * SPAN)
    assert NUMBER[Chord(7)] == 1  # G is next to C


def test_the_sum_finds_what_the_nearest_chord_is_not():
    finding = run("embeddings", 0.1)
    for _, _, by_sum, by_c, by_b in finding.rows[:2]:
        right, c, b = (int(cell.split()[0]) for cell in (by_sum, by_c, by_b))
        assert right >= 8
        assert right > 2 * max(c, b)
    for line in finding.figure.axes[1].lines:
        cosine = np.asarray(line.get_ydata(), float)
        assert cosine[1] > cosine[3] > cosine[6] - 0.05
