import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image
from PIL.GifImagePlugin import GifImageFile

from musictx.errors import UserError
from musictx.music.score import Score
from musictx.viz.animate import film, frames
from musictx.viz.figure import INK
from musictx.viz.piano_roll import NEW_COLOUR, SEED_COLOUR

SCORE = Score([0, 1, 2, 3], [1, 2, 3, 4], [60, 64, 67, 72], [127] * 4)


def playhead(shot):
    """Where the line is, in pixels from the left; it alone is as tall as the keyboard."""
    dark = (np.abs(shot.astype(int) - np.array(to_rgb(INK)) * 255) <= 1).all(-1)
    return int(dark.sum(0).argmax())


def share(shot, colour):
    return (np.abs(shot / 255 - to_rgb(colour)) < 0.02).all(-1).mean()


def test_the_line_moves_evenly_and_colours_what_has_sounded():
    shots = list(frames("x", SCORE, 2.0, 0.5))
    assert len(shots) == 8
    assert {shot.shape for shot in shots} == {shots[0].shape}
    assert all(side % 2 == 0 for side in shots[0].shape[:2])
    assert np.ptp(np.diff([playhead(shot) for shot in shots])) <= 1
    assert share(shots[0], SEED_COLOUR) < share(shots[3], SEED_COLOUR)
    assert share(shots[4], NEW_COLOUR) < share(shots[7], NEW_COLOUR)


def test_the_page_turns():
    long = Score([0.0, 16.0], [1.0, 31.0], [60, 64], [80, 80])
    shots = list(frames("x", long, np.inf, 1.0))
    assert len(shots) == 31
    x = [playhead(shot) for shot in shots]
    assert np.ptp([x[0], x[15], x[30]]) <= 2  # labels of other widths move the page by a pixel
    assert x[14] > x[15] + 500


def test_a_gif_lasts_as_long_as_the_music(tmp_path):
    film("x", SCORE, 2.0, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as picture:
        assert isinstance(picture, GifImageFile)
        assert (picture.n_frames, picture.info["duration"], picture.info["loop"]) == (50, 80, 0)
        assert picture.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
        picture.seek(49)
        assert share(np.asarray(picture.convert("RGB")), SEED_COLOUR) > 0.001
    assert (tmp_path / "a.gif").stat().st_size < 200_000
    assert [p.name for p in tmp_path.iterdir()] == ["a.gif"]


def test_an_mp4_has_pictures_and_sound(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    film("x", SCORE, 2.0, tmp_path / "a.mp4")
    reader = ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    facts = next(reader)
    shots = list(reader)
    assert (facts["fps"], facts["audio_codec"], len(shots)) == (25.0, "aac", 100)
    assert facts["source_size"][0] == 900
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]


def test_an_mp4_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match=r"imageio-ffmpeg, .*'musictx\[film\]', .*\.gif"):
        film("x", SCORE, 2.0, tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


def test_silence_is_a_film_of_one_picture_and_music_of_hours_is_none(tmp_path):
    assert len(list(frames("x", Score.empty(), 0.0, 0.08))) == 1
    with pytest.raises(UserError, match="901 s, .*900 s"):
        film("x", Score([0.0], [901.0], [60], [80]), 0.0, tmp_path / "a.gif")
