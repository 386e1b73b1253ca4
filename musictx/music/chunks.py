"""The chunks of a MIDI file, also with wrong lengths or counts."""

import zlib
from collections import Counter
from typing import NamedTuple

from musictx.music.events import Events, parse_events

HEAD, TRACK, RIFF, GZIP = b"MThd", b"MTrk", b"RIFF", b"\x1f\x8b"
END = b"\x00\xff\x2f\x00"
SEQUENCES = 2  # the format whose tracks are pieces, which share nothing


class Chunks(NamedTuple):
    """A header's format and division, and the bytes and events of each track."""

    format: int
    division: int
    tracks: list[tuple[bytes, Events]]

    def write(self) -> bytes:
        """The file with right lengths and counts, for other readers."""
        head = b"".join(n.to_bytes(2) for n in (self.format, len(self.tracks), self.division))
        bodies = [body if body.endswith(END[1:]) else body + END for body, _ in self.tracks]
        chunks = [TRACK + len(body).to_bytes(4) + body for body in bodies]
        return b"".join([HEAD, len(head).to_bytes(4), head, *chunks])


def unwrap(data: bytes, most_bytes: int) -> bytes:
    """The MIDI file inside a gzip or RIFF (RMID) file, at most one byte more than `most_bytes`. Raises ValueError for a
    damaged gzip file."""
    if data[:2] == GZIP:
        data = _unpack(data, most_bytes + 1)
    at = 12
    while data[:4] == RIFF and at + 8 < len(data):
        if data[at : at + 4] == b"data" and data[at + 8 : at + 12] in (HEAD, RIFF):
            data, at = data[at + 8 :], 12  # what follows is no track
            continue
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + length + length % 2
    return data


def _unpack(data: bytes, most: int) -> bytes:
    """At most so many bytes of a gzip file, perhaps of several members or cut short."""
    out = b""
    while data[:2] == GZIP and len(out) < most:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            out += member.decompress(data, most - len(out))
        except zlib.error as error:
            raise ValueError(f"cannot be unpacked: {error}") from None
        data = member.unused_data
    if not out:
        raise ValueError("cannot be unpacked: there is nothing in it")
    return out


def read_chunks(data: bytes, repairs: Counter[str]) -> Chunks:
    """A MIDI file's header and tracks; counts repairs. Raises ValueError for other data."""
    if data[:4] != HEAD:
        raise ValueError(f"not a MIDI file: it begins with {data[:4]!r}, MIDI files begin with {HEAD!r}")
    if len(data) < 14:
        raise ValueError("cut short: not even its header is whole")
    form, count, division = (int.from_bytes(data[at : at + 2]) for at in (8, 10, 12))
    at = 8 + int.from_bytes(data[4:8])
    if at < 14 or not is_chunk(data, at):
        repairs["header_length"] += at != 14  # a header has six bytes, whatever it claims
        at = 14
    tracks: list[tuple[bytes, Events]] = []
    end = at
    while (at := next_track(data, end)) < len(data):
        body, events, end = read_track(data, at, repairs)
        tracks.append((body, events))
    rest = data[end:]
    repairs["cut_short"] += 0 < len(rest) < 8 and TRACK.startswith(rest[:4])  # a track's first bytes
    if not tracks:
        raise ValueError("cut short: it ends before its first track" if count else "there is no track in it")
    repairs["track_count"] += count != len(tracks) and not (repairs["cut_short"] and count > len(tracks))
    repairs["sequences"] += len(tracks) * (form == SEQUENCES and len(tracks) > 1)
    return Chunks(form, division, tracks)


def next_track(data: bytes, at: int) -> int:
    """The place of the next track, past other chunks; else the end of the data."""
    while is_chunk(data, at) and data[at : at + 4] != TRACK:
        after = at + 8 + int.from_bytes(data[at + 4 : at + 8])
        if after > len(data):
            break
        at = after
    place = data.find(TRACK, at)
    return place if 0 <= place <= len(data) - 8 else len(data)


def is_chunk(data: bytes, at: int) -> bool:
    """Whether a chunk begins there, or the data ends."""
    return at == len(data) or (at + 8 <= len(data) and data[at : at + 4].isalpha())


def read_track(data: bytes, at: int, repairs: Counter[str]) -> tuple[bytes, Events, int]:
    """The bytes, events and end of the track at `at`, also with a wrong length."""
    begin = at + 8
    length = int.from_bytes(data[at + 4 : begin])
    is_sound = is_chunk(data, begin + length)
    following = data.find(TRACK, begin)
    stop = begin + length if is_sound else following if following >= 0 else len(data)
    events = parse_events(data[begin:stop])
    ends = [int(end) for end in events.ends_of_track]
    if is_sound:
        ends = [end for end in ends if end < length and data[begin + end : begin + end + 4] == TRACK]
    if ends:
        stop = begin + ends[0]
    if stop != begin + length:
        is_cut = not ends and following < 0 and begin + length > len(data)
        repairs["cut_short" if is_cut else "chunk_length"] += 1
    events = events.upto(stop - begin)
    whole = begin + (int(events.end[-1]) if len(events.end) else 0)
    if not len(events.ends_of_track) and whole < stop:
        repairs["event_cut"] += not repairs["cut_short"]
        return data[begin:whole], events, stop
    return data[begin:stop], events, stop
