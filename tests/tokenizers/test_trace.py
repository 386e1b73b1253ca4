"""The token that begins a note is at its onset and names its pitch, in every encoding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scores

from musictx.music.grid import grid_to_score
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.miditok import KINDS


def check(tokenizer, score):
    ids = tokenizer.encode(score)
    found = tokenizer.trace(ids, score.quarter_s)
    n = len(found.score)
    assert found.score == tokenizer.decode(ids, score.quarter_s)
    assert len(found.time_s) == len(found.note) == len(ids)
    assert len(set(found.struck_by.tolist())) == n
    np.testing.assert_array_equal(found.note[found.struck_by], np.arange(n))
    np.testing.assert_allclose(found.time_s[found.struck_by], found.score.onset_s, atol=1e-9)
    assert (np.diff(found.time_s) >= 0).all()
    words = [tokenizer.vocab.describe(int(i)) for i in ids[found.struck_by]]
    return found, words


@given(scores())
def test_performance(score):
    tokenizer = build_tokenizer("performance")
    found, words = check(tokenizer, score)
    assert words == [f"NOTE_ON {pitch}" for pitch in found.score.pitch]
    kinds = [tokenizer.vocab.describe(int(i)).split()[0] for i in tokenizer.encode(score)]
    # each note has its NOTE_ON and its NOTE_OFF; only waits belong to none
    assert [kinds[t] for t in np.flatnonzero(found.note == -1)] == ["TIME_SHIFT"] * kinds.count("TIME_SHIFT")
    assert sum(kinds[t] in ("NOTE_ON", "NOTE_OFF") for t in np.flatnonzero(found.note >= 0)) == 2 * len(found.score)


@given(st.lists(st.tuples(*[st.integers(55, 62) | st.just(-1)] * 4), max_size=20))
def test_chorale_with_unisons_and_crossings(rows):
    tokenizer = ChoraleTokenizer()
    score = grid_to_score(np.array(rows, np.int16).reshape(-1, 4), 0.7)
    found, words = check(tokenizer, score)
    assert words == [f"PITCH {pitch}" for pitch in found.score.pitch]
    ids = tokenizer.encode(score)
    np.testing.assert_array_equal(found.note == -1, ids == tokenizer.rest)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=20)
@given(scores(max_notes=15), st.data())
def test_words_of_several_instruments(name, score, data):
    programs = data.draw(st.lists(st.sampled_from([0, 40, 128]), min_size=len(score), max_size=len(score)))
    tokenizer = build_tokenizer(name)
    columns = score.onset_s, score.offset_s, score.pitch, score.velocity
    found, words = check(tokenizer, Score(*columns, 0.37, np.array(programs, np.uint8)))
    pairs = found.score.pitch, found.score.program
    names = [f"PitchDrum_{p}" if q == 128 else f"Pitch_{p}" for p, q in zip(*pairs, strict=True)]
    assert words == names


def test_which_tokens_belong_to_a_note():
    score = Score([0.0, 0.5], [0.5, 1.0], [60, 64], [80, 100])
    found, _ = check(build_tokenizer("performance"), score)
    # VELOCITY ON 60, SHIFT, OFF 60 VELOCITY ON 64, SHIFT, OFF 64
    assert found.note.tolist() == [0, 0, -1, 0, 1, 1, -1, 1]
    np.testing.assert_allclose(found.time_s, [0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1])
    found, _ = check(build_tokenizer("miditok-tsd"), score)
    # Program Pitch Velocity Duration, TimeShift, Program Pitch Velocity Duration
    assert found.note.tolist() == [0, 0, 0, 0, -1, 1, 1, 1, 1]


def test_a_piece_that_was_cut_keeps_notes_without_an_end():
    tokenizer = build_tokenizer("performance")
    ids = tokenizer.encode(Score([0.0, 0.5], [2.0, 1.0], [60, 64], [80, 80]))[:4]
    assert tokenizer.trace(ids, 0.5).struck_by.tolist() == [1, 3]
