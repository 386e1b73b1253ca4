import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import scores

from musictx.errors import ConfigError, TokenError
from musictx.tokenizers import build_tokenizer, with_added
from musictx.tokenizers.gap import ADDED, clock_of, knows_gaps, most_framing, read_first, split_at, with_gap_clock

PERFORMANCE, CHORALE = (with_gap_clock(with_added(build_tokenizer(name), ADDED)) for name in ("performance", "chorale"))
SHIFT = PERFORMANCE.vocab.offsets["TIME_SHIFT"] - 1  # + hundredths of a second


def ids(*values):
    return np.array(values, np.uint16)


def test_a_shift_across_the_border_becomes_two():
    music = ids(60, SHIFT + 50, 188, SHIFT + 100, SHIFT + 30, 62)  # 0.5 s of a note, then 1.3 s of silence
    for border, before, after in (
        (0.5, [60, SHIFT + 50], [188, SHIFT + 100, SHIFT + 30, 62]),
        (0.2, [60, SHIFT + 20], [SHIFT + 30, 188, SHIFT + 100, SHIFT + 30, 62]),
        (1.0, [60, SHIFT + 50, 188, SHIFT + 50], [SHIFT + 80, 62]),
    ):
        assert [part.tolist() for part in split_at(PERFORMANCE, music, border)] == [before, after]


@given(scores(), st.integers(0, 4000))
def test_both_parts_are_the_whole_and_the_first_is_as_long_as_was_said(score, hundredths):
    music = PERFORMANCE.encode(score)
    before, after = split_at(PERFORMANCE, music, hundredths / 100)
    seconds = PERFORMANCE.seconds(music)
    assert PERFORMANCE.seconds(before) == pytest.approx(min(hundredths / 100, seconds))
    assert PERFORMANCE.seconds(before) + PERFORMANCE.seconds(after) == pytest.approx(seconds)
    assert PERFORMANCE.decode(np.concatenate([before, after])) == PERFORMANCE.decode(music)


@pytest.mark.parametrize("period", [4, 16])
def test_on_a_grid_every_token_is_where_it_sounds_and_at_its_place_in_the_period(period):
    piece = np.arange(4 * 40) % 88  # 40 sixteenths
    for x, start in ((CHORALE.vocab.bos, 0), (7, 4 * period)):
        for border, end in ((1, 2), (5, 37), (20, 33), (23, 23)):
            window = np.concatenate([[x], piece[: 4 * end]]).astype(np.uint16)
            before, after = split_at(CHORALE, window[1:], float(border))
            assert len(before) == 4 * border
            first = read_first(CHORALE, after, len(before), float(clock_of(CHORALE, window)[-1]), period)
            whole = np.concatenate([first, window[:1], before])
            assert len(first) <= len(after) + most_framing(period)
            at = clock_of(CHORALE, whole)
            c = np.flatnonzero(first < CHORALE.vocab.pad)
            assert (np.diff([*at[-len(before) :], *at[c]]) == 0.25).all()  # C right behind, in quarters of a sixteenth
            assert ((c - 1) % period == (start + len(before) + np.arange(len(after))) % period).all()
            assert len(first) % period == 0  # so that A's first token has place 0, as after BOS


def test_a_clock_of_seconds_goes_back_too():
    music = ids(60, SHIFT + 50, 188, SHIFT + 33, 62, SHIFT + 99, 190)
    before, after = split_at(PERFORMANCE, music, 0.7)
    first = read_first(PERFORMANCE, after, len(before), PERFORMANCE.seconds(music), 1)
    said = [PERFORMANCE.vocab.describe(int(i)) for i in first]
    assert said == [
        *("AFTER", "TIME_SHIFT 13", "NOTE_ON 62", "TIME_SHIFT 99", "NOTE_OFF 62"),
        *("BACK_1024 0", "BACK_32 5", "BACK_1 22", "BEFORE"),
    ]
    at = clock_of(PERFORMANCE, np.concatenate([first, [PERFORMANCE.vocab.bos], before]))
    assert at[-1] == pytest.approx(0)
    assert at[1] == pytest.approx(0.13)


def test_a_length_beyond_the_digits_is_said():
    with pytest.raises(TokenError, match=r"^400 .* 327\.67"):
        read_first(PERFORMANCE, ids(60), 0, 400.0, 1)


def test_only_what_marks_time_can_have_gaps():
    assert knows_gaps(CHORALE.vocab)
    assert not knows_gaps(build_tokenizer("chorale").vocab)
    pytest.importorskip("miditok")
    with pytest.raises(ConfigError, match=r"^objective=infill: "):
        with_gap_clock(with_added(build_tokenizer("miditok-remi"), ADDED))
