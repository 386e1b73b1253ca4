"""549 files from the trackers of MIDI software: whatever any reader hears notes in, we hear notes in, and
bars to their end."""

import io
import zipfile
from contextlib import suppress
from typing import Any

import mido
import numpy as np
import pytest
import symusic
from strategies import SHARED_DATA

from musictx.errors import MidiError
from musictx.music.read import read_tracks

ODD_FILES = SHARED_DATA / "odd-midi.zip"


def by_symusic(data):
    midi: Any = symusic.Score.from_midi(data)  # its types know no tracks
    return sum(len(track.notes) for track in midi.tracks)


def by_mido(data):
    tracks = mido.MidiFile(file=io.BytesIO(data), clip=True).tracks
    return sum(m.type == "note_on" and m.velocity > 0 for track in tracks for m in track)


@pytest.mark.skipif(not ODD_FILES.is_file(), reason="the corpus is not on this machine")
def test_no_reader_hears_notes_that_we_do_not_and_bars_reach_the_end():
    heard = 0
    with zipfile.ZipFile(ODD_FILES) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, data in files.items():
        notes = 0
        with suppress(MidiError):
            tracks = read_tracks(data, name)
            notes, end_s = len(tracks.merge(drums=True)), tracks.merge(drums=True).duration_s
            lines = tracks.meter().bars_s(end_s)
            assert lines[0] == 0, name
            assert lines[-1] >= end_s - 1e-6, name
            assert (np.diff(lines) > 0).all(), name
        heard += notes > 0
        for count in () if notes else (by_symusic, by_mido):
            with suppress(Exception):  # it cannot read the file either
                notes = count(data)
            assert notes == 0, f"{count.__name__} hears {notes} notes in {name}"
    assert heard == 453  # two of them have drums alone
