"""MIDI in: symusic first, since it is fast; what it refuses, finds silent or may mishear goes to mido."""

from pathlib import Path

from musictx.errors import MidiError
from musictx.notes.fast import read_symusic
from musictx.notes.score import Score
from musictx.notes.ticks import Tracks, tracks_in_seconds
from musictx.notes.tolerant import read_mido


def read_midi(path: str | Path, *, drums: bool = False, sustain: bool = True, one_tempo: bool = False) -> Score:
    """The notes of a MIDI file, all tracks together, the pedal written into their lengths.

    `drums` (channel 10) are left out unless asked for; without `sustain` the pedal is not heard; `one_tempo` keeps the
    first tempo throughout. A file may hold no notes.

    Raises:
        MidiError: with a reason a person understands, and nothing else.
    """
    return read_tracks(read_bytes(path), path, sustain=sustain, one_tempo=one_tempo).merge(drums)


def read_bytes(path: str | Path) -> bytes:
    """A file's bytes. Raises MidiError when there are none to be had."""
    try:
        data = Path(path).read_bytes()
    except IsADirectoryError:
        raise MidiError(path, "is a folder: give a MIDI file") from None
    except FileNotFoundError:
        raise MidiError(path, "no such file: give an existing MIDI file") from None
    except OSError as error:
        raise MidiError(path, f"cannot be read ({error.strerror}): give a readable MIDI file") from None
    if not data:
        raise MidiError(path, "the file is empty: give a MIDI file")
    return data


def read_tracks(data: bytes, source: object, *, sustain: bool = True, one_tempo: bool = False) -> Tracks:
    """The tracks of a MIDI file, one per track, channel and program, those without notes too.

    `one_tempo` keeps the first tempo throughout, so that beats stay evenly spaced. Raises MidiError, which
    names `source`.
    """
    midi = fit_chunks(unwrap(data))
    heard = None
    try:
        raw = read_symusic(midi)
        heard = tracks_in_seconds(raw, sustain, one_tempo)
        if any(len(track.score) for track in heard.tracks) and not raw.doubtful:
            return heard
    except Exception:  # symusic raises many types; whatever it was, the second reader decides
        pass
    try:
        return tracks_in_seconds(read_mido(midi), sustain, one_tempo)
    except MemoryError:
        raise MidiError(source, "needs more memory than is allowed") from None
    except Exception as error:  # mido raises whatever the damage leads to
        if heard is not None:
            return heard
        if not data.startswith((b"MThd", b"RIFF")) or not midi.startswith(b"MThd"):
            reason = f"not a MIDI file: it begins with {data[:4]!r}, MIDI files begin with b'MThd'"
        else:
            detail = " ".join(str(error).split())[:100] or type(error).__name__
            reason = f"damaged MIDI file: no reader makes sense of it ({detail})"
        raise MidiError(source, reason) from None


def unwrap(data: bytes) -> bytes:
    """The MIDI file inside an RMID file, which is a RIFF chunk around one; anything else as it is."""
    return data[20:] if data[:4] == b"RIFF" and data[8:16] == b"RMIDdata" else data


def fit_chunks(data: bytes) -> bytes:
    """A file cut short, with its last chunk ending where the file does, and without what follows its chunks, so that
    both readers take the music there is; an intact file as it is."""
    if data[:4] == b"MThd" and int.from_bytes(data[4:8]) > len(data) - 8:
        data = data[:4] + (6).to_bytes(4) + data[8:]  # a header has six bytes, whatever it claims
    at = 0
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8])
        if end > len(data):
            is_track = data[at : at + 4] == b"MTrk"
            return data[: at + 4] + (len(data) - at - 8).to_bytes(4) + data[at + 8 :] if is_track else data[:at]
        at = end
    return data[:at]
