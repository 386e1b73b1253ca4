"""The table of chords, counted in lead sheets as people write them."""

import numpy as np
import pytest
import tune_chords

from musictx.generate.tune_chords import Table
from musictx.music.harmony import Chord

LEAD = 'X:1\nM:4/4\nL:1/4\nK:C\n"C"c e g e|"F"f a "G7"g f|"C"e "Bdim"d "C"c2|"Am"a4|]\n'


@pytest.fixture
def lead():
    found = tune_chords.lead_of("it.abc", LEAD.encode())
    assert found is not None
    return found


def test_a_lead_sheet_has_the_chord_of_the_middle_of_each_place(lead):
    C, F, G7, AM = (0, 0), (5, 0), (7, 2), (9, 1)
    assert lead.written == [C, C, F, G7, (11, 3), C, AM, AM]
    assert tune_chords.lead_of("it.abc", LEAD.replace('"', "%").encode()) is None


def test_counts_are_of_quarters_chords_and_what_follows(lead):
    table, empty = tune_chords.count([lead]), Table.empty()
    assert (table.notes - empty.notes).sum() == pytest.approx(16.0)
    assert (table.chords - empty.chords).sum() == pytest.approx(8)
    assert table.pairs.sum() == 5  # C F G7 Bdim C Am
    assert (table.stays - empty.stays).tolist() == [[2, 2], [3, 0]]
    assert np.all(table.chords > 0)


def test_agreement_is_of_the_time_with_a_written_chord(lead):
    right = [Chord(root, ("", "m", "7", "dim")[kind]) for root, kind in lead.written]
    assert tune_chords.agreement(lead, right) == {"root": 1.0, "root and third": 1.0, "notes": 1.0}
    minor = [Chord(root, "m") for root, _ in lead.written]
    found = tune_chords.agreement(lead, minor)
    assert found["root"] == 1.0
    assert found["root and third"] == pytest.approx(3 / 8)  # Bdim, and twice Am


def test_chords_are_written_bar_by_bar(lead):
    chords = [Chord(root, ("", "m", "7", "dim")[kind]) for root, kind in lead.written]
    assert tune_chords.as_text(chords, lead, 3) == "C C | F G7 | Bdim C"
