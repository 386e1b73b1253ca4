"""A melody and the rest in one stream: each part is its own performance, and both are all of the music."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ids, scores

from musictx.errors import ConfigError, UserError
from musictx.music.score import Score
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.performance import MelodyTokenizer, PerformanceTokenizer
from musictx.tokenizers.performance.melody import VOICE
from musictx.tokenizers.rules import Rules

TOK, PIANO = MelodyTokenizer(), PerformanceTokenizer()
songs = st.builds(
    lambda score, sung: replace(score, program=np.where(np.resize(sung, len(score)), VOICE, 0)),
    scores(max_notes=20, max_onset_s=6.0),
    st.lists(st.booleans(), min_size=1, max_size=20),
)


def words(stream):
    return [TOK.vocab.describe(int(i)) for i in stream]


def parts(music):
    sung = music.program == VOICE
    return music.select(sung), music.select(~sung)


def test_a_melody_over_a_held_note_literally():
    music = Score([0, 0, 0.5], [1, 1.4, 1.4], [72, 48, 72], [80, 40, 80], 0.5, np.array([VOICE, 0, 0]))
    assert words(TOK.encode(music)) == [
        *("MELODY_VELOCITY 19", "MELODY_ON 72", "VELOCITY 9", "NOTE_ON 48", "TIME_SHIFT 50"),
        *("VELOCITY 19", "NOTE_ON 72", "TIME_SHIFT 50", "MELODY_OFF 72"),
        *("TIME_SHIFT 40", "NOTE_OFF 48", "NOTE_OFF 72"),
    ]
    melody, rest = map(words, TOK.apart(TOK.encode(music)))
    assert melody == ["MELODY_VELOCITY 19", "MELODY_ON 72", "TIME_SHIFT 100", "MELODY_OFF 72", "TIME_SHIFT 40"]
    assert rest[-3:] == ["TIME_SHIFT 90", "NOTE_OFF 48", "NOTE_OFF 72"]


@given(songs)
def test_each_part_is_what_a_piano_would_say_of_it(music):
    stream = TOK.encode(music)
    heard = [PIANO.normalise(part) for part in parts(music)]
    decoded = TOK.decode(stream, music.quarter_s)
    for part, expected, program in zip(parts(decoded), heard, (VOICE, 0), strict=True):
        assert part == replace(expected, program=np.array(program))
    assert TOK.seconds(stream) == pytest.approx(decoded.duration_s)


@given(ids(TOK.vocab))
def test_the_parts_of_any_ids_are_as_long_as_the_whole_and_have_all_its_events(stream):
    melody, rest = TOK.apart(stream)
    assert TOK.seconds(melody) == TOK.seconds(rest) == TOK.seconds(stream)
    timed = [[*zip(*TOK.in_steps(part)[:2], strict=True)] for part in (melody, rest, stream)]
    assert sorted(timed[0] + timed[1]) == sorted(timed[2])
    assert not TOK.is_melody[rest].any()
    assert (TOK.is_melody[melody] | (TOK.pace[melody] > 0)).all()
    assert len(parts(TOK.decode(stream))[0]) == len(TOK.decode(melody))


@given(songs, st.sampled_from([0.95, 1.05]), st.integers(-3, 3))
def test_a_stretch_and_a_transposition_take_both_parts_and_lose_no_note(music, factor, semitones):
    music = replace(music, pitch=music.pitch.clip(3, 124))
    before, stream = TOK.normalise(music), TOK.encode(music)
    for part, moved in zip(parts(before), parts(TOK.decode(TOK.transpose(stream, semitones))), strict=True):
        assert moved == part.transpose(semitones)
    for part, slower in zip(parts(before), parts(TOK.decode(TOK.stretch(stream, factor))), strict=True):
        order = [np.lexsort((s.onset_s, s.pitch)) for s in (part, slower)]
        np.testing.assert_array_equal(part.pitch[order[0]], slower.pitch[order[1]])
        assert np.abs(part.onset_s[order[0]] * factor - slower.onset_s[order[1]]).max(initial=0) <= 0.02 + 1e-9


def test_a_trill_on_one_pitch_of_the_melody_survives_a_stretch():
    onset = np.arange(30) / 50
    trill = Score(onset, onset + 0.01, [60] * 30, [80] * 30, 0.5, np.array(VOICE))
    rest = Score(onset + 0.01, onset + 0.02, [60] * 30, [80] * 30, 0.5)  # the same pitch between
    onset = np.arange(60) / 100
    dense = Score(onset, onset + 0.01, [60] * 60, [80] * 60, 0.5, np.array(VOICE))
    for music in (Score.merge([trill, rest]), dense):
        slower = TOK.decode(TOK.stretch(TOK.encode(music), 0.95))
        assert [len(part) for part in parts(slower)] == [len(part) for part in parts(music)]


def test_what_it_does_not_say_is_refused():
    nothing = np.zeros(0, np.uint16)
    with pytest.raises(ConfigError, match="^rules=…: "):
        build_grammar(TOK, Rules(max_polyphony=3), [nothing], [0.5])
    with pytest.raises(UserError, match="performance-melody .* live"):
        TOK.idiom(0.5)
    with pytest.raises(UserError, match="tokenizer=performance_melody"):
        PIANO.apart(nothing)
