"""549 files from the trackers of MIDI software: whatever any reader hears notes in, we hear notes in, and
bars to their end."""

import io
import warnings
import zipfile
from typing import Any

import mido
import numpy as np
import pretty_midi
import pytest
import symusic
from strategies import SHARED_DATA

from musictx.errors import MidiError
from musictx.music.read import read_tracks
from musictx.music.ticks import RawMidi, tracks_in_seconds

ODD_FILES = SHARED_DATA / "odd-midi.zip"


def by_symusic(data):
    midi: Any = symusic.Score.from_midi(data)  # its types know no tracks
    return sum(len(track.notes) for track in midi.tracks)


def struck(midi):
    return sum(m.type == "note_on" and m.velocity > 0 for track in midi.tracks for m in track)


READERS = {
    "symusic": by_symusic,
    "mido": lambda data: struck(mido.MidiFile(file=io.BytesIO(data), clip=True)),
    "pretty_midi": lambda data: sum(len(i.notes) for i in pretty_midi.PrettyMIDI(io.BytesIO(data)).instruments),
}


@pytest.mark.skipif(not ODD_FILES.is_file(), reason="the corpus is not on this machine")
def test_no_reader_hears_notes_that_we_do_not_and_bars_reach_the_end():
    heard = 0
    with zipfile.ZipFile(ODD_FILES) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, data in files.items():
        try:
            tracks = read_tracks(data, name)
        except MidiError:
            tracks = tracks_in_seconds(RawMidi([], 480, np.zeros(0), np.zeros(0)), False)
        end_s = tracks.merge(drums=True).duration_s
        lines = tracks.meter().bars_s(end_s)
        assert lines[0] == 0, name
        assert lines[-1] >= end_s - 1e-6, name
        assert (np.diff(lines) > 0).all(), name
        if any(len(track.score) for track in tracks.tracks):
            heard += 1
            continue
        for reader, count in READERS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    notes = count(data)
                except Exception:  # it cannot read the file either
                    notes = 0
            assert notes == 0, f"{reader} hears {notes} notes in {name}"
    assert heard == 484  # two of them have drums alone, three are notation
