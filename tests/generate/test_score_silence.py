"""Whole bars of silence before the music, as in a DAW, change nothing of what is drawn."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scores import FILLS, PLAIN, SCORE, drawn, in_file

from musictx.generate.control import Control
from musictx.generate.requests import Accompany, Continue, Fill, Length
from musictx.generate.score_chords import chords_found
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part

BAR = Bar(0, 4, 4).full
NOTES = st.lists(st.tuples(st.integers(1, 15), st.integers(60, 72)), max_size=10)  # quarters and pitches


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scores")


def behind(silent: int, *lines):
    """Four bars of lines behind silent ones."""
    shift, bars = silent * BAR, silent + 4
    parts = [
        Part(f"Voice {n}", 52, tuple(Note(shift + 24 * at, 24, pitch) for at, pitch in sorted(line)))
        for n, line in enumerate(lines)
    ]
    return Notation(tuple(parts), tuple(Bar(n * BAR, 4, 4) for n in range(bars)), bars * BAR)


@given(
    NOTES.map(lambda notes: {0: 67, 15: 60, **dict(notes)}.items()),
    st.booleans(),
    st.sampled_from(["continue", "fill", "accompany"]),
    st.sampled_from([Control(), Control(chords="C | F"), Control(density="0 1, 4 8"), Control(chords="seed")]),
    st.integers(1, 9),
    st.integers(0, 99),
)
@settings(max_examples=30)
def test_silent_bars_before_a_piece_move_its_new_notes_and_nothing_else(folder, tune, has_bass, task, control, bars, k):
    lines = [tune, *([[(at, pitch - 24) for at, pitch in tune]] if has_bass and task != "accompany" else [])]
    new = []
    for silent in (0, bars):
        path = in_file(behind(silent, *lines), folder)
        request, tokenizer = {
            "continue": (Continue(PLAIN, Length(bars=2), random_seed=k, control=control), SCORE),
            "fill": (Fill(PLAIN, from_bar=silent + 2, to_bar=silent + 3, random_seed=k, control=control), FILLS),
            "accompany": (Accompany(PLAIN, random_seed=k, control=control), SCORE),
        }[task]
        (music,) = drawn(path, request, tokenizer)
        new.append(
            {
                slot: [note._replace(onset=note.onset - silent * BAR) for note in notes]
                for slot, notes in music.added.items()
            }
        )
    assert any(new[0].values())
    assert new[0] == new[1]


def test_chords_of_a_seed_begin_with_its_music():
    lines = [[(4 * n, pitch) for n in range(4)] for pitch in (60, 64, 67)]
    assert chords_found(behind(2, *lines), 6) == chords_found(behind(0, *lines), 4) == "C | C | C | C"
