import io
import zipfile
from itertools import pairwise

import mido
import numpy as np
import pytest
from songs import track
from strategies import SHARED_DATA

from musictx.data.corpora.pop909_scores import lower_hand, placed, read_song
from musictx.errors import MidiError
from musictx.music.notation.parts import Bar, Key, Note

KEY = "0.3\t8.0\tGb:maj\n"
TUNE = [(720, 940, 66), (960, 1170, 70), (1196, 1400, 73), (1443, 1850, 78), (1919, 2200, 78)]
CHORDS = [(960 + 480 * k, 1420 + 480 * k, pitch) for k in range(4) for pitch in (42, 49, 66, 70, 73)]


def midi(tune=TUNE, bridge=(), piano=CHORDS):
    tracks = [track("MELODY", tune), track("BRIDGE", bridge), track("PIANO", piano)]
    out = io.BytesIO()
    mido.MidiFile(tracks=tracks, ticks_per_beat=480).save(file=out)
    return out.getvalue()


def beats(downbeats, count=12, first=0.0):
    """Of half a second, as the file's quarters are."""
    halves = {line + 2 * k for line in downbeats for k in range(2)}
    return "".join(f"{first + k / 2} {float(k in halves)} {float(k in downbeats)}\n" for k in range(count))


def song(text=None, key=KEY, **parts):
    return read_song(midi(**parts), text or beats((2, 6, 10)), key, "song")[0]


def test_a_song_by_hand():
    """An upbeat of an eighth, notes a little late and short, and chords for two hands."""
    score = song()
    assert score.bars == (Bar(0, 4, 4), Bar(24, 4, 4))
    assert (score.end, score.keys, score.tempi[0].quarters_a_minute) == (120, (Key(0, -6),), pytest.approx(120))
    melody, right, left = score.parts
    assert melody.notes == tuple(
        Note(*x) for x in [(12, 12, 66), (24, 12, 70), (36, 12, 73), (48, 24, 78), (72, 12, 78)]
    )
    assert {note.pitch for note in right.notes} == {66, 70, 73}
    assert [note for note in left.notes if note.pitch == 42] == [Note(24 * k, 24, 42) for k in range(1, 5)]
    assert score.keyboards == [(1, 2)]


def test_a_bar_of_six_beats_is_one_of_four_and_one_of_two():
    late = [(3840, 4300, 60)]
    score = song(beats((2, 8, 12, 16), 20), tune=TUNE + late)
    assert [(bar.onset, bar.numerator) for bar in score.bars] == [(0, 4), (24, 4), (120, 2), (168, 4)]


def test_waltzes_have_bars_of_three():
    flags = [(k % 3 == 2, k % 6 == 2) for k in range(15)]
    text = "".join(f"{k / 2} {float(a)} {float(b)}\n" for k, (a, b) in enumerate(flags))
    assert song(text).bars == (Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4))


@pytest.mark.parametrize(
    ("played", "written"),
    [
        ([0, 6.5, 12.4, 18.9], [0, 6, 12, 18]),
        ([0.7, 8.4, 16.3], [0, 8, 16]),
        ([0, 7.2], [0, 6]),  # one note is no triplet until it is clear
        ([24, 32, 48], [24, 32, 48]),
        ([0, 3, 6, 12], [0, 3, 6, 12]),
        ([0, 1.2, 2.3, 12], [0, 0, 0, 12]),  # a chord that is rolled
        ([23.4], [24]),
    ],
)
def test_each_beat_has_the_grid_that_fits(played, written):
    assert placed(np.array(played)).tolist() == written


@pytest.mark.parametrize(
    ("chord", "left"), [([36, 43, 60, 64], 2), ([48, 52, 55], 3), ([64, 67], 0), ([50, 55, 62, 66], 2), ([43, 67], 1)]
)
def test_hands_keep_to_an_octave_and_their_places(chord, left):
    assert lower_hand(np.array(chord), 48.0, 67.0) == left


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "0.0 1.0\n"}, "no table"),
        ({"text": "0.0 1.0 1.0\n"}, "1 beat,"),
        ({"text": beats((2, 6, 10)).replace("2.5 ", "2.6 ")}, "not a quarter apart"),
        ({"text": beats((2, 7, 12), 16)}, "mostly not 4 or 6"),
        ({"text": beats((2, 6, 10), first=0.06)}, "near sixteenths"),
        ({"piano": []}, "MELODY and PIANO"),
    ],
)
def test_songs_without_clear_beats_are_left_out(change, reason):
    with pytest.raises(MidiError, match=reason):
        song(**change)


def test_a_key_that_the_notes_deny_is_left_out():
    assert song(key="0 1 C:maj").keys == ()
    assert song(key="0 1 Eb:min").keys == (Key(0, -6),)


@pytest.mark.skipif(not (SHARED_DATA / "pop909.zip").is_file(), reason="the corpus is not on this machine")
def test_real_songs():
    files, texts = (zipfile.ZipFile(SHARED_DATA / name) for name in ("pop909.zip", "pop909-annotations.zip"))
    meters, sizes = [], []
    for number in ("001", "034", "041"):
        folder = f"POP909/{number}"
        beats_of, keys = (texts.read(f"{folder}/{name}.txt").decode() for name in ("beat_midi", "key_audio"))
        score, _ = read_song(files.read(f"{folder}/{number}.mid"), beats_of, keys, folder)
        assert score.keyboards == [(len(score.parts) - 2, len(score.parts) - 1)]
        assert all(note.length > 0 and 0 <= note.onset < score.end for part in score.parts for note in part.notes)
        assert all(a.offset <= b.onset for a, b in pairwise(score.parts[0].notes))
        meters.append(score.bars[1].numerator)
        sizes.append((len(score.bars), score.keys[0].sharps))
    assert (meters, sizes[0]) == ([4, 3, 4], (73, -6))
