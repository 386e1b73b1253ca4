"""Reads MIDI files, also damaged ones, and notation as MIDI: chunks, events, channels, and then notes in seconds."""

import os
import stat
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from musictx.errors import MidiError
from musictx.music.chunks import HEAD, Chunks, read_chunks, unwrap
from musictx.music.notation.midi import lost_in_midi, score_in, to_midi
from musictx.music.notation.notation import Losses, Notation
from musictx.music.notation.read import read_notation
from musictx.music.other_formats import NOTATION, notation_of, other_format
from musictx.music.raw import read_raw
from musictx.music.score import Score
from musictx.music.ticks import Tracks, tracks_in_seconds


def read_midi(path: str | Path, *, drums: bool = False, one_tempo: bool = False) -> Score:
    """The notes of a MIDI file, all tracks together; the pedal lengthens them.

    `drums` (channel 10) are left out unless asked for; `one_tempo` keeps the first tempo throughout. A file may have
    no notes. Raises MidiError with a reason, and nothing else.
    """
    return read_tracks(read_bytes(path), path, one_tempo=one_tempo).merge(drums)


MOST_BYTES = 2**26
GIVE = "give a MIDI file or notation"
SUFFIXES = (".mid", ".midi", ".kar", ".rmi", ".mid.gz", *NOTATION)


def read_bytes(path: str | Path) -> bytes:
    """A file's bytes. Raises MidiError when it cannot be read, is empty, or is larger than any music."""
    try:
        if not (stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISDIR(mode)):  # a pipe may never end
            raise MidiError(path, "it is a pipe or device", GIVE)
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise MidiError(path, "it is a folder", GIVE) from None
    except FileNotFoundError:
        raise MidiError(path, "no such file", "give an existing MIDI file") from None
    except OSError as error:
        raise MidiError(path, f"it cannot be read ({error.strerror})", "give a readable MIDI file") from None
    if not data:
        raise MidiError(path, "the file is empty", GIVE)
    _check_size(data, path)
    return data


def _check_size(data: bytes, source: object) -> None:
    if len(data) > MOST_BYTES:
        raise MidiError(source, f"it has more than {MOST_BYTES >> 20} MB, and no music is so large", GIVE)


def read_tracks(data: bytes, source: object, *, one_tempo: bool = False) -> Tracks:
    """The tracks of a MIDI file, one per track, channel and program that has notes, and the faults of the file.
    `one_tempo` keeps the first tempo throughout, so that beats stay evenly spaced. Raises MidiError, which names
    `source`."""
    try:
        repairs: Counter[str] = Counter()
        raw = read_raw(whole_chunks(data, source, repairs), repairs)
        written = notation_in(data, source)
        return replace(tracks_in_seconds(raw, one_tempo), numbers=None if written is None else written.numbered)
    except MemoryError:
        raise MidiError(source, "it needs more memory than is allowed") from None
    except ValueError as error:
        raise MidiError(source, str(error)) from None


def whole(data: bytes, source: object) -> bytes:
    """The MIDI file, or that of notation, unpacked, with its lengths and counts mended."""
    return whole_chunks(data, source).write()


def whole_chunks(data: bytes, source: object, repairs: Counter[str] | None = None) -> Chunks:
    """The header and tracks of a MIDI file, also of a packed one; counts repairs. Raises MidiError for a file of
    another format, and ValueError for data that is no MIDI file."""
    data = unwrap(data, MOST_BYTES)
    _check_size(data, source)
    repairs = Counter() if repairs is None else repairs
    if kind := kind_of_notation(data, source):
        notation, losses = _notation(data, kind, str(source))
        repairs.update(losses + lost_in_midi(notation))
        data = to_midi(notation)
    elif data[:4] != HEAD and (reason := other_format(data, source)):
        raise MidiError(source, f"it {reason}")
    return read_chunks(data, repairs)


def kind_of_notation(data: bytes, source: object) -> str:
    """The format of notation; "" for other data, as of MIDI."""
    return "" if data[:4] == HEAD else notation_of(data, source) or ""


def notation_in(data: bytes, source: object, chart: bool = False) -> Notation | None:
    """Notation as it is written, of a `chart` also one of chord symbols or drums alone; None for a MIDI file."""
    data = unwrap(data, MOST_BYTES)
    kind = kind_of_notation(data, source)
    return _notation(data, kind, str(source), chart)[0] if kind else None


def score_of(data: bytes, source: object, chart: bool = False) -> tuple[Notation, Losses]:
    """Notation as it is written, also a `chart`, or a MIDI file as notation; and its losses. Raises MidiError."""
    if kind := kind_of_notation(data, source):
        return _notation(data, kind, str(source), chart)
    try:
        return score_in(whole_chunks(data, source), source)
    except ValueError as error:
        raise MidiError(source, str(error)) from None


@lru_cache(maxsize=2)  # a seed is read for its notes, as a score, and as the file into which new ones go
def _notation(data: bytes, kind: str, source: str, chart: bool = False) -> tuple[Notation, Losses]:
    return read_notation(data, kind, source, chart)
