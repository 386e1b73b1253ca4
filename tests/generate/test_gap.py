import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scores
from stubs import noise

from musictx.errors import ConfigError, UserError
from musictx.generate.draw import continue_primers
from musictx.generate.gap import Gap, cut_gap, fill, gap_prompt, ids_in_gap, join_with_gap, step_s, tokens_in
from musictx.generate.requests import UNSAID, Continue, Length, Sampling
from musictx.music.grid import grid_to_score
from musictx.music.score import Meter, Score
from musictx.tokenizers import with_added
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.gap import ADDED, clock_of, split_at, step_of, with_gap_clock
from musictx.tokenizers.performance import PerformanceTokenizer

PERFORMANCE = with_gap_clock(with_added(PerformanceTokenizer(), ADDED))
CHORALE = with_gap_clock(with_added(ChoraleTokenizer(), ADDED))
METER = Meter(0.5)
HELD = Score([0.0, 0.5, 1.0, 2.5], [3.0, 1.2, 2.2, 3.0], [48, 60, 64, 67], [70, 80, 90, 60])  # 48 sounds throughout


def gap_of(score=HELD, from_s=1.0, to_s=2.0, tokenizer=PERFORMANCE) -> Gap:
    return cut_gap(score, score, from_s, to_s, METER, tokenizer)


def notes(score):
    columns = (score.onset_s.round(3), score.offset_s.round(3), score.pitch, score.velocity)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def words(*events, vocab=PERFORMANCE.vocab):
    """Ids of events in words, as in `60 on`, `60 off`, or hundredths of a second."""
    ids = [
        vocab.id("TIME_SHIFT", event)
        if isinstance(event, int)
        else vocab.id("NOTE_ON" if event.endswith(" on") else "NOTE_OFF", int(event.split()[0]))
        for event in events
    ]
    return np.array(ids, np.uint16)


def filled(gap, events):
    return fill(gap, ids_in_gap(gap, words(*events), PERFORMANCE), PERFORMANCE, None)


def test_what_is_in_the_gap_goes_and_what_reaches_into_it_is_cut_unless_the_new_music_has_it():
    gap = gap_of()
    assert (gap.from_s, gap.to_s) == (1.0, 2.0)
    assert notes(gap.notes) == notes(HELD)  # 64 reaches out of the gap
    score, new = filled(gap, ["48 off", "60 off", 100])
    assert notes(score) == [
        *[(0.0, 1.0, 48, 70), (0.5, 1.0, 60, 80)],
        *[(2.0, 2.2, 64, 90), (2.0, 3.0, 48, 70), (2.5, 3.0, 67, 60)],
    ]
    assert not new.any()
    score, new = filled(gap, [10, "60 off", 20, "64 on", 70])  # 48 is held throughout, 64 until it is let go
    assert notes(score) == [(0.0, 3.0, 48, 70), (0.5, 1.1, 60, 80), (1.3, 2.2, 64, 78), (2.5, 3.0, 67, 60)]
    assert [int(pitch) for pitch in score.pitch[new]] == [64]
    score, new = filled(gap, ["60 off", 50, "48 off", "72 on", 30, "48 on", 99])  # too long: cut at the border
    assert notes(score) == [
        *[(0.0, 1.5, 48, 70), (0.5, 1.0, 60, 80), (1.5, 2.0, 72, 78), (1.8, 3.0, 48, 78)],
        *[(2.0, 2.2, 64, 90), (2.5, 3.0, 67, 60)],
    ]
    assert score.pitch[new].tolist() == [72, 48]


def test_a_new_note_rings_over_the_second_border_until_it_is_let_go_or_struck_again():
    ids = words("48 off", "60 off", "70 on", "67 on", "71 on", 100, 30, "70 off", 50)
    score, new = fill(gap_of(), ids, PERFORMANCE, None)
    rung = {int(p): round(float(off), 3) for p, off in zip(score.pitch[new], score.offset_s[new], strict=True)}
    assert rung == {70: 2.3, 67: 2.5, 71: 2.8}  # let go, struck again by the file, still down with the last id


def test_a_note_that_no_id_ends_rings_until_the_next_note_for_a_second_at_most():
    slow = Score([0.0, 1.5, 4.0], [1.4, 1.6, 5.0], [60, 62, 64], [80] * 3)
    for score, end_s in ((HELD, 2.5), (slow, 3.0)):
        for ringing, off_s in ((False, 2.0), (True, end_s)):
            made, new = fill(gap_of(score), words("60 off", 50, "70 on", 50), PERFORMANCE, None, ringing)
            assert made.offset_s[new].tolist() == pytest.approx([off_s])


@given(scores(), st.floats(0, 20), st.floats(0.01, 10))
def test_the_true_middle_gives_the_piece_back(score, from_s, seconds):
    piece = PERFORMANCE.normalise(score)
    if not round(from_s * 100) < round((from_s + seconds) * 100) < round(piece.duration_s * 100):
        return
    gap = cut_gap(piece, piece, from_s, from_s + seconds, METER, PERFORMANCE)
    rest = split_at(PERFORMANCE, PERFORMANCE.encode(piece), gap.from_s)[1]
    whole, _ = fill(gap, split_at(PERFORMANCE, rest, gap.seconds)[0], PERFORMANCE, None)
    assert [note[:3] for note in notes(whole)] == [note[:3] for note in notes(piece)]


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(0, 30), st.integers(1, 30))
def test_on_a_grid_too(seed, first, steps):
    grid = np.random.default_rng(seed).integers(57, 60, (40, 1)) + np.array([12, 8, 4, 0])
    piece = grid_to_score(grid, 0.4)
    if first + steps >= 40:
        return
    gap = cut_gap(piece, piece, first / 10, (first + steps) / 10, Meter(0.4), CHORALE)
    middle = CHORALE.encode_grid(grid[first : first + steps])
    whole, _ = fill(gap, middle, CHORALE, None)
    assert notes(whole) == notes(piece)


def test_notes_outside_keep_their_own_times_velocities_and_programs():
    score = Score([0.0031, 0.7, 2.004], [0.4567, 0.9, 2.9], [60, 61, 62], [11, 12, 13], program=np.array([40, 40, 41]))
    whole, new = filled(gap_of(score, 0.6, 1.5), ["70 on", 30, "70 off", 60])
    kept = whole.select(~new)
    assert kept == score.select(np.array([True, False, True]))
    whole, new = fill(gap_of(score, 0.6, 1.5), PERFORMANCE.encode(HELD.clip(0.5, 0.8)), PERFORMANCE, 40)
    assert set(whole.program[new].tolist()) == {40}


def test_regions_that_are_none():
    backwards, late = [(1.0, 1.0), (2.0, 1.0), (-1.0, 1.0)], [(2.0, 3.0), (5.0, 6.0)]  # the music ends at 3 s
    for from_s, to_s in (*backwards, *late, (math.nan, 1.0), (1e308, 1e308), (1.0, math.inf)):
        with pytest.raises(ConfigError) as refused:
            gap_of(HELD, from_s, to_s)
        said = ("to_s", to_s) if (from_s, to_s) in late else ("from_s", from_s)
        assert (refused.value.field, refused.value.got) == said


def long_piece(tokenizer, n=60) -> Score:
    if tokenizer is CHORALE:
        return grid_to_score(np.random.default_rng(0).integers(50, 70, (4 * n, 4)), 0.4)
    return Score(np.arange(n) * 0.4, np.arange(n) * 0.4 + 0.3, np.arange(n) % 12 + 60, np.full(n, 80))


@pytest.mark.parametrize(("tokenizer", "cycle"), [(PERFORMANCE, 1), (CHORALE, 1), (CHORALE, 16)])
@pytest.mark.parametrize("window", [None, 400, 160])
def test_as_much_of_both_sides_is_heard_as_there_is_room_for(tokenizer, window, cycle):
    gap = gap_of(long_piece(tokenizer), 10.0, 11.0, tokenizer)
    prompt = gap_prompt(gap, tokenizer, window, cycle)
    heard, vocab, period = prompt.context, tokenizer.vocab, max(cycle, tokenizer.group)
    middle = 40 if tokenizer is CHORALE else 10
    assert window is None or len(heard) + middle <= window
    at = int(np.flatnonzero(heard == vocab.id("BEFORE"))[-1])
    after, before = heard[: at + 1], heard[at + 2 :]
    after = after[(after < vocab.pad) | (after == vocab.eos)]
    assert after.tolist() == gap.after[: len(after)].tolist()
    assert before.tolist() == gap.before[len(gap.before) - len(before) :].tolist()
    assert prompt.unheard == len(gap.before) - len(before)
    assert (heard[at + 1] == vocab.bos) == (prompt.unheard == 0)
    assert (at + 1) % period == 0
    assert len(before) % period == len(gap.before) % period
    # by the clock, C begins where B will end
    clock = clock_of(tokenizer, heard)
    begins = clock[np.flatnonzero(heard < vocab.pad)[0]] - clock_of(tokenizer, after)[0]
    assert begins - clock[-1] == pytest.approx(round(1.0 / step_s(tokenizer, gap.notes.quarter_s)) * step_of(tokenizer))
    if window is None:
        assert (len(after), prompt.unheard) == (len(gap.after), 0)
    elif window < 400:
        assert min(len(after), len(before)) > (window - middle) / 4


def test_a_gap_that_leaves_no_room_is_refused():
    gap = gap_of(long_piece(CHORALE), 2.0, 12.0, CHORALE)
    with pytest.raises(UserError, match=r"10\.0 s .* 400 tokens.* 500 .* 9 s"):
        gap_prompt(gap, CHORALE, 500)
    short = gap_of(long_piece(CHORALE), 2.0, 2.4, CHORALE)
    for window, cycle in ((16, 1), (36, 1), (64, 16)):
        with pytest.raises(UserError, match=f"16 tokens.* {window} in all"):
            gap_prompt(short, CHORALE, window, cycle)


def slow_piece(seconds: int) -> Score:
    """A note of half a second every second: ON, a shift, OFF, a shift."""
    onset = np.arange(seconds) * 1.0
    return Score(onset, onset + 0.5, np.arange(seconds) % 12 + 60, np.full(seconds, 80))


def test_the_music_near_a_gap_says_how_much_comes_and_a_denser_fill_has_room():
    slow, fast = slow_piece(60), slow_piece(300)
    fast = replace(fast, onset_s=fast.onset_s / 20, offset_s=fast.offset_s / 20)  # 15 s
    later = replace(slow, onset_s=slow.onset_s + 15, offset_s=slow.offset_s + 15)
    gap = gap_of(Score.merge([fast, later], 0.5), 45.0, 50.0)
    assert len(gap.before) > 1000
    assert tokens_in(gap, PERFORMANCE) == 20
    assert len(gap_prompt(gap, PERFORMANCE, 400).context) in range(350, 371)  # 30 and a token or two stay free


def test_sides_are_no_longer_than_a_length_can_be_said():
    gap = gap_of(slow_piece(600), 300.0, 303.0)
    prompt = gap_prompt(gap, PERFORMANCE, 2048)  # a window has room for 500 s of it
    heard, vocab = prompt.context, PERFORMANCE.vocab
    at = int(np.flatnonzero(heard == vocab.id("BEFORE"))[-1])
    sides = [PERFORMANCE.seconds(ids[ids < vocab.pad]) for ids in (heard[:at], heard[at:])]
    assert sides == pytest.approx([162.0, 162.0], abs=1.5)
    first = gap_prompt(gap_of(slow_piece(600), 30.0, 33.0), PERFORMANCE, 2048)
    assert (first.unheard, first.context.tolist().count(vocab.bos)) == (0, 1)  # the short side is whole
    assert gap_prompt(gap, PERFORMANCE, None).context.tolist() == heard.tolist()
    with pytest.raises(UserError, match=r"250\.0 s.* at most 245 s"):
        gap_prompt(gap_of(slow_piece(600), 100.0, 350.0), PERFORMANCE, None)
    assert len(gap_prompt(gap_of(slow_piece(600), 100.0, 345.0), PERFORMANCE, None).context)


def test_between_two_pieces_both_stay_as_they_are():
    a, b = HELD, replace(HELD.transpose(2), quarter_s=0.7)
    gap = join_with_gap((a, a), (b, b), 1.5, METER, PERFORMANCE)
    assert (gap.from_s, gap.to_s) == (3.0, 4.5)
    score, new = filled(gap, ["50 on", 100, 50])
    assert notes(score.select(score.onset_s < 3.0)) == notes(a)
    later = score.select(score.onset_s >= 4.5)
    assert notes(replace(later, onset_s=later.onset_s - 4.5, offset_s=later.offset_s - 4.5)) == notes(b)
    assert notes(score.select(new)) == [(3.0, 4.5, 50, 58)]
    with pytest.raises(ConfigError, match="^seconds=0.001: "):
        join_with_gap((a, a), (b, b), 0.001, METER, PERFORMANCE)


def test_between_two_pieces_what_is_not_heard_of_the_first_stays_too():
    a = Score([0.0, 4.0], [8.0, 6.0], [60, 64], [80, 80])
    gap = join_with_gap((a, a.select(np.array([False, True]))), (HELD, HELD), 0.5, METER, PERFORMANCE)
    assert (gap.from_s, gap.to_s) == (8.0, 8.5)
    score, new = filled(gap, [50])
    assert notes(score.select(score.onset_s < 8.0)) == notes(a)
    assert score.onset_s[score.onset_s > 8.0].min() == 8.5
    assert not new.any()


def test_a_bundles_filters_hold_for_fills_and_its_guidance_for_seeds_alone():
    gap = gap_of(long_piece(CHORALE), 10.0, 12.0, CHORALE)

    def drawn(sampling=None, own=UNSAID):
        asked = Continue(sampling or Sampling(), Length(seconds=gap.seconds), window=500)
        return continue_primers([gap], noise(CHORALE.vocab.size), CHORALE, asked, own=own)[0][0].score

    asked = drawn(Sampling(top_p=None, min_p=0.9))
    assert asked != drawn()
    assert asked == drawn(own={"top_p": None, "min_p": 0.9, "seed_guidance": 2.0})
