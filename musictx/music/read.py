"""MIDI in: symusic first, since it is fast; what it refuses, finds silent or may mishear goes to mido."""

import io
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mido
import numpy as np
import symusic

from musictx.errors import MidiError
from musictx.music.score import Score
from musictx.music.ticks import PEDAL, RawMidi, RawTrack, Tracks, tracks_in_seconds


def read_midi(path: str | Path, *, drums: bool = False, sustain: bool = True, one_tempo: bool = False) -> Score:
    """The notes of a MIDI file, all tracks together, the pedal written into their lengths.

    Drums (channel 10) are left out unless asked for; `one_tempo` as in `read_tracks`. A file
    may hold no notes. Raises MidiError with a reason a person understands, and nothing else.
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


def read_symusic(data: bytes) -> RawMidi:
    """A MIDI file in ticks. Raises whatever symusic raises."""
    smpte = data[:4] == b"MThd" and len(data) > 13 and data[12] >= 128
    # symusic refuses SMPTE time: any division will do, its ticks are the same
    midi: Any = symusic.Score.from_midi(data[:12] + b"\x01\xe0" + data[14:] if smpte else data)
    tempos, tracks = midi.tempos.numpy(), [_track(track) for track in midi.tracks]
    signatures = [(s.time, s.numerator, s.denominator) for s in midi.time_signatures]
    return RawMidi(
        tracks,
        midi.ticks_per_quarter,
        tempos["time"],
        tempos["mspq"],
        1 / ((256 - data[12]) * max(data[13], 1)) if smpte else None,  # frames a second, ticks a frame
        # symusic files a pedal under the program of the moment, and so loses it for the notes of another
        any(len(t.pedal) for t in tracks) and len(tracks) > data.count(b"MTrk") and _changes_program(data),
        np.array(signatures, dtype=np.int64).reshape(-1, 3),
    )


def _changes_program(data: bytes) -> bool:
    return any(data.count(bytes([status])) > 1 for status in range(0xC0, 0xD0))


def _track(track: Any) -> RawTrack:
    notes, controls = track.notes.numpy(), track.controls.numpy()
    onset = notes["time"].astype(np.int64)
    pedal = controls["number"] == PEDAL
    return RawTrack(
        track.name,
        track.program,
        track.is_drum,
        onset,
        onset + notes["duration"],
        notes["pitch"],
        notes["velocity"],
        controls["time"][pedal].astype(np.int64),
        controls["value"][pedal],
    )


DRUM_CHANNEL = 9

Note = tuple[int, int, int, int]  # onset, offset, pitch, velocity
Change = tuple[int, int]  # tick, value


@dataclass
class Channel:
    """What one channel of one track has played so far."""

    program: int = 0
    open: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    notes: dict[int, list[Note]] = field(default_factory=lambda: defaultdict(list))  # by program
    pedal: list[Change] = field(default_factory=list)

    def strike(self, tick: int, pitch: int, velocity: int) -> None:
        self.open[pitch].append((tick, velocity, self.program))

    def release(self, tick: int, pitch: int) -> None:
        """Ends the note of this pitch that has sounded longest, as the fast reader does."""
        if self.open[pitch]:
            onset, velocity, program = self.open[pitch].pop(0)
            self.notes[program].append((onset, tick, pitch, velocity))

    def close(self, tick: int) -> None:
        """A note that is never released ends with its track."""
        for pitch, notes in self.open.items():
            for onset, velocity, program in notes:
                self.notes[program].append((onset, tick, pitch, velocity))


def read_mido(data: bytes) -> RawMidi:
    """A MIDI file in ticks. Raises whatever mido raises, ValueError for a file without tracks."""
    midi = mido.MidiFile(file=io.BytesIO(data), clip=True)
    if not midi.tracks:
        raise ValueError("there is no track in it")
    tempos: list[Change] = []
    signatures: list[tuple[int, int, int]] = []
    tracks = [raw for track in midi.tracks for raw in _read_track(track, tempos, signatures)]
    at, mspq = np.array(tempos, dtype=np.int64).reshape(-1, 2).T
    frames, ticks = divmod(midi.ticks_per_beat & 0xFFFF, 256)  # mido reads the two bytes as one signed number
    tick_s = 1 / ((256 - frames) * max(ticks, 1)) if frames >= 128 else None
    bars = np.array(signatures, dtype=np.int64).reshape(-1, 3)
    return RawMidi(tracks, midi.ticks_per_beat, at, mspq, tick_s, signatures=bars)


def _read_track(track: mido.MidiTrack, tempos: list[Change], signatures: list[tuple[int, int, int]]) -> list[RawTrack]:
    channels: dict[int, Channel] = defaultdict(Channel)
    tick, name = 0, ""
    for message in track:
        tick += message.time
        if message.type == "note_on" and message.velocity > 0:
            channels[message.channel].strike(tick, message.note, message.velocity)
        elif message.type in ("note_on", "note_off"):
            channels[message.channel].release(tick, message.note)
        elif message.type == "program_change":
            channels[message.channel].program = message.program
        elif message.type == "control_change" and message.control == PEDAL:
            channels[message.channel].pedal.append((tick, message.value))
        elif message.type == "set_tempo":
            tempos.append((tick, message.tempo))
        elif message.type == "time_signature":
            signatures.append((tick, message.numerator, message.denominator))
        elif message.type == "track_name":
            name = message.name
    raws = []
    for number, channel in channels.items():
        channel.close(tick)
        pedal, value = np.array(channel.pedal, dtype=np.int64).reshape(-1, 2).T
        for program, notes in channel.notes.items():
            onset, offset, pitch, velocity = np.array(notes, dtype=np.int64).reshape(-1, 4).T
            drums = number == DRUM_CHANNEL
            raws.append(RawTrack(name, program, drums, onset, offset, pitch, velocity, pedal, value))
    return raws
