"""Reads MIDI: symusic first, since it is fast; mido reads files that symusic refuses, finds silent or may misread."""

import io
import os
import stat
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


def read_midi(path: str | Path, *, drums: bool = False, one_tempo: bool = False) -> Score:
    """The notes of a MIDI file, all tracks together; the pedal lengthens them.

    `drums` (channel 10) are left out unless asked for; `one_tempo` keeps the first tempo throughout. A file may have
    no notes. Raises MidiError with a reason, and nothing else.
    """
    return read_tracks(read_bytes(path), path, one_tempo=one_tempo).merge(drums)


MOST_BYTES = 2**26
GIVE = "give a MIDI file"
META, SYSEX, ONE_BYTE = 0xFF, (0xF0, 0xF7), (0xC, 0xD)  # first bytes of events
END_OF_TRACK = b"\x00\xff\x2f\x00"


def read_bytes(path: str | Path) -> bytes:
    """A file's bytes. Raises MidiError when it cannot be read, is empty, or is larger than any music."""
    try:
        if not (stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISDIR(mode)):  # a pipe may never end
            raise MidiError(path, "is a pipe or device", GIVE)
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise MidiError(path, "is a folder", GIVE) from None
    except FileNotFoundError:
        raise MidiError(path, "no such file", "give an existing MIDI file") from None
    except OSError as error:
        raise MidiError(path, f"cannot be read ({error.strerror})", "give a readable MIDI file") from None
    if not data:
        raise MidiError(path, "the file is empty", GIVE)
    if len(data) > MOST_BYTES:
        raise MidiError(path, f"more than {MOST_BYTES >> 20} MB, no music is so large", GIVE)
    return data


def read_tracks(data: bytes, source: object, *, one_tempo: bool = False) -> Tracks:
    """The tracks of a MIDI file, one per track, channel and program, with those without notes. `one_tempo` keeps the
    first tempo throughout, so that beats stay evenly spaced. Raises MidiError, which names `source`."""
    inner, heard = unwrap(data), None
    midi = fit_chunks(inner)
    was_cut = midi != inner  # mido's reader ends the notes that sound at the cut, symusic leaves them out
    try:
        raw = read_symusic(midi)
        heard = tracks_in_seconds(raw, one_tempo)
        if any(len(track.score) for track in heard.tracks) and not raw.doubtful and not was_cut:
            return heard
    except Exception:  # symusic raises many types; in any case the second reader decides
        pass
    try:
        return tracks_in_seconds(read_mido(midi), one_tempo)
    except MemoryError:
        raise MidiError(source, "needs more memory than is allowed") from None
    except Exception as error:  # damage can make mido raise anything
        if heard is not None:
            return heard
        if not inner.startswith(b"MThd"):
            reason = f"not a MIDI file: it begins with {data[:4]!r}, MIDI files begin with b'MThd'"
        else:
            detail = " ".join(str(error).split())[:100] or type(error).__name__
            reason = f"damaged MIDI file: no reader makes sense of it ({detail})"
        raise MidiError(source, reason) from None


def whole(data: bytes) -> bytes:
    """The MIDI file as its readers take it: without what is around it, and repaired."""
    return fit_chunks(unwrap(data))


def unwrap(data: bytes) -> bytes:
    """The MIDI file inside an RMID file, which is a RIFF chunk around one; other data unchanged."""
    return data[20:] if data[:4] == b"RIFF" and data[8:16] == b"RMIDdata" else data


def fit_chunks(data: bytes) -> bytes:
    """Repairs a file that was cut short, so that both readers take the music in it. Its last track ends with its last
    whole event, and anything after the chunks goes. An intact file comes back unchanged."""
    if data[:4] == b"MThd" and int.from_bytes(data[4:8]) > len(data) - 8:
        data = data[:4] + (6).to_bytes(4) + data[8:]  # a header has six bytes, whatever it claims
    at = 0
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8])
        if end > len(data):
            if data[at : at + 4] != b"MTrk":
                return data[:at]
            events = data[at + 8 : at + 8 + whole_events(data[at + 8 :])] + END_OF_TRACK
            return data[: at + 4] + len(events).to_bytes(4) + events
        at = end
    return data[:at]


def whole_events(track: bytes) -> int:
    """How many bytes of a track's beginning are whole events."""
    at, running = 0, 0

    def number() -> int:
        """The number of variable length that begins here. Raises IndexError at the end."""
        nonlocal at
        value = 0
        for _ in range(4):
            byte = track[at]
            at, value = at + 1, value << 7 | byte & 127
            if byte < 128:
                break
        return value

    while True:
        whole = at
        try:
            number()  # ticks since the event before
            if track[at] >= 128:
                running, at = track[at], at + 1
            if running == META:
                at += 1
                at = number() + at
            elif running in SYSEX:
                at = number() + at
            else:
                at += 1 if running >> 4 in ONE_BYTE else 2
        except IndexError:
            return whole
        if at > len(track):
            return whole


def read_symusic(data: bytes) -> RawMidi:
    """A MIDI file in ticks. Raises anything that symusic raises."""
    smpte = data[:4] == b"MThd" and len(data) > 13 and data[12] >= 128
    # symusic refuses SMPTE time: under any other division its ticks are the same
    midi: Any = symusic.Score.from_midi(data[:12] + b"\x01\xe0" + data[14:] if smpte else data)
    tempos, tracks = midi.tempos.numpy(), [_track(track) for track in midi.tracks]
    signatures = [(s.time, s.numerator, s.denominator) for s in midi.time_signatures]
    changes_program = any(data.count(bytes([status])) > 1 for status in range(0xC0, 0xD0))
    return RawMidi(
        tracks,
        midi.ticks_per_quarter,
        tempos["time"],
        tempos["mspq"],
        1 / ((256 - data[12]) * max(data[13], 1)) if smpte else None,  # frames a second, ticks a frame
        # symusic keeps a pedal under the current program, and so loses it for notes of another
        any(t.pedal.size for t in tracks) and len(tracks) > data.count(b"MTrk") and changes_program,
        np.array(signatures, dtype=np.int64).reshape(-1, 3),
    )


def _track(track: Any) -> RawTrack:
    given, controls = track.notes.numpy(), track.controls.numpy()
    notes = np.array([given[name] for name in ("time", "duration", "pitch", "velocity")], dtype=np.int64)
    notes[1] += notes[0]
    is_pedal = controls["number"] == PEDAL
    pedal = np.array([controls[name][is_pedal] for name in ("time", "value")], dtype=np.int64)
    return RawTrack(track.name, track.program, track.is_drum, notes, pedal)


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

    def release(self, tick: int, pitch: int) -> None:
        """Ends the longest-sounding note of this pitch, as the fast reader does."""
        if self.open[pitch]:
            onset, velocity, program = self.open[pitch].pop(0)
            self.notes[program].append((onset, tick, pitch, velocity))

    def close(self, tick: int) -> None:
        """Ends all notes with the track, if nothing has released them."""
        for pitch, notes in self.open.items():
            for _ in range(len(notes)):
                self.release(tick, pitch)


def read_mido(data: bytes) -> RawMidi:
    """A MIDI file in ticks. Raises anything that mido raises, and ValueError for a file without tracks."""
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


def from_bytes(text: str) -> str:
    """Text as most programs write it, in UTF-8; mido reads Latin-1, which other text stays."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _read_track(track: mido.MidiTrack, tempos: list[Change], signatures: list[tuple[int, int, int]]) -> list[RawTrack]:
    channels: dict[int, Channel] = defaultdict(Channel)
    tick, name = 0, ""
    for message in track:
        tick += message.time
        if message.type == "note_on" and message.velocity > 0:
            channel = channels[message.channel]
            channel.open[message.note].append((tick, message.velocity, channel.program))
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
            name = from_bytes(message.name)
    raws = []
    for number, channel in channels.items():
        channel.close(tick)
        pedal = np.array(channel.pedal, dtype=np.int64).reshape(-1, 2).T
        for program, notes in channel.notes.items():
            columns = np.array(notes, dtype=np.int64).reshape(-1, 4).T
            raws.append(RawTrack(name, program, number == DRUM_CHANNEL, columns, pedal))
    return raws
