import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.errors import ConfigError, UserError
from musictx.generate.primer import Part, choose_primer
from musictx.music.score import Meter, Score

# eight quarters of half a second, each held for 0.4 s: two bars of four
MUSIC = Score(np.arange(8) * 0.5, np.arange(8) * 0.5 + 0.4, np.arange(60, 68), np.full(8, 80), 0.5)


def choose(**amounts):
    primer = choose_primer(MUSIC, amounts.pop("meter", Meter(0.5)), Part(**amounts))
    return primer.score.pitch.tolist(), float(primer.score.onset_s[0]), pytest.approx(primer.end_s)


@pytest.mark.parametrize(
    ("amounts", "pitches", "begin_s", "end_s"),
    [
        ({}, range(60, 68), 0, 3.9),
        ({"seconds": 1.2}, [60, 61, 62], 0, 1.2),
        ({"seconds": 99.0}, range(60, 68), 0, 3.9),
        ({"seconds": 0.9, "side": "end"}, [66, 67], 0, 0.9),
        ({"bars": 1}, range(60, 64), 0, 2.0),
        ({"bars": 2}, range(60, 68), 0, 4.0),
        ({"bars": 9}, range(60, 68), 0, 4.0),
        ({"bars": 1, "side": "end"}, range(64, 68), 0, 2.0),
        ({"bars": 1, "meter": Meter(0.5, (3, 4))}, [60, 61, 62], 0, 1.5),
        ({"bars": 1, "side": "end", "meter": Meter(0.5, (3, 4))}, [66, 67], 0, 1.5),
        ({"bars": 1, "meter": Meter(0.5, lines_s=np.array([0, 1.0, 3.0, 5.0]))}, [60, 61], 0, 1.0),
        ({"seconds": 1.2, "side": "end", "on_beat": True}, [65, 66, 67], 0, 1.4),
        ({"seconds": 0.9, "side": "end", "on_beat": True}, [66, 67], 0, 0.9),
        ({"seconds": 1.2, "on_beat": True}, [60, 61, 62], 0, 1.2),
    ],
)
def test_the_part_asked_for_and_the_moment_it_ends(amounts, pitches, begin_s, end_s):
    assert choose(**amounts) == (list(pitches), begin_s, end_s)
    cut = choose_primer(MUSIC, Meter(0.5), Part(seconds=1.2)).score
    assert cut.offset_s.tolist() == pytest.approx([0.4, 0.9, 1.2])


FINISHED = Score.merge([MUSIC, Score(np.arange(8, 13) * 0.5, [4.5, 5, 5.5, 6, 9], np.full(5, 72), np.full(5, 80))], 0.5)


def test_a_finished_piece_ends_before_its_ending_where_it_is_taken_whole_or_from_its_end():
    whole = choose_primer(FINISHED, Meter(0.5))
    assert (whole.end_s, whole.left_out_s, len(whole.score)) == (6.0, 6.0, 12)
    last = choose_primer(FINISHED, Meter(0.5), Part(seconds=1.2, side="end"))
    assert (round(last.end_s, 6), last.left_out_s, len(last.score)) == (1.2, 6.0, 2)
    for part in (Part(until_s=9.0), Part(seconds=7.0), Part(until_s=4.2)):
        chosen = choose_primer(FINISHED, Meter(0.5), part)
        assert chosen.left_out_s is None
        assert chosen.end_s == pytest.approx(min(part.until_s or 7.0, 9.0))
    assert choose_primer(FINISHED, Meter(0.5), Part(until_s=4.2, on_beat=True)).end_s == 4.0
    on_grid = choose_primer(Score.merge([FINISHED], 0.8), Meter(0.8), Part(on_beat=True))
    assert on_grid.left_out_s == on_grid.end_s == pytest.approx(5.6), "the beat where new music begins"


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize(
    ("amount", "pitches", "end_s"),
    [
        ({"seconds": 1.0}, [62, 63], 1.0),
        ({"bars": 1}, [60, 61, 62, 63], 2.0),
        ({"seconds": 9.0}, [60, 61, 62, 63], 2.0),
    ],
)
def test_a_part_before_a_chosen_moment_is_the_last_of_it(side, amount, pitches, end_s):
    primer = choose_primer(MUSIC, Meter(0.5), Part(**amount, side=side, until_s=2.0))
    assert primer.score.pitch.tolist() == pitches
    assert primer.end_s == pytest.approx(end_s)


@given(st.floats(0.02, 1e4), st.floats(0, 1e9))
def test_a_moment_beyond_the_music_is_refused_and_the_last_one_that_a_refusal_names_is_not(lasts_s, more_s):
    score = Score([0.0], [lasts_s], [60], [80])
    with pytest.raises(ConfigError, match="^from_s=.*where the music ends") as refusal:
        choose_primer(score, Meter(), Part(until_s=lasts_s + 0.02 + more_s))
    (last,) = re.findall(r"at most ([\d.]+),", str(refusal.value))
    assert choose_primer(score, Meter(), Part(until_s=float(last))).end_s == pytest.approx(lasts_s, abs=0.01)


def test_a_part_without_notes_is_refused():
    late = Score([5.0], [6.0], [60], [80])
    with pytest.raises(UserError, match="seed_seconds="):
        choose_primer(late, Meter(), Part(seconds=2.0))
    with pytest.raises(UserError, match="seed_bars="):
        choose_primer(late, Meter(), Part(bars=1))
