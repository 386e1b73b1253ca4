"""Which gaps `studies/fill.py` measures."""

import sys

import numpy as np
from conftest import ROOT

from musictx.analysis.fill import TrueGap
from musictx.music.score import Meter, Score
from musictx.sampling.gap import Gap

sys.path.insert(0, str(ROOT / "studies"))
from fill import spread

NOTHING = np.zeros(0, np.uint16)


def test_the_pieces_that_are_measured_are_spread_evenly_and_keep_all_their_gaps():
    gap = Gap(Score.empty(), NOTHING, NOTHING, 1.0, 2.0, Meter(0.5))
    found = [TrueGap(piece, gap, NOTHING) for piece in (0, 0, 2, 2, 3, 3, 7, 7, 9, 9)]
    assert [each.piece for each in spread(found, 3)] == [0, 0, 3, 3, 9, 9]
    assert [each.piece for each in spread(found, 2)] == [0, 0, 9, 9]
    assert spread(found, None) == spread(found, 99) == found
