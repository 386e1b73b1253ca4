"""Ids of a phrase that continues, events of ids as they are drawn, and what ten fingers become on a grid."""

from math import inf

import numpy as np
import pytest
from session_parts import QUARTER_S, phrase_score, random_playing

from musictx.jam.keyboard import Keyboard
from musictx.music.grid import REST, score_to_grid
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.chorale.idiom import steal_voices

BOTH = ["performance", "chorale"]


@pytest.mark.parametrize("encoding", BOTH)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_of_a_phrase_is_never_taken_back(encoding, seed):
    tokenizer = build_tokenizer(encoding)
    idiom, keyboard, known = tokenizer.idiom(QUARTER_S), Keyboard(21, 108, QUARTER_S), np.zeros(0, int)
    for at_s, message in random_playing(seed):
        if keyboard.start_s is not None:  # everything before this message has been heard
            ids = idiom.ids(keyboard.score(at_s + 10), at_s - keyboard.start_s)
            assert np.array_equal(ids[: len(known)], known)
            known = ids
        keyboard.hear(at_s, message)
    whole = idiom.ids(keyboard.score(keyboard.last_s), inf)
    assert np.array_equal(whole[: len(known)], known)
    assert len(known) > 0.8 * len(whole)


@pytest.mark.parametrize("seed", range(4))
def test_events_read_id_by_id_are_the_notes_that_are_decoded(seed):
    tokenizer = build_tokenizer("performance")
    reader, on, notes = tokenizer.idiom(QUARTER_S).reader(), {}, []
    ids = tokenizer.encode(phrase_score(seed))
    for id_ in ids.tolist():
        for at_s, pitch, velocity in reader.read(id_):
            if velocity:
                on[pitch] = at_s, velocity
            else:
                notes.append((on[pitch][0], at_s, pitch, on.pop(pitch)[1]))
    assert not on
    assert Score(*np.array(notes).T) == tokenizer.decode(ids)
    assert reader.clock_s == pytest.approx(tokenizer.seconds(ids))


@pytest.mark.parametrize("seed", range(4))
def test_a_grid_read_id_by_id_sounds_what_its_steps_hold(seed):
    tokenizer = ChoraleTokenizer()
    idiom = tokenizer.idiom(QUARTER_S)
    reader = idiom.reader()
    sounding: set[int] = set()
    ids = idiom.ids(phrase_score(seed), inf)
    for step, row in enumerate(tokenizer.decode_grid(ids)):
        events = [event for id_ in ids[4 * step : 4 * step + 4].tolist() for event in reader.read(id_)]
        for at_s, pitch, velocity in events:
            assert at_s == pytest.approx(step * QUARTER_S / 4)
            (sounding.add if velocity else sounding.remove)(pitch)
        assert sounding == set(row.tolist()) - {REST}
    assert reader.clock_s == pytest.approx(len(ids) / 4 * QUARTER_S / 4)


def test_what_was_heard_of_a_reply_ends_where_it_was_broken_off():
    tokenizer = build_tokenizer("performance")
    score = Score([0.0, 0.5, 1.0], [0.6, 2.0, 1.5], [60, 64, 67], [82, 82, 82])
    heard = tokenizer.idiom(QUARTER_S).prefix(tokenizer.encode(score), 0.8)
    assert tokenizer.decode(heard) == Score([0.0, 0.5], [0.6, 0.8], [60, 64], [82, 82])
    tokenizer = build_tokenizer("chorale")
    ids = np.arange(4 * 10, dtype=np.uint16)
    heard = tokenizer.idiom(QUARTER_S).prefix(ids[:-1], 0.31)  # the third step has begun
    assert heard.tolist() == list(range(12))
    assert len(tokenizer.idiom(QUARTER_S).prefix(ids, 0.0)) == 0


def chord(*pitches, at=0.0, until=0.6):
    n = len(pitches)
    return Score([at] * n, [until] * n, pitches, [80] * n, QUARTER_S)


def test_of_more_than_four_notes_the_outer_ones_of_a_chord_stay_and_the_oldest_ends():
    assert steal_voices(chord(40, 50, 55, 60, 64, 67)).pitch.tolist() == [40, 60, 64, 67]
    long = Score.merge([chord(48, until=6.0), chord(60, 64, 67, at=0.6, until=6.0), chord(72, at=1.2, until=6)], 0.6)
    voices = steal_voices(long)
    assert voices.offset_s[voices.pitch == 48].tolist() == pytest.approx([1.2])
    assert (np.delete(voices.offset_s, np.flatnonzero(voices.pitch == 48)) > 5.9).all()
    score_to_grid(voices)
    again = steal_voices(Score([0.0, 0.3], [1.2, 0.9], [60, 60], [80, 80], QUARTER_S))  # the same key twice
    assert again.offset_s.tolist() == pytest.approx([0.3, 0.9])
