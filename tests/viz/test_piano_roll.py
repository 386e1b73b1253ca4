import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from musictx.notes.score import Score
from musictx.viz.piano_roll import NEW_COLOUR, SEED_COLOUR, piano_roll

SCORE = Score([0, 1, 2, 3], [1, 2, 3, 4], [60, 64, 67, 72], [127] * 4)


def has_colour(image, colour):
    return (np.abs(image[:, :, :3] - to_rgb(colour)).max(-1) < 0.02).sum() > 100


def test_seed_and_continuation_have_two_colours(tmp_path):
    piano_roll([("one", SCORE, 2.0), ("two", SCORE, 2.0)], tmp_path / "roll.png")
    image = imread(tmp_path / "roll.png")
    assert has_colour(image, SEED_COLOUR)
    assert has_colour(image, NEW_COLOUR)
    assert image.shape[1] > 1000
    assert [p.name for p in tmp_path.iterdir()] == ["roll.png"]


def test_panels_stand_below_each_other(tmp_path):
    for n in (1, 3):
        piano_roll([("x", SCORE, 2.0)] * n, tmp_path / f"{n}.png")
    assert imread(tmp_path / "3.png").shape[0] > 2 * imread(tmp_path / "1.png").shape[0]


def test_silence_can_be_drawn_and_no_panel_cannot(tmp_path):
    piano_roll([("silence", Score.empty(), 0.0)], tmp_path / "roll.png")
    with pytest.raises(ValueError, match="at least one panel"):
        piano_roll([], tmp_path / "none.png")
