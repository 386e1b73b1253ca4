"""A row of a batch is where it would be alone, whatever the others are and however rows moved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.beat_grammar import BeatGrammar
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer

PIANO, CHOIR = build_tokenizer("performance"), ChoraleTokenizer()
STRICT = Rules(voice_order=True, voice_ranges=True, no_parallels=True)
SECONDS = [PIANO.silence(0.1), PIANO.silence(0.35)]
CHORDS = [CHOIR.encode_grid(np.array(chords)) for chords in ([[60, 55, 50, 45]], [[62, 57, -1, 43]] * 2)]
SCORE = ScoreTokenizer()
TUNE, BASS = Part("", 73, (Note(0, 24, 72), Note(96, 12, 74))), Part("", 32, (Note(24, 72, 40),))
PARTS = [
    SCORE.encode_notation(Notation(parts, (Bar(0, 4, 4), Bar(96, 3, 4)), 168)) for parts in ((TUNE,), (TUNE, BASS))
]
CASES = {
    "any": (PIANO, Rules(masks=False), SECONDS, False),
    "piano": (PIANO, Rules(max_note_s=0.4), SECONDS, False),
    "piano on a grid": (PIANO, Rules(), SECONDS, True),
    "choir": (CHOIR, STRICT, CHORDS, False),
    "parts": (SCORE, Rules(), PARTS, False),
}


def build(tokenizer, rules, prompts, on_grid, of_row):
    seeds = [prompts[i] for i in of_row]
    grammar = build_grammar(tokenizer, rules, seeds, [0.5] * len(seeds))
    lines = [np.arange(0.0, 3.0, 0.12), np.arange(0.0, 9.0, 0.5)]
    return BeatGrammar(grammar, tokenizer, seeds, [lines[i] for i in of_row]) if on_grid else grammar


@pytest.mark.parametrize("case", CASES)
@given(st.integers(0, 2**32 - 1))
def test_a_row_of_a_batch_is_where_it_would_be_alone(case, seed):
    chance, of_row = np.random.default_rng(seed), np.array([0, 1, 0, 1, 1])
    together = build(*CASES[case], of_row)
    alone = [build(*CASES[case], [i]) for i in of_row]
    history = np.zeros((len(of_row), 0), np.int64)
    said = []
    for step in range(24):
        legal = together.legal()
        said.append((legal, legal.copy()))
        assert np.array_equal(legal, np.concatenate([row.legal() for row in alone]))
        ids = np.where(legal, chance.random(legal.shape), -1.0).argmax(1)
        together.update(ids)
        for row, id_ in zip(alone, ids, strict=True):
            row.update(np.array([id_]))
        history = np.append(history, ids[:, None], 1)
        if step % 8 == 7:
            rows = np.array([chance.choice(np.flatnonzero(of_row == i)) for i in of_row])
            together.move(rows)
            history = history[rows]
            alone = [build(*CASES[case], [i]) for i in of_row]
            for row, before in zip(alone, history, strict=True):
                for id_ in before:
                    row.update(np.array([id_]))
    assert all(np.array_equal(answer, kept) for answer, kept in said)  # later steps write over none of them
