import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.legend import Legend

from musictx.errors import UserError
from musictx.music.score import Bars, Filled, Score
from musictx.viz.piano_roll import boxes, piano_roll, plot_attribution, plot_rolls, rows_of, shades

SCORE = Score([0, 1, 2, 3], [1, 2, 3, 4], [60, 64, 67, 72], [127] * 4)


def tick_labels(axes):
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_xticklabels()]


@pytest.mark.parametrize(("suffix", "start"), [(".PNG", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_the_suffix_is_the_format_and_the_bytes_are_the_same_again(tmp_path, suffix, start):
    for name in ("a", "b"):
        piano_roll([("x", SCORE, 2.0)], tmp_path / f"{name}{suffix}")
    a, b = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b"))
    assert a.startswith(start)
    assert a == b


def test_another_format_is_refused_and_silence_can_be_drawn(tmp_path):
    with pytest.raises(UserError, match=r"roll.bmp:"):
        piano_roll([("x", SCORE, 2.0)], tmp_path / "roll.bmp")
    piano_roll([("silence", Score.empty(), 0.0)], tmp_path / "roll.png")


def test_bar_lines_have_the_numbers_of_musicians_and_seconds_stand_below():
    score = Score([0.0], [6.0], [60], [80])
    (axes,) = plot_rolls([("x", score, 0.0)], Bars(np.array([0.0, 0.5, 2.5, 6.0]), np.arange(4))).axes
    assert tick_labels(axes) == ["1", "2", "3"]  # an upbeat has no number
    np.testing.assert_allclose(axes.get_xticks(), [0.5, 2.5, 6.0])
    drawn = [c.get_segments() for c in axes.collections if isinstance(c, LineCollection)]
    assert [0.0, 0.5, 2.5, 6.0] in [[line[0][0] for line in lines] for lines in drawn]
    assert {"0", "2", "4", "6"} <= {label.get_text() for label in axes.get_xticklabels(minor=True)}
    assert axes.get_xlabel() == "bars, and seconds"
    many = Bars(np.arange(0.0, 6.1, 0.1), np.arange(1, 62))
    (axes,) = plot_rolls([("x", score, 0.0)], many).axes
    assert tick_labels(axes)[:3] == ["1", "3", "5"]  # of many not all
    (axes,) = plot_rolls([("x", score, 0.0)], many, width_in=5.0).axes
    assert tick_labels(axes)[:3] == ["1", "9", "17"]


def test_long_music_continues_in_further_rows_that_begin_at_whole_seconds():
    long = Score([0.0, 149.0], [1.0, 150.5], [60, 64], [80, 80])
    rows = plot_rolls([("x", long, 0.0)]).axes
    assert [round(axes.get_xlim()[0], 6) for axes in rows] == [0, 51, 102]
    assert [sum(len(c.get_paths()) for c in axes.collections) for axes in rows] == [2, 0, 2]  # a note and its strike
    assert "1:00" in tick_labels(rows[1])
    assert rows_of(150.5, 20.0)[0] == 8
    assert rows_of(86_400.0) == (40, 2160.0)  # rows grow instead


def test_louder_is_darker():
    pale, middle, full = shades(np.array([1, 64, 127]), "#0072B2")
    np.testing.assert_allclose(full, to_rgb("#0072B2"))
    assert pale.sum() > middle.sum() > full.sum()


def test_no_note_is_too_thin_to_see_and_repeated_notes_stay_apart():
    score = Score([0.0, 1.0, 2.0], [0.0, 2.0, 3.0], [60, 60, 60], [80] * 3)
    corners = boxes(score, 12.0)
    left, right = corners[:, 0, 0], corners[:, 1, 0]
    assert (right - left).min() > 0.005
    assert right[1] < left[2]
    np.testing.assert_allclose(corners[0, [0, 2], 1], [59.58, 60.42])


def dashed_s(axes):
    return [float(line.get_xdata()[0]) for line in axes.lines if line.get_linestyle() == "--"]


def words(figure):
    return [text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()]


@pytest.mark.parametrize(
    ("new", "borders_s", "said"),
    [
        (2.0, [2.0], ["seed", "continuation"]),
        (Filled(SCORE.pitch == 67, 1.5, 3.25), [1.5, 3.25], ["kept", "new"]),
        (Filled(SCORE.pitch == 60, 0.0, 1.5), [1.5], ["kept", "new"]),  # no line where the music begins
        (SCORE.pitch == 67, [], ["melody", "voices"]),
        (Filled(SCORE.pitch == 0, 1.5, 3.25), [1.5, 3.25], []),  # filled with silence
    ],
)
def test_lines_are_at_the_borders_of_what_is_new_and_words_say_it(new, borders_s, said):
    figure = plot_rolls([("x", SCORE, new)])
    assert dashed_s(figure.axes[0]) == borders_s
    assert words(figure) == said


def test_a_vector_picture_keeps_its_words_and_dollars_are_no_mathematics(tmp_path):
    piano_roll([(r"q$\frac$", SCORE, 2.0)], tmp_path / "roll.svg")
    plot_attribution(r"a$x^$", SCORE, np.ones(4), [0], tmp_path / "attribution.svg", r"log-odds of $\frac$", 0.5)
    for name, said in (("roll", {r"q$\frac$", "seed", "seconds", "C4"}), ("attribution", {r"log-odds of $\frac$"})):
        assert said <= {e.text for e in ET.parse(tmp_path / f"{name}.svg").iter() if e.tag.endswith("text")}


def strip(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("width_in", [12.0, 5.0])
def test_chords_are_named_above_their_time_with_their_share_where_there_is_room(width_in):
    chords = [("C", 1.0, 4.0, 2 / 3), ("F#m7b5", 4.0, 7.0, None), ("G", 7.0, 7.1, 1.0), ("Am", 7.1, 9.0, 0.0)]
    long = Score([0.0, 1.0], [1.0, 9.0], [60, 64], [80, 80])
    figure = plot_rolls([("x", long, 1.0)], None, 6.0, [chords], width_in)
    first, second = figure.axes  # 6 and 3 seconds
    assert strip(first) == ["C 67%", "F#m7b5"]
    assert strip(second) == ["F#m7b5", *["G"] * (width_in == 12), "Am 0%"]
    assert figure.get_size_inches()[0] == width_in
    assert words(figure) == ["seed", "continuation", "chord asked for, and its share of the sound"]
    assert first.get_ylim()[1] > plot_rolls([("x", long, 1.0)]).axes[0].get_ylim()[1] + 2


def test_a_panel_without_chords_beside_one_with_them():
    figure = plot_rolls([("x", SCORE, 2.0), ("y", SCORE, 2.0)], chords=[[("C", 2.0, 4.0, 1.0)], []])
    assert [strip(axes) for axes in figure.axes] == [["C 100%"], []]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
