"""studies/alive_measures.py: each measure on a few notes, by hand."""

import alive_measures as measures
import numpy as np
import pytest
from alive_measures import Setting, measure
from strategies import score_of

from musictx.music.beat_grid import grid_by_name
from musictx.music.score import Meter, Score

METER = Meter(0.5)  # a bar of 2 s
AT = Setting(METER, grid_by_name("1/16"), 8.0, 16.0)
BAR = ((0, 1, 60), (1, 2, 64), (2, 3, 67), (3, 4, 72))  # a note a beat
PHRASE = tuple(
    (k, k + 1, pitch) for k, pitch in enumerate((60, 62, 64, 65, 67, 69, 71, 72, 74, 72, 71, 67, 69, 65, 62, 60))
)


def music(notes, from_beat=0, times=1, per=None):
    """Notes in beats, so many times one after the other."""
    per = len(notes) if per is None else per
    moved = [(on + from_beat + k * per, off + from_beat + k * per, key) for k in range(times) for on, off, key in notes]
    return score_of(*moved, unit_s=0.5)


SEED = music(PHRASE)


def test_a_copy_is_copied_and_as_dense_and_high_and_full_as_its_seed():
    found = measure(SEED, music(PHRASE, 16), AT)
    assert found == {
        "on grid": 1.0,
        "starts at a bar": 1.0,
        "begins a bar": 1.0,
        "copied": 1.0,
        "longest copy": 16,
        "looped": 0.0,
        "one key": 1,
        "density": 1.0,
        "beyond range": 0.0,
        "in key": 1.0,
        "wait": 0.5,
        "hanging": 0,
        "polyphony": 1.0,
    }


def test_a_loop_of_a_bar_comes_again_but_is_no_copy():
    found = measure(SEED, music(BAR, 16, 4), AT)
    assert found["looped"] == pytest.approx(5 / 9)  # nine runs of eight notes, of which four are new
    assert (found["copied"], found["longest copy"]) == (0.0, 1)


def test_new_music_that_is_half_a_copy():
    half = Score.merge([music(PHRASE[:6], 16), music(tuple((on, off, key + 1) for on, off, key in PHRASE[6:]), 16)])
    found = measures.copied_runs(SEED, half, METER)
    assert (found.share, found.longest) == (3 / 13, 6)  # of thirteen runs those of the first six onsets


@pytest.mark.parametrize(("off_s", "copied"), [(0.0, 1.0), (0.02, 1.0), (0.1, 0.0)])
def test_a_copy_may_be_a_little_off_the_grid_but_has_its_rhythm(off_s, copied):
    late = music(PHRASE, 16)
    walk = np.arange(16) % 2 * off_s
    late = Score(late.onset_s + walk, late.offset_s + walk, late.pitch, late.velocity)
    assert measures.copied_runs(SEED, late, METER).share == copied


def test_chords_are_copied_whole():
    chords = tuple((k, k + 1, key) for k in range(4) for key in (60 + k, 64 + k))
    without_one = music(chords[:-1], 8, per=4)
    assert measures.copied_runs(music(chords), music(chords, 8), METER).share == 1.0
    assert measures.copied_runs(music(chords), without_one, METER).longest == 3


def test_a_runaway_of_one_key():
    runaway = score_of(*((8 + k / 8, 8 + (k + 1) / 8, 100) for k in range(64)))
    found = measure(SEED, runaway, AT)
    assert (found["one key"], found["density"], found["beyond range"]) == (64, 4.0, 26.0)
    assert found["looped"] == pytest.approx(1 - 1 / 57)
    under_a_tune = Score.merge([music(tuple((k, k + 1, 40) for k in range(16)), 16), music(PHRASE, 16)])
    assert measures.one_key(under_a_tune) == 16


def test_notes_off_the_grid_and_off_the_bar():
    walks = score_of((8.01, 9, 60), (9, 10, 62), (10.0005, 11, 64), (11.13, 12, 65))
    assert (measures.on_grid(walks, AT), measures.begins_bar(walks, AT)) == (0.5, 0.0)
    assert measures.on_grid(walks, AT._replace(grid=None)) is None
    on_beat = AT._replace(from_s=8.5)
    assert [measures.starts_at_bar(each) for each in (AT, on_beat)] == [1.0, 0.0]


def test_waits_hanging_notes_and_voices():
    still = score_of((8, 17, 60), (8, 12, 64), (9, 10, 67))
    found = measure(SEED, still, AT)
    assert (found["wait"], found["hanging"]) == (7.0, 1)
    assert found["polyphony"] == pytest.approx(14 / 9)
    assert found["density"] == pytest.approx(3 / 8 / 2)


@pytest.mark.parametrize(
    ("seed", "pitches", "share"),
    [(SEED, (60, 62, 61, 66), 0.5), (music(((0, 4, 57), (4, 6, 60), (6, 8, 64), (8, 9, 68))), (57, 59, 67, 68), 1.0)],
)
def test_the_share_in_the_key_of_the_seed(seed, pitches, share):
    assert measures.in_key(seed, score_of(*((8 + k, 9 + k, key) for k, key in enumerate(pitches)))) == share


def test_no_new_music_has_no_figure_but_its_wait():
    found = measure(SEED, Score.empty(), AT)
    assert {name for name, value in found.items() if value is None} == {
        "on grid", "begins a bar", "copied", "looped", "beyond range", "in key", "polyphony"
    }  # fmt: skip
    assert (found["density"], found["wait"]) == (0.0, 8.0)
