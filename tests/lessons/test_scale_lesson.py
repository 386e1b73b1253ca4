"""Why the scale: variance grows as the width, the softmax hardens, and the scaled one does not."""

import pytest

from musictx.lessons import run


def test_scores_grow_with_the_width_and_the_scale_undoes_it():
    rows = [[float(cell) for cell in row] for row in run("scale", 0.1).rows]
    for width, variance, _, _, entropy, _, cosine in rows:
        assert variance == pytest.approx(width, rel=0.6)
        assert cosine == pytest.approx(width**-0.5, rel=0.15)
        assert entropy > 0.75
    _, _, hard, small, _, large, _ = rows[-1]
    assert hard < 0.2
    assert small < large
