import zipfile
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SHARED_DATA, ids, score_of, scores

from musictx.errors import ConfigError
from musictx.music.read import read_tracks
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.performance.events import NEVER, EventTable

TOK = PerformanceTokenizer()
MAESTRO = SHARED_DATA / "maestro-v3.0.0-midi.zip"


def words(tokens):
    return [TOK.vocab.describe(int(i)) for i in tokens]


def tokens(text):
    pairs = (line.split() for line in StringIO(text) if line.strip())
    return np.array([TOK.vocab.id(kind, int(value)) for kind, value in pairs], np.uint16)


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (
            [(0.0, 0.5, 60, 80), (0.5, 2.0, 64, 80)],
            "VELOCITY 19, NOTE_ON 60, TIME_SHIFT 50, NOTE_OFF 60, NOTE_ON 64, "
            "TIME_SHIFT 100, TIME_SHIFT 50, NOTE_OFF 64",
        ),
        (  # a velocity only when it changes
            [(0, 1, 60, 64), (0, 1, 64, 61), (0, 1, 67, 65)],
            "VELOCITY 15, NOTE_ON 60, NOTE_ON 64, VELOCITY 16, NOTE_ON 67, TIME_SHIFT 100, "
            "NOTE_OFF 60, NOTE_OFF 64, NOTE_OFF 67",
        ),
        (  # silence before the first note
            [(2.0, 2.01, 60, 1)],
            "TIME_SHIFT 100, TIME_SHIFT 100, VELOCITY 0, NOTE_ON 60, TIME_SHIFT 1, NOTE_OFF 60",
        ),
    ],
)
def test_what_is_said_literally(notes, said):
    assert ", ".join(words(TOK.encode(score_of(*notes)))) == said


@pytest.mark.parametrize(
    ("notes", "normal"),
    [
        ([(0, 3, 60, 62), (1, 2, 60, 62)], [(0, 1, 60, 62), (1, 2, 60, 62)]),  # struck again
        ([(0.001, 3, 60, 30), (0.004, 2, 60, 62)], [(0, 3, 60, 62)]),  # in one step the longest and loudest
        ([(1.0, 1.0, 60, 62)], [(1.0, 1.01, 60, 62)]),
    ],
)
def test_what_a_note_becomes(notes, normal):
    assert TOK.normalise(score_of(*notes)) == score_of(*normal)


@given(scores())
def test_normalising_moves_no_onset_by_more_than_half_a_step(music):
    onsets = TOK.normalise(music).onset_s
    for onset in music.onset_s:
        assert np.abs(onsets - onset).min() <= 0.005 + 1e-9


def slow_decode(tokens):
    """The obvious loop, as an oracle for streams that never strike one pitch twice in a step."""
    step, bin, notes = 0, 16, []
    sounding: dict[int, tuple[int, int]] = {}  # pitch -> onset step, velocity

    def end(pitch):
        onset, velocity = sounding.pop(pitch)
        notes.append((onset / 100, max(step, onset + 1) / 100, pitch, velocity))

    for token in tokens:
        kind, _, value = TOK.vocab.describe(int(token)).partition(" ")
        pitch = int(value or 0)
        if kind == "EOS":
            break
        if kind == "TIME_SHIFT":
            step += int(value)
        elif kind == "VELOCITY":
            bin = int(value)
        elif kind in ("NOTE_ON", "NOTE_OFF"):
            if pitch in sounding:
                end(pitch)
            if kind == "NOTE_ON":
                sounding[pitch] = (step, bin * 4 + 2)
    for pitch in list(sounding):
        end(pitch)
    return score_of(*notes)


@given(ids(TOK.vocab))
def test_decode_equals_the_slow_obvious_loop(tokens):
    stream = []
    for token in tokens:  # one step after every NOTE_ON keeps two strikes of a pitch in different steps
        stream += [token, TOK.vocab.id("TIME_SHIFT", 1)] if token < 128 else [token]
    apart = np.array(stream, np.uint16)
    assert TOK.decode(apart) == slow_decode(apart)


def test_music_ends_at_eos_and_hanging_notes_with_it():
    begin, later = tokens("VELOCITY 10\nNOTE_ON 60\nTIME_SHIFT 30"), tokens("NOTE_ON 61")
    assert TOK.decode(np.array([TOK.vocab.bos, *begin, TOK.vocab.eos, *later])) == score_of((0, 0.3, 60, 42))


@given(ids(TOK.vocab))
def test_any_stream_is_where_reading_it_event_by_event_leads(tokens):
    struck, now, silent_since, struck_last, has_velocity = {}, 0, 0, 0, False
    for word in map(str.split, words(tokens)):
        value = int(word[1]) if len(word) > 1 else 0
        if word[0] == "NOTE_ON":
            struck[value] = struck_last = now
        elif word[0] == "NOTE_OFF":
            struck.pop(value, None)
        now += value if word[0] == "TIME_SHIFT" else 0
        silent_since = now if word[0].startswith("NOTE") else silent_since
        has_velocity |= word[0] == "VELOCITY"
    began, *place = EventTable(TOK.vocab).place(tokens)
    assert {int(p): int(began[p]) for p in np.flatnonzero(began < NEVER)} == struck
    assert place == [now, place[1] if struck else silent_since, struck_last, has_velocity]


@given(scores(), st.integers(0, 30), st.sampled_from([0.95, 0.975, 1.025, 1.05]))
def test_after_a_stretch_every_note_is_there_within_two_steps(music, start, factor):
    check_stretch(TOK.encode(music)[start : start + 100], factor)


def check_stretch(window, factor):
    before, after = TOK.decode(window), TOK.decode(TOK.stretch(window, factor))
    order = [np.lexsort((s.onset_s, s.pitch)) for s in (before, after)]
    assert len(before) == len(after)
    for name in ("pitch", "velocity"):
        np.testing.assert_array_equal(getattr(before, name)[order[0]], getattr(after, name)[order[1]])
    for name in ("onset_s", "offset_s"):
        error = getattr(before, name)[order[0]] * factor - getattr(after, name)[order[1]]
        assert np.abs(error).max(initial=0) <= 0.02 + 1e-9


@pytest.mark.parametrize("factor", [0.0, 0.49, 2.01, float("nan"), float("inf")])
def test_stretch_refuses_factors_that_make_other_music(factor):
    with pytest.raises(ConfigError, match=f"^stretch={factor}: "):
        TOK.stretch(tokens("NOTE_ON 60\nTIME_SHIFT 3"), factor)


@pytest.mark.skipif(not MAESTRO.is_file(), reason="the corpus is not on this machine")
def test_four_real_performances_round_trip_and_stretch():
    with zipfile.ZipFile(MAESTRO) as archive:
        names = sorted(n for n in archive.namelist() if n.endswith((".mid", ".midi")))[::320]
        performances = [read_tracks(archive.read(name), name).merge() for name in names]
    for music, factor in zip(performances, [0.95, 0.975, 1.025, 1.05], strict=True):
        stream = TOK.encode(music)
        decoded = TOK.decode(stream, music.quarter_s)
        assert len(decoded) >= 0.99 * len(music)
        np.testing.assert_array_equal(TOK.encode(decoded), stream)
        check_stretch(stream[1000:6000], factor)
