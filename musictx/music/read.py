"""Reads MIDI with symusic, which is fast; mido first mends files that symusic refuses, finds silent or may misread."""

import io
import os
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import mido

from musictx.errors import MidiError
from musictx.music.score import Score
from musictx.music.ticks import PEDAL, Tracks, tracks_in_seconds


def read_midi(path: str | Path, *, drums: bool = False, one_tempo: bool = False) -> Score:
    """The notes of a MIDI file, all tracks together; the pedal lengthens them.

    `drums` (channel 10) are left out unless asked for; `one_tempo` keeps the first tempo throughout. A file may have
    no notes. Raises MidiError with a reason, and nothing else.
    """
    return read_tracks(read_bytes(path), path, one_tempo=one_tempo).merge(drums)


MOST_BYTES = 2**26
MOST_WAIT = 2**28 - 1  # ticks, in four bytes of seven bits
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
    was_cut = midi != inner  # symusic leaves out the notes that sound at the cut
    try:
        heard = tracks_in_seconds(midi, one_tempo)
        if any(len(track.score) for track in heard.tracks) and not was_cut and not loses_pedal(midi, heard):
            return heard
    except Exception:  # symusic raises many types; in any case mido decides
        pass
    try:
        return tracks_in_seconds(mended(midi), one_tempo)
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


def unwrap(data: bytes) -> bytes:
    """The MIDI file inside an RMID file, which is a RIFF chunk around one; other data unchanged."""
    return data[20:] if data[:4] == b"RIFF" and data[8:16] == b"RMIDdata" else data


def fit_chunks(data: bytes) -> bytes:
    """Repairs a file that was cut short, so that both readers take the music in it: its last track ends with its last
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


def loses_pedal(data: bytes, heard: Tracks) -> bool:
    """Whether notes may miss their pedal: symusic keeps it under the program of its moment, a channel may have more."""
    changes_program = any(data.count(bytes([status])) > 1 for status in range(0xC0, 0xD0))
    has_pedal = any(track.pedal_presses for track in heard.tracks)
    return has_pedal and len(heard.tracks) > data.count(b"MTrk") and changes_program


def mended(data: bytes) -> bytes:
    """The music of a MIDI file, with every value in its range, an end for each note, and the pedal of a channel for all
    its programs. Raises anything that mido raises, and ValueError for a file without tracks."""
    midi = mido.MidiFile(file=io.BytesIO(data), clip=True)
    if not midi.tracks:
        raise ValueError("there is no track in it")
    midi.tracks[:] = [part for track in midi.tracks for part in by_program(track)]
    midi.type = 1  # symusic knows no type above
    midi.charset = "utf-8"  # mido reads names as Latin-1, which every byte is
    file = io.BytesIO()
    midi.save(file=file)
    return file.getvalue()


def by_program(track: mido.MidiTrack) -> Iterator[mido.MidiTrack]:
    """The tempo and time signatures of a track, then a track for each channel and program that has notes."""
    program, tick, name = Counter[int](), 0, ""  # the program of each channel now
    sounding = defaultdict[tuple[int, int], list[tuple[int, int]]](list)  # channel and pitch -> channel and program
    clock, notes, pedal = list[Any](), defaultdict[tuple[int, int], list[Any]](list), defaultdict[int, list[Any]](list)
    for message in track:
        tick += message.time
        message.time = tick  # since the beginning
        if message.type == "note_on" and message.velocity > 0:
            part = message.channel, program[message.channel]
            sounding[message.channel, message.note].append(part)
            notes[part].append(message)
        elif message.type in ("note_on", "note_off"):
            if parts := sounding[message.channel, message.note]:
                notes[parts.pop(0)].append(message)
        elif message.type == "program_change":
            program[message.channel] = message.program
        elif message.type == "control_change" and message.control == PEDAL:
            pedal[message.channel].append(message)
        elif message.type in ("set_tempo", "time_signature"):
            clock.append(message)
        elif message.type == "track_name":
            name = message.name
    for (channel, pitch), parts in sounding.items():
        for part in parts:
            notes[part].append(mido.Message("note_off", channel=channel, note=pitch, time=tick))
    yield one_by_one(clock)
    for (channel, number), events in notes.items():
        head = (
            mido.MetaMessage("track_name", name=name),
            mido.Message("program_change", channel=channel, program=number),
        )
        yield one_by_one([*head, *sorted([*events, *pedal[channel]], key=lambda message: message.time)])


def one_by_one(messages: Sequence[Any]) -> mido.MidiTrack:
    """Messages at their times, each with its time since the one before."""
    times = pairwise([0, *(message.time for message in messages)])
    waits = (min(at - before, MOST_WAIT) for before, at in times)
    return mido.MidiTrack(each.copy(time=wait) for each, wait in zip(messages, waits, strict=True))
