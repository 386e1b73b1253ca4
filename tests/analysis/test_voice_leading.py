"""What is counted between four voices: by hand, by music21, in Bach and in voices that do not belong together."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SHARED_DATA

from musictx.analysis.voice_leading import RANGES, VoiceLeading, per_hundred_beats, voice_leading
from musictx.data.corpora.chorales import read_chorale
from musictx.errors import UserError

_ = -1  # a rest


def grid(*chords, steps=4):
    """Chords S A T B, a quarter each."""
    return np.repeat(np.array(chords, dtype=np.int16), steps, axis=0)


def fifths(*chords, **how):
    return voice_leading(grid(*chords, **how)).parallel_fifths


def octaves(*chords, **how):
    return voice_leading(grid(*chords, **how)).parallel_octaves


def test_two_voices_that_go_from_fifth_to_fifth():
    assert fifths((67, _, _, 60), (69, _, _, 62)) == 1
    assert fifths((79, _, _, 60), (81, _, _, 62)) == 1  # twelfths
    assert fifths((67, _, _, 60), (81, _, _, 62)) == 1  # a fifth, then a twelfth, both upwards
    assert fifths((67, _, _, 60), (69, _, _, 62), (71, _, _, 64), (72, _, _, 65)) == 3
    assert fifths((_, 67, 60, 53), (_, 69, 62, 55)) == 2  # alto over tenor, tenor over bass; a ninth is none
    assert octaves((67, _, _, 60), (69, _, _, 62)) == 0


def test_two_voices_that_go_from_octave_to_octave():
    assert octaves((72, _, _, 60), (71, _, _, 59)) == 1
    assert octaves((_, 60, 60, _), (_, 62, 62, _)) == 1  # unisons
    assert octaves((_, 60, 60, _), (_, 74, 62, _)) == 1  # a unison, then an octave
    assert octaves((84, _, _, 60), (86, _, _, 62)) == 1
    assert octaves((72, 67, 60, 48), (74, 69, 62, 50)) == 3  # each pair of soprano, tenor and bass
    assert fifths((72, 67, 60, 48), (74, 69, 62, 50)) == 2  # alto over tenor, alto over bass


@pytest.mark.parametrize(
    "chords",
    [
        [(67, _, _, 60), (67, _, _, 60)],  # repeated
        [(67, _, _, 60), (79, _, _, 60)],  # one voice leaps an octave
        [(67, _, _, 60), (69, _, _, 50)],  # contrary
        [(67, _, _, 60), (_, _, _, _), (69, _, _, 62)],  # a rest between
        [(67, _, _, 60), (_, _, _, 60), (69, _, _, 62)],  # of one voice alone
        [(_, _, _, 60), (67, _, _, 62), (69, _, _, 62)],
        [(67, _, _, 60), (67, _, _, 62), (69, _, _, 62)],  # the bass is a quarter ahead
        [(66, _, _, 60), (69, _, _, 62)],  # diminished, then perfect
        [(67, _, _, 60), (68, _, _, 62)],
        [(_, 60, 65, _), (_, 62, 67, _)],  # a fourth between crossed voices is no fifth
        [(_, 60, 67, _), (_, 67, 60, _)],  # they swap, which is contrary
        [(_, 72, 60, _), (_, 60, 72, _)],
        [(72, _, _, 60), (71, _, _, 71)],  # octave, then unison, contrary
    ],
)
def test_what_is_no_parallel(chords):
    assert (fifths(*chords), octaves(*chords)) == (0, 0)


def test_voices_that_swap_in_one_direction_are_parallel():
    assert fifths((_, 60, 67, _), (_, 76, 69, _)) == 1
    assert fifths((_, 60, 67, _), (_, 62, 69, _)) == 1  # crossed before and after


def test_crossed_beats_are_the_time_in_which_any_voice_is_above_one_written_over_it():
    assert voice_leading(grid((72, 67, 64, 48))).crossed_beats == 0
    assert voice_leading(grid((60, 60, 60, 60))).crossed_beats == 0  # unisons do not cross
    assert voice_leading(grid((72, 67, 69, 48), (72, 67, 64, 48))).crossed_beats == 1
    assert voice_leading(grid((72, 67, 69, 48), steps=3)).crossed_beats == 0.75
    assert voice_leading(grid((48, 52, 55, 60))).crossed_beats == 1  # all pairs at once
    assert voice_leading(grid((72, 55, _, 60))).crossed_beats == 1  # over a silent tenor
    assert voice_leading(grid((_, 67, 64, 48), (72, _, _, _))).crossed_beats == 0


def test_notes_outside_are_counted_where_they_begin():
    assert voice_leading(grid(RANGES[:, 0], RANGES[:, 1])).notes_outside == 0
    assert voice_leading(grid(RANGES[:, 0] - 1)).notes_outside == 4
    assert voice_leading(grid(RANGES[:, 1] + 1)).notes_outside == 4
    held = (82, 67, 64, 48)
    assert voice_leading(grid(held, held, (72, 67, 64, 48), held)).notes_outside == 2
    assert voice_leading(grid(held, (_, 67, 64, 48), (83, 67, 64, 48), (84, 67, 64, 48))).notes_outside == 3


@pytest.mark.parametrize(
    ("chord", "dissonant"),
    [
        ((72, 67, 64, 48), 0),  # a triad
        ((72, 69, 65, 48), 0),  # a six-four chord
        ((72, 71, 67, 48), 1),  # a second
        ((71, 67, 64, 48), 1),  # a seventh
        ((70, 67, 64, 48), 1),
        ((74, 67, 64, 48), 1),  # a ninth
        ((71, _, _, 53), 1),  # a tritone, and an octave
        ((72, _, _, _), 0),
    ],
)
def test_dissonance_is_a_second_a_seventh_or_a_tritone_between_any_two(chord, dissonant):
    assert voice_leading(grid(chord)).dissonant_beats == dissonant


def test_dissonance_counts_on_strong_beats_alone_and_suspensions_count():
    consonant, passing = [(72, 67, 64, 48)], [(74, 67, 64, 48)]
    assert voice_leading(grid(*consonant, *passing, steps=2)).dissonant_beats == 0
    assert voice_leading(grid(*passing, *consonant, steps=2)).dissonant_beats == 1
    suspended = grid((72, 69, 65, 53), (72, 67, 62, 55), (71, 67, 62, 55))  # a 4-3, and its fourth is a second to D
    assert voice_leading(suspended).dissonant_beats == 1


def test_a_piece_by_hand():
    music = grid((72, 67, 64, 48), (74, 69, 65, 50), (_, _, _, _), (82, 65, 69, 53), steps=4)
    assert voice_leading(music) == VoiceLeading(3.0, 1, 1, 1.0, 1, 1)
    assert voice_leading(np.zeros((0, 4), np.int16)) == (0, 0, 0, 0, 0, 0)
    assert voice_leading(grid((_, _, _, _))) == (0, 0, 0, 0, 0, 0)


def test_a_hundred_beats_is_a_ratio_of_sums_over_pieces():
    rates = per_hundred_beats([VoiceLeading(10, 1, 0, 2.5, 0, 4), VoiceLeading(40, 1, 0, 0, 5, 26)])
    assert {name: rate.mean for name, rate in rates.items()} == {
        "parallel_fifths": 4.0,
        "parallel_octaves": 0.0,
        "crossed_beats": 5.0,
        "notes_outside": 10.0,
        "dissonant_beats": 60.0,
    }
    assert rates["parallel_fifths"][1:] == (2.5, 10.0)  # of either piece alone
    with pytest.raises(UserError, match="0 pieces: an interval needs at least 1"):
        per_hundred_beats([])
    with pytest.raises(UserError, match="not all 0"):
        per_hundred_beats([voice_leading(grid((_, _, _, _)))])


WHITE = [12 * octave + step for octave in range(3, 7) for step in (0, 2, 4, 5, 7, 9, 11)]  # spelt in one way only


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(8, 15), st.sampled_from([-7, -4, -3, 0, 4, 7, 11])), min_size=2, max_size=2))
def test_music21_finds_the_same_between_any_four_notes(places):
    from music21.pitch import Pitch
    from music21.voiceLeading import VoiceLeadingQuartet

    lower, upper = [WHITE[at] for at, _ in places], [WHITE[at + steps] for at, steps in places]
    a, b, c, d = (Pitch(midi=p) for p in (*upper, *lower))
    quartet = VoiceLeadingQuartet(a, b, c, d)
    both_octaves = all(interval.simpleName == "P1" for interval in quartet.vIntervals)
    got = voice_leading(grid(*((a, _, _, b) for a, b in zip(upper, lower, strict=True))))
    assert got.parallel_fifths == quartet.parallelMotion("P5", allowOctaveDisplacement=True)
    # music21 tells a unison before an octave from two octaves
    assert got.parallel_octaves == (quartet.similarMotion() and both_octaves)
    assert (got.crossed_beats > 0) == quartet.voiceCrossing()


@pytest.mark.parametrize(
    ("file", "parallel_fifths", "parallel_octaves"),
    [("bwv40.8", 4, 0), ("bwv268", 4, 1), ("bwv39.7", 1, 2), ("bwv397", 1, 1), ("bwv437", 0, 1), ("bwv269", 0, 0)],
)
def test_music21_finds_the_same_in_chorales(file, parallel_fifths, parallel_octaves):
    from music21 import corpus
    from music21.voiceLeading import iterateAllVoiceLeadingQuartets

    moves = iterateAllVoiceLeadingQuartets(corpus.parse(f"bach/{file}"), includeRests=False, includeOblique=False)
    found = [[q.parallelMotion(name, allowOctaveDisplacement=True) for name in ("P5", "P8", "P1")] for q in moves]
    theirs = np.sum(found, axis=0)
    ours = read_chorale(f"bach/{file}")
    assert not isinstance(ours, str), ours
    got = voice_leading(ours)
    assert (got.parallel_fifths, got.parallel_octaves) == (theirs[0], theirs[1] + theirs[2])
    assert (got.parallel_fifths, got.parallel_octaves) == (parallel_fifths, parallel_octaves)


def jsb(part):
    path = SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {SHARED_DATA}")
    return [np.array(piece, np.int16) for piece in json.loads(path.read_text())[part]]


def test_the_ranges_are_those_of_the_training_chorales():
    pitch = np.ma.masked_equal(np.concatenate(jsb("train")), -1)
    np.testing.assert_array_equal(RANGES, np.stack([pitch.min(0), pitch.max(0)], axis=1))


def test_bach_is_far_better_than_sopranos_over_the_voices_of_other_chorales():
    own = jsb("valid")
    others = [piece[: len(soprano)].copy() for soprano, piece in zip(own, own[1:] + own[:1], strict=True)]
    for soprano, piece in zip(own, others, strict=True):
        piece[:, 0] = soprano[: len(piece), 0]
    bach, mixed = ([voice_leading(piece) for piece in pieces] for pieces in (own, others))
    assert tuple(np.sum(bach, axis=0)) == (4573.0, 12, 6, 135.75, 0, 1127)
    good, bad = per_hundred_beats(bach), per_hundred_beats(mixed)
    for name in ("parallel_fifths", "parallel_octaves", "crossed_beats", "dissonant_beats"):
        assert bad[name].low > 2 * good[name].high, name
