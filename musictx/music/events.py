"""The events of a MIDI track as arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SYSEX, ESCAPE, META = 0xF0, 0xF7, 0xFF  # first bytes of events with a length of their own
END_OF_TRACK = 0x2F  # a meta event
SYSTEM_BYTES = {0xF1: 1, 0xF2: 2, 0xF3: 1}  # data bytes of other events of the system; most have none
BLOCK = 1 << 20  # bytes that are looked at together: a track may be as large as memory
AHEAD = 16  # bytes after a block that its last event may begin with

Ints = NDArray[np.int64]


class Events(NamedTuple):
    """The whole events of a track; `status` is 0 for none, and repeated where the file leaves it out."""

    tick: Ints  # (N,)
    status: Ints  # (N,)
    first: Ints  # (N,) data bytes; of a meta event its type
    second: Ints  # (N,)
    begin: Ints  # (N,) where the content of a meta event or SysEx begins
    end: Ints  # (N,) where the event ends

    @property
    def ends_of_track(self) -> Ints:
        ends: Ints = self.end[(self.status == META) & (self.first == END_OF_TRACK)]
        return ends

    def upto(self, end: int) -> "Events":
        n = int(np.searchsorted(self.end, end, side="right"))
        return Events(*(column[:n] for column in self))


def parse_events(track: bytes) -> Events:
    """The events of a track's bytes, without one that is cut off."""
    data = np.frombuffer(track + bytes(AHEAD), np.uint8)
    places, after = follow(data, len(track))
    index = np.arange(len(places))
    delta, size = numbers(data, places)
    at = places + size
    has_status = data[at] >= 128
    speaker = np.maximum.accumulate(np.where(has_status & (data[at] < SYSEX), index, -1))  # whose status runs on
    status = np.where(has_status, data[at], np.where(speaker >= 0, data[at[speaker]], 0)).astype(np.int64)
    at += has_status
    first, second = (data[at + k].astype(np.int64) for k in (0, 1))
    begin = at.copy()
    of_length = np.flatnonzero((status == SYSEX) | (status == ESCAPE) | (status == META))
    begin[of_length] += status[of_length] == META
    begin[of_length] += numbers(data, begin[of_length])[1]
    end = np.append(places, after)[1:]
    return Events(np.cumsum(delta), status, first, second, begin, end).upto(len(track))


def follow(data: NDArray[np.uint8], size: int) -> tuple[Ints, int]:
    """The places of the events in the first `size` bytes (N,), and the end of the last."""
    places, state = [np.zeros(0, np.int64)], 0
    for start in range(0, size, BLOCK):
        step = steps(data[start : start + BLOCK + AHEAD]).data
        state, stop = state - 2 * start, 2 * min(BLOCK, size - start)
        states: list[int] = []
        while state < stop:
            states.append(state)
            state = step[state]
        places.append((np.array(states, np.int64) >> 1) + start)
        state += 2 * start
    return np.concatenate(places), state >> 1


def steps(data: NDArray[np.uint8]) -> Ints:
    """(2N,) the next event of every place: a place is twice its position, plus one where an event without status has
    one data byte."""
    places = np.arange(len(data) - AHEAD)
    at = places + numbers(data, places)[1]  # of the status, or of the first data byte without one
    status = data[at]
    kind = status >> 4
    takes_one = (kind == 0xC) | (kind == 0xD)
    step = np.empty((len(places), 2), np.int64)
    step[:, 0] = 2 * np.where(status < 128, at + 2, at + 3 - takes_one) + takes_one
    step[:, 1] = np.where(status < 128, 2 * at + 3, step[:, 0])
    system = np.flatnonzero(status >= SYSEX)
    of, then = status[system], at[system] + 1
    length, size = numbers(data, then + (of == META))
    then += np.where((of == SYSEX) | (of == ESCAPE) | (of == META), (of == META) + size + length, 0)
    for other, n in SYSTEM_BYTES.items():
        then += n * (of == other)
    step[system] = np.stack([2 * then, 2 * then + 1], 1)
    return step.ravel()


def numbers(data: NDArray[np.uint8], places: Ints) -> tuple[Ints, Ints]:
    """The numbers of variable length at `places` (N,), and their bytes."""
    value, size, more = np.zeros(len(places), np.int64), np.zeros(len(places), np.int64), np.ones(len(places), bool)
    for k in range(5):  # the format allows four bytes, but programs write 2 ** 28 ticks with a fifth
        byte = data[np.minimum(places + k, len(data) - 1)]
        value = np.where(more, value << 7 | byte & 127, value)
        size += more
        more &= byte >= 128
        if not more.any():
            break
    return value, size
