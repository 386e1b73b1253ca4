"""Held-out scores are cut at bar lines and heard in bars of two seconds."""

import numpy as np
import pytest
from score_beginnings import cut, cut_scores
from untrained import write_score_model

from musictx.errors import ConfigError, UserError
from musictx.generate.open_player import open_playing
from musictx.generate.requests import PLAIN, Continue
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, TUNE

SCORE = ScoreTokenizer()


def song(bars=5, meter=(3, 4)):
    """An upbeat of a quarter, then a tune in quarters over one long note a bar."""
    bar = Bar(0, *meter).full
    lines = [Bar(0, *meter), *(Bar(24 + bar * k, *meter) for k in range(bars))]
    end = 24 + bar * bars
    tune = tuple(Note(24 * k, 24, 60 + k % 5) for k in range(end // 24))
    bass = tuple(Note(line.onset, bar, 40 + k) for k, line in enumerate(lines[1:]))
    parts = Part("Voice", 52, tune), Part("Piano", 0, bass)
    return Notation(parts, tuple(lines), end, keys=(Key(0, 0), Key(lines[4].onset, 2)))


def ids_of(notation):
    return SCORE.encode_notation(notation)


def test_a_piece_is_cut_behind_whole_bars_of_its_meter():
    found = cut(ids_of(song()), SCORE, 2, 2)
    assert found is not None
    assert (found.begin, found.at) == (24, 168)
    assert [bar.onset for bar in found.template.notation.bars] == [0, 24, 96, 168, 240]
    assert found.template.slots == (TUNE, LEFT)
    assert found.template.free == {(slot, bar) for slot in (TUNE, LEFT) for bar in (3, 4)}
    assert found.template.notation.keys == (Key(0, 0),)  # the later one is unknown
    assert all(note.offset <= 168 for note in found.before)
    assert {note for note in found.after if note.pitch < 50} == {Note(168, 72, 42), Note(240, 72, 43)}
    assert cut(ids_of(song()), SCORE, 3, 3) is None  # too short


def test_all_bars_last_two_seconds(tmp_path):
    opened = open_playing(write_score_model(tmp_path / "score.safetensors"))
    split = [ids_of(song(meter=meter)) for meter in ((3, 4), (4, 4), (6, 8))]
    held_out, continue_all = cut_scores(opened, split, 3, 4.0, 4.0)  # type: ignore[arg-type]
    for seed, true in zip(held_out.seeds, held_out.true, strict=True):
        assert seed.quarter_s == 0.5
        for music, pitches in ((seed, [40, 41]), (true, [42, 43])):
            bass = music.select(music.pitch < 50)
            assert bass.onset_s.tolist() == [0.0, 2.0]
            assert bass.offset_s.tolist() == [2.0, 4.0]
            assert bass.pitch.tolist() == pitches
    new = continue_all(Continue(PLAIN))
    assert all(len(music) and music.duration_s <= 4.0 for music in new)
    assert [len(music) for music in continue_all(Continue(PLAIN))] == [len(music) for music in new]
    two, _ = cut_scores(opened, split, 2, 4.0, 4.0)  # type: ignore[arg-type]
    assert [len(seed) for seed in two.seeds] == [len(held_out.seeds[n]) for n in (0, 2)]  # from all over the split
    with pytest.raises(ConfigError, match="bars of 2 s each"):
        cut_scores(opened, split, 3, 3.0, 4.0)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="0 pieces have 8 whole bars"):
        cut_scores(opened, split, 3, 8.0, 8.0)  # type: ignore[arg-type]


def test_a_piece_that_changes_its_meter_is_left_out():
    whole = song()
    bars = (*whole.bars[:3], Bar(168, 2, 4), *(Bar(216 + 72 * k, 3, 4) for k in range(2)))
    changed = Notation(whole.parts, bars, whole.end - 24)
    assert cut(np.asarray(ids_of(changed)), SCORE, 2, 2) is None
