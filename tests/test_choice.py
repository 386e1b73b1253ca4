"""Which model plays where none is named: literal music, and real files."""

import json
import zipfile
from collections import Counter

import numpy as np
import pytest
from strategies import SHARED_DATA

from musictx.choice import choose_bundle, name_bundle, not_four_voices
from musictx.errors import MidiError
from musictx.model.shipped import FOLDER
from musictx.notes.grid import grid_to_score
from musictx.notes.read import read_midi, read_tracks
from musictx.notes.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer

CHORDS = np.repeat(np.array([[72, 67, 64, 48], [71, 67, 62, 43], [72, 67, 64, 48]], np.int16), 4, axis=0)
HYMN = grid_to_score(CHORDS)


def moved(by_s, notes=slice(1)):
    onset = HYMN.onset_s.copy()
    onset[notes] += by_s
    return Score(onset, np.maximum(HYMN.offset_s, onset + 0.1), HYMN.pitch, HYMN.velocity, HYMN.quarter_s)


def with_note(onset_s, offset_s, pitch):
    return Score.merge([HYMN, Score([onset_s], [offset_s], [pitch], [80], HYMN.quarter_s)], HYMN.quarter_s)


def voices(count):
    return grid_to_score(np.where(np.arange(4) < count, CHORDS, -1).astype(np.int16))


@pytest.mark.parametrize(
    ("music", "reason"),
    [
        (HYMN, ""),
        (moved(0.014), ""),  # a sixteenth lasts 0.15 s
        (moved(0.016), "1 of 10 notes begin beside the sixteenths of its first tempo, the first at 0.02 s"),
        (HYMN.stretch(1.7), ""),
        (with_note(0.6, 1.2, 60), "step 4 (quarter 1) has 5 notes sounding"),
        (with_note(1.8, 2.4, 20), "pitch 20 is outside the chorale vocabulary, which holds 21 … 108"),
        (with_note(1.8, 2.4, 60), ""),  # three quarters of it in four voices, the last in one
        (with_note(1.8, 4.8, 60), "all four sound in 38% of it"),
        (voices(3), "all four sound in 0% of it"),
        (Score([0.0], [1e6], [60], [80], 0.5), "8,000,000 sixteenths long, at most 1,048,576 can be written"),
        (Score.empty(), "there are no notes"),
    ],
)
def test_four_voices_on_a_grid_are_what_the_encoding_takes(music, reason):
    assert not_four_voices(music) == reason
    assert choose_bundle(music, "it").bundle == ("piano" if reason else "chorale")


def test_the_seeds_inside_the_package():
    chosen = {
        name: choose_bundle(read_midi(FOLDER / f"{name}.mid"), name) for name in ("chorale", "elise", "gymnopedie")
    }
    assert [choice.bundle for choice in chosen.values()] == ["chorale", "piano", "piano"]
    assert chosen["chorale"].why == "chorale is four voices on a grid"
    assert chosen["gymnopedie"].why.startswith("gymnopedie is not four voices on a grid: ")


def test_what_a_person_names_is_never_looked_at(tmp_path, capsys):
    assert name_bundle("mine.safetensors", [tmp_path / "missing.mid"]) == "mine.safetensors"
    assert capsys.readouterr().out == ""
    with pytest.raises(MidiError, match=r"missing.mid.* no such file"):
        name_bundle(None, [tmp_path / "missing.mid"])


@pytest.mark.skipif(not (SHARED_DATA / "odd-midi.zip").is_file(), reason="the corpus is not on this machine")
def test_of_odd_files_the_chorale_model_gets_only_what_it_can_take():
    chosen, taken = Counter(), ChoraleTokenizer()
    with zipfile.ZipFile(SHARED_DATA / "odd-midi.zip") as archive:
        for name in archive.namelist()[:120]:
            try:
                music = read_tracks(archive.read(name), name).merge()
            except MidiError:
                continue
            choice = choose_bundle(music, name)
            chosen[choice.bundle] += 1
            if choice.bundle == "chorale":
                assert len(taken.encode(music)) >= 4 * 2
    assert chosen == {"piano": 106, "chorale": 11}


@pytest.mark.skipif(not (SHARED_DATA / "jsb-chorales-16th").is_dir(), reason="the corpus is not on this machine")
def test_every_chorale_is_the_chorale_models():
    table = json.loads((SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json").read_text())
    pieces = [np.array(piece, np.int16) for split in table.values() for piece in split]
    assert len(pieces) == 382
    others = [k for k, piece in enumerate(pieces) if not_four_voices(grid_to_score(piece))]
    assert others == []
