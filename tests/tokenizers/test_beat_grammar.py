"""Time that passes from place to place: whatever is drawn, notes begin and end on lines, and music never gets stuck."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.beat_grammar import BeatGrammar
from musictx.tokenizers.grammar import Free, build_grammar
from musictx.tokenizers.rules import Rules

TOKENIZER = build_tokenizer("performance")
ENDS = TOKENIZER.vocab.mask("NOTE_OFF")
SHIFT = TOKENIZER.vocab.mask("TIME_SHIFT")
STEPS = np.where(SHIFT, TOKENIZER.vocab.values("TIME_SHIFT"), 0)


@settings(max_examples=30, deadline=None)
@given(
    quarter_s=st.floats(0.2, 6.0),
    places=st.sampled_from([(0, 0.5), (0, 0.25, 0.5, 0.75), (0, 2 / 3)]),
    begins_s=st.floats(0, 3.0),
    rules=st.sampled_from([Rules(), Rules(max_note_s=0.3), Rules(max_still_s=0.2, max_silence_s=0.1, max_polyphony=1)]),
    waits=st.booleans(),
    chance=st.integers(0, 2**32 - 1),
)
def test_all_events_lie_on_lines(quarter_s, places, begins_s, rules, waits, chance):
    rng = np.random.default_rng(chance)
    lines = (np.arange(400)[:, None] * quarter_s + np.array(places) * quarter_s).ravel()
    prompt = TOKENIZER.silence(begins_s)
    inner = build_grammar(TOKENIZER, rules, [prompt], [0.5])
    grammar = BeatGrammar(inner, TOKENIZER, [prompt], [lines])
    now, events = round(begins_s * 100), 0
    for _ in range(150):
        legal = grammar.legal()[0]
        assert legal.any()
        chances = np.where(SHIFT, 30.0 if waits else 0.1, 1.0) * legal
        id_ = int(rng.choice(len(chances), p=chances / chances.sum()))
        now += int(STEPS[id_])
        if not SHIFT[id_]:
            events += 1
            assert np.abs(now / 100 - lines).min() < 0.005 + 1e-9 or ENDS[id_], "the nearest step"
        grammar.update(np.array([id_]))
    assert events


def test_rows_without_lines_are_free():
    prompts = [np.zeros(0, np.uint16)] * 2
    grammar = BeatGrammar(Free(TOKENIZER, 2), TOKENIZER, prompts, [np.array([0.0, 0.25, 0.5]), None])
    waits = TOKENIZER.vocab.values("TIME_SHIFT")
    first, free = (waits[np.flatnonzero(row & SHIFT)].tolist() for row in grammar.legal())
    assert first == [*range(1, 26), 50, *range(51, 101)]  # up to the next line; after the last one all times are free
    assert free == [*range(1, 101)]


def test_a_wait_longer_than_the_longest_goes_on():
    """Lines two seconds apart: the longest shift is half of the way; time may follow it, and the end of a note."""
    grammar = BeatGrammar(Free(TOKENIZER, 1), TOKENIZER, [np.zeros(0, np.uint16)], [np.arange(0.0, 20.0, 2.0)])
    longest = TOKENIZER.vocab.id("TIME_SHIFT", 100)
    assert np.flatnonzero(grammar.legal()[0] & SHIFT).tolist() == np.flatnonzero(SHIFT).tolist()
    grammar.update(np.array([longest]))
    np.testing.assert_array_equal(grammar.legal()[0], SHIFT | ENDS)


def test_the_lines_around_each_step():
    lines = [np.array([0.02, 0.05]), None]
    grammar = BeatGrammar(Free(TOKENIZER, 2), TOKENIZER, [np.zeros(0, np.uint16)] * 2, lines)
    before, after = grammar.lines_around(np.arange(7))
    assert after.tolist() == [[2, 2, 2, 5, 5, 5, 6], [*range(7)]]
    assert before[0].tolist() == [0, 0, 2, 2, 2, 5, 5]


def test_rows_of_one_prompt_move():
    grammar = BeatGrammar(Free(TOKENIZER, 2), TOKENIZER, [np.zeros(0, np.uint16)] * 2, [np.array([0.0, 0.25])] * 2)
    grammar.update(np.array([TOKENIZER.vocab.id("TIME_SHIFT", n) for n in (24, 10)]))
    grammar.move(np.array([1, 0]))
    assert [row[SHIFT].sum() for row in grammar.legal()] == [100, 100]
    grammar.update(np.array([TOKENIZER.vocab.id("TIME_SHIFT", n) for n in (14, 1)]))
    assert grammar.now.tolist() == [[24], [25]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_keep_their_type_and_those_that_are_no_numbers_are_still_found(dtype):
    grammar = BeatGrammar(Free(TOKENIZER, 3), TOKENIZER, [np.zeros(0, np.uint16)] * 3, [np.arange(0.0, 9.0, 0.25)] * 3)
    logits = np.zeros((3, TOKENIZER.vocab.size), dtype)
    logits[0, np.flatnonzero(SHIFT)[7]], logits[1, SHIFT] = np.nan, -np.inf
    kept, folded = logits.copy(), grammar.fold(logits)
    assert folded.dtype == dtype
    assert np.isnan(folded[0, SHIFT]).any()
    assert np.isnan(folded[1, SHIFT]).any()
    assert not np.isnan(folded[2]).any()
    np.testing.assert_array_equal(logits, kept)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 200), st.sampled_from([0.12, 0.25, 0.31, 1.7]), st.integers(0, 2**32 - 1))
def test_waits_that_may_not_be_give_their_probability_to_the_nearest_line(began, line_s, chance):
    prompt = TOKENIZER.silence(began / 100)
    lines = np.arange(0.0, 12.0, line_s)
    grammar = BeatGrammar(Free(TOKENIZER, 1), TOKENIZER, [prompt], [lines])
    logits = np.random.default_rng(chance).normal(0, 3, (1, TOKENIZER.vocab.size))
    was, now = (np.exp(each[0]) / np.exp(each).sum() for each in (logits, grammar.fold(logits)))
    np.testing.assert_allclose(now[~SHIFT], was[~SHIFT])  # notes are as likely as they were
    expected, at = np.zeros(101), np.rint(lines * 100).astype(int) - began
    ahead = at[(at > 0) & (at <= 100)]
    for wait in range(1, 101):
        stays = not len(ahead) or wait < ahead[0]  # a note may end before the next line
        expected[wait if stays else ahead[np.argmin(np.abs(ahead - wait))]] += was[SHIFT][wait - 1]
    np.testing.assert_allclose(now[SHIFT], expected[1:], atol=1e-12)
    assert not now[SHIFT][~grammar.legal()[0][SHIFT]].any()
