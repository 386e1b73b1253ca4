"""A MIDI file in ticks: its channels, clock and names."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from musictx.music.channels import CHANNELS, DRUM_CHANNEL, PORTS, Rhythm, merge_tracks, read_channels
from musictx.music.chunks import SEQUENCES, Chunks
from musictx.music.events import META, SYSEX, Events, Ints
from musictx.music.letters import as_text, guess_encoding, is_utf8
from musictx.music.ticks import RawMidi

TEXTS, NAME, PORT, TEMPO, SIGNATURE = range(1, 8), 3, 0x21, 0x51, 0x58  # meta events
MOST_UNIT = 7  # a time signature counts 2 ** 7, a 128th, at the shortest
DROP_FRAME_RATE = 29.97  # frames a second of what is written as 29


class SongEvents(NamedTuple):
    """The messages that belong to no channel."""

    tempi: list[tuple[int, int]]  # tick, microseconds per quarter
    signatures: list[tuple[int, int, int]]  # tick, beats, unit; 0 for one that cannot be
    texts: list[bytes]
    rhythms: list[Rhythm]
    makers: set[str]  # whose messages there are


def read_raw(chunks: Chunks, repairs: Counter[str]) -> RawMidi:
    """A MIDI file in ticks; counts repairs. Raises ValueError for a division of zero."""
    song, names, ports = SongEvents([], [], [], [], set()), list[bytes](), list[Ints]()
    for number, (body, events) in enumerate(chunks.tracks):
        first_port = number * PORTS if chunks.format == SEQUENCES else 0
        port = np.full(len(events.tick), first_port)
        names.append(listen(body, events, port, song))
        ports.append(port)
    tracks = [events for _, events in chunks.tracks]
    ends = np.array([events.tick[-1] if len(events.tick) else 0 for events in tracks], np.int64)
    is_xg = True if "XG" in song.makers else False if "GS" in song.makers else None
    encoding = guess_encoding([text for text in song.texts if not is_utf8(text)])
    titles = [as_text(name, encoding) for name in names]
    channels = read_channels(merge_tracks(tracks, ports, repairs), song.rhythms, is_xg, ends, titles, repairs)
    tempi = [tempo for tempo in song.tempi if tempo[1]]
    signatures = [signature for signature in song.signatures if signature[1] and signature[2]]
    repairs["tempo"] += len(song.tempi) - len(tempi)
    repairs["signature"] += len(song.signatures) - len(signatures)
    repairs["signature_replaced"] += len(set(signatures)) - len({tick for tick, _, _ in signatures})
    repairs["name"] += sum(not is_utf8(name) for name in names)
    at, mspq = np.array(tempi, np.int64).reshape(-1, 2).T
    return RawMidi(
        channels,
        chunks.division,
        at,
        mspq,
        tick_of(chunks.division),
        np.array(signatures, np.int64).reshape(-1, 3),
        titles,
        repairs,
    )


def tick_of(division: int) -> float | None:
    """The seconds of a tick in SMPTE time, else None."""
    if division < 0x8000:
        return None
    frames, ticks = 256 - (division >> 8), division & 255
    return 1 / ((DROP_FRAME_RATE if frames == 29 else frames) * max(ticks, 1))


def listen(body: bytes, events: Events, port: Ints, song: SongEvents) -> bytes:
    """Adds a track's messages to `song`, sets the port (N,) of its events, and returns its name."""
    name = b""
    for i in np.flatnonzero((events.status == META) | (events.status == SYSEX)).tolist():
        tick, kind, content = int(events.tick[i]), int(events.first[i]), body[events.begin[i] : events.end[i]]
        if events.status[i] == SYSEX:
            follow_maker(content, tick, int(port[i]), song)
        elif kind in TEXTS:
            song.texts.append(content)
            name = content if kind == NAME else name
        elif kind == PORT and content:
            port[i:] += content[0] - port[i] % PORTS
        elif kind == TEMPO and len(content) >= 3:
            song.tempi.append((tick, int.from_bytes(content[:3])))
        elif kind == SIGNATURE and len(content) >= 2:
            song.signatures.append((tick, content[0], 2 ** content[1] if content[1] <= MOST_UNIT else 0))
    return name


def follow_maker(content: bytes, tick: int, port: int, song: SongEvents) -> None:
    """Takes a SysEx of Roland's GS or Yamaha's XG that makes a channel a drum kit, or a reset."""
    part = None
    if is_reset(content):
        channels = range(port * CHANNELS, (port + 1) * CHANNELS)
        song.rhythms.extend(Rhythm(tick, channel, channel % CHANNELS == DRUM_CHANNEL) for channel in channels)
    if content[:1] == b"\x41" and content[2:4] == b"\x42\x12":
        song.makers.add("GS")
        if content[4:5] == b"\x40" and content[5:7] >= b"\x10\x15" and content[6:7] == b"\x15" and len(content) > 7:
            block = content[5] & 15  # part 10 comes first
            part = 9 if block == 0 else block - (block < 10)
    elif content[:1] == b"\x43" and content[2:3] == b"\x4c":
        song.makers.add("XG")
        if content[3:4] == b"\x08" and content[5:6] == b"\x07" and len(content) > 6:
            part = content[4]
    if part is not None and part < CHANNELS:
        value = content[7] if content[0] == 0x41 else content[6]
        song.rhythms.append(Rhythm(tick, port * CHANNELS + part, value > 0))


def is_reset(content: bytes) -> bool:
    """Whether a SysEx resets to GM, GS or XG, where only channel 10 is for drums."""
    return (
        (content[:1] == b"\x7e" and content[2:4] in (b"\x09\x01", b"\x09\x03"))
        or (content[:1] == b"\x41" and content[2:7] in (b"\x42\x12\x40\x00\x7f", b"\x42\x12\x00\x00\x7f"))
        or (content[:1] == b"\x43" and content[2:6] == b"\x4c\x00\x00\x7e")
    )
