"""Borders by hand, and real music whole, cut at its borders, and silenced before them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fill_measures import Border, border, summary
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SHARED_DATA, score_of, scores

from musictx.errors import ConfigError, UserError
from musictx.music.grid import grid_to_score
from musictx.music.score import Score


def held_notes_cut(score, at_s):
    """The notes that sound over `at_s` end there and are struck again."""
    held = (score.onset_s < at_s - 0.005) & (score.offset_s > at_s + 0.005)
    rest = score.select(held)
    ended = replace(score, offset_s=np.where(held, at_s, score.offset_s))
    return Score.merge([ended, replace(rest, onset_s=np.full(len(rest), at_s))])


def test_a_note_over_the_border_meets_it():
    held = score_of((0, 2, 60), (4, 7, 64), (6.5, 7, 67))
    assert border(held, 2, 6) == Border(0, 0, 0.0)
    assert border(held, 2, 6).met


def test_a_note_struck_again_on_the_border_is_cut():
    assert border(score_of((3, 6, 60), (6, 7, 60)), 2, 6) == Border(1, 1, 0.0)
    assert border(score_of((3, 6, 60), (3, 6, 64), (6, 7, 62)), 2, 6) == Border(0, 2, 0.0)
    assert border(score_of((1, 6, 60), (6, 7, 60)), 2, 6).cut_notes == 1  # held from before the filled part
    near = score_of((3, 5.996, 60), (6.004, 7, 60))
    assert border(near, 2, 6).cut_notes == 1
    assert border(score_of((3, 6, 60), (5.996, 7, 60)), 2, 6) == Border(1, 1, 0.0)  # struck within the same step
    assert border(score_of((3, 5.99, 60), (6, 7, 60)), 2, 6).cut_notes == 0  # let go a step of 10 ms before
    assert not border(near, 2, 6).met


@pytest.mark.parametrize(
    ("ends_s", "next_s", "silence_s"),
    [
        (5.9, 6.0, 0.1),
        (5.0, 6.25, 1.25),
        (6.0, 6.75, 0.75),  # it begins on the border
        (6.25, 6.75, 0.0),  # it is all of the music after it
        (1.0, 6.0, 4.0),  # no longer than the filled part
    ],
)
def test_silence_has_or_touches_the_border(ends_s, next_s, silence_s):
    got = border(score_of((0, ends_s, 60), (next_s, 8, 64)), 2, 6)
    assert got.silence_s == pytest.approx(silence_s)
    assert got.silent == (silence_s > 0.5)
    assert got.met != got.silent


def test_an_empty_part_is_all_silence():
    assert border(score_of((0, 1, 60), (6, 7, 60)), 2, 6) == border(score_of((6, 7, 60)), 2, 6) == Border(0, 0, 4.0)


@pytest.mark.parametrize(("from_s", "to_s"), [(2, 6), (-1, 3), (3, 3), (3, 2), (float("nan"), 3), (2, float("nan"))])
def test_a_part_with_nothing_after_it_or_without_length_is_refused(from_s, to_s):
    with pytest.raises(ConfigError, match="last onset 5 s"):
        border(score_of((0, 1, 60), (5, 9, 60)), from_s, to_s)
    with pytest.raises(ConfigError, match="last onset 0 s"):
        border(Score.empty(), 0, 1)


def test_the_summary_is_of_borders_with_intervals_over_pieces():
    good, cut, silent = Border(0, 2, 0.5), Border(2, 2, 0.0), Border(0, 0, 0.6)
    got = summary([[good, cut], [good, silent, good, good], []])
    assert {name: value.mean for name, value in got.items()} == pytest.approx(
        {"cut": 1 / 6, "silent": 1 / 6, "met": 4 / 6, "ending_notes": 10 / 6}
    )
    assert got["met"][1:] == pytest.approx((0.5, 0.75))  # of either piece alone
    with pytest.raises(UserError, match="^1 pieces "):
        summary([[]])


@settings(deadline=None, max_examples=50)
@given(scores(), st.floats(0.1, 0.9))
def test_every_note_held_over_a_border_is_cut_when_it_is_struck_again(score, share):
    to_s = share * float(score.onset_s.max(initial=0.0))
    if to_s > 0:
        held = (score.onset_s < to_s - 0.005) & (score.offset_s > to_s + 0.005)
        before, after = border(score, 0, to_s), border(held_notes_cut(score, to_s), 0, to_s)
        assert after.cut_notes >= before.cut_notes + held.sum()
        assert after.silence_s <= before.silence_s


def test_chorales_meet_their_borders_and_spoilt_ones_do_not():
    path = SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {SHARED_DATA}")
    pieces = [grid_to_score(np.array(piece, np.int16)) for piece in json.loads(path.read_text())["valid"]]
    borders = [(score, at_s) for score in pieces for at_s in (6.0, 6.15, 7.2) if at_s <= score.onset_s.max()]
    own = [border(score, 1.2, at_s) for score, at_s in borders]
    cut = [border(held_notes_cut(score, at_s), 1.2, at_s) for score, at_s in borders]
    kept = [score.select((score.onset_s < 1.2) | (score.onset_s > at_s - 0.005)) for score, at_s in borders]
    stopped = [border(score, 1.2, at_s) for score, (_, at_s) in zip(kept, borders, strict=True)]
    assert len(borders) == 228
    assert [sum(b.met for b in found) for found in (own, cut, stopped)] == [209, 43, 0]
    # where one voice takes over the pitch that another leaves, Bach's own notes are struck again too
    assert [sum(b.cut_notes for b in found) for found in (own, cut, stopped)] == [21, 480, 0]
