"""The notes and pedals of a MIDI file's channels."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.music.drum_kits import is_kit
from musictx.music.events import SYSEX, Events, Ints
from musictx.music.score import DRUMS
from musictx.music.ticks import PEDAL, PEDAL_DOWN, RawChannel

OFF, ON, CONTROL, PROGRAM, PRESSURE = 0x8, 0x9, 0xB, 0xC, 0xD  # the upper half of a status
BANK, SOUND_OFF, RESET, NOTES_OFF = 0, 120, 121, 123  # controllers; those after NOTES_OFF end notes as well
DRUM_CHANNEL, CHANNELS, PORTS = 9, 16, 256
GM2_DRUMS, GM2_MELODY, XG_DRUMS = 120, 121, 127  # banks
# Files that do not say XG use its bank too: of 7 from trackers one for drums. The other 6 have other programs
XG_KITS = {0, 1, 8, 16, 24, 25, 32, 40}
Places = set[tuple[int, int]]  # tracks, and their channels of a port


class ChannelEvents(NamedTuple):
    """The events of all channels by time, then track."""

    tick: Ints  # (N,)
    channel: Ints  # (N,) of all ports
    kind: Ints  # (N,) OFF, ON …
    first: Ints  # (N,) data bytes
    second: Ints  # (N,)
    track: Ints  # (N,)
    order: Ints  # (N,) the number of events before

    def where(self, keep: NDArray[np.bool_]) -> "ChannelEvents":
        return self.take(np.flatnonzero(keep))

    def take(self, places: Ints) -> "ChannelEvents":
        return ChannelEvents(*(column.take(places) for column in self))


class Rhythm(NamedTuple):
    """A message that makes a channel a drum kit, or none."""

    tick: int
    channel: int
    is_drums: bool


def merge_tracks(tracks: list[Events], ports: list[Ints], repairs: Counter[str]) -> ChannelEvents:
    """The events of all channels; each port (N,) has its own 16. Counts repairs."""
    parts = []
    for number, (events, port) in enumerate(zip(tracks, ports, strict=True)):
        keep = (events.status >= 128) & (events.status < SYSEX)
        kind, channel = events.status[keep] >> 4, port[keep] * CHANNELS + events.status[keep] % 16
        first, second = events.first[keep], np.where((kind == PROGRAM) | (kind == PRESSURE), 0, events.second[keep])
        repairs["value"] += int((first > 127).sum() + (second > 127).sum())
        repairs["no_status"] += int((events.status == 0).sum())
        kind[(kind == ON) & (second == 0)] = OFF
        data = first.clip(max=127), second.clip(max=127)
        parts.append((events.tick[keep], channel, kind, *data, np.full(len(kind), number)))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")  # as in a file whose tracks are merged, which is the same music
    tick, channel, kind, first, second, track = (column[order] for column in columns)
    return ChannelEvents(tick, channel, kind, first, second, track, np.arange(len(order)))


def read_channels(
    events: ChannelEvents,
    rhythms: list[Rhythm],
    is_xg: bool | None,
    ends: Ints,
    names: list[str],
    repairs: Counter[str],
) -> list[RawChannel]:
    """The notes and pedal of every channel; at one tick programs and banks count before notes.

    A note without an end ends with its track, at its tick in `ends`. `is_xg`: whether banks are those of XG; None:
    unknown. `names` are those of the tracks."""
    controls, programs = events.where(events.kind == CONTROL), events.where(events.kind == PROGRAM)
    notes = events.where((events.kind == ON) | (events.kind == OFF))
    raw_channels, banks, kits = [], [], named_kits(events, names)
    for channel in np.unique(notes.channel).tolist():
        control, change = controls.where(controls.channel == channel), programs.where(programs.channel == channel)
        cuts = control.tick[(control.first == SOUND_OFF) | (control.first >= NOTES_OFF)]
        strikes, offset, place = pair(notes.where(notes.channel == channel), cuts, ends, repairs)
        at, value = np.array([r[::2] for r in rhythms if r.channel == channel], np.int64).reshape(-1, 2).T
        is_drums = latest(at, value, strikes.tick, channel % CHANNELS == DRUM_CHANNEL)
        bank = control.where(control.first == BANK)
        banks.append(latest(bank.tick, bank.second, strikes.tick, 0))
        is_drums = (is_drums > 0) & (banks[-1] != GM2_MELODY) | (banks[-1] == GM2_DRUMS)
        is_named = np.isin(strikes.track, kits) & ~is_drums & (banks[-1] != GM2_MELODY)
        repairs["named_kits"] += len(np.unique(strikes.track[is_named]))
        is_drums |= is_named
        program = np.where(is_drums, DRUMS, latest(change.tick, change.first, strikes.tick, 0))
        columns = strikes.tick, offset, strikes.first, strikes.second, program, strikes.track
        press = control.where((control.first == PEDAL) & (control.second >= PEDAL_DOWN) | (control.first == SOUND_OFF))
        is_before = latest(press.tick, press.order, offset, -1) > place
        raw_channels.append(RawChannel(channel, np.stack(columns), pedal_of(control), is_before))
    in_bank = [raw.notes[4, its_bank == XG_DRUMS] for raw, its_bank in zip(raw_channels, banks, strict=True)]
    if is_xg or (is_xg is None and {int(p) for each in in_bank for p in np.unique(each)} <= {*XG_KITS, DRUMS}):
        for raw, its_bank in zip(raw_channels, banks, strict=True):
            raw.notes[4, its_bank == XG_DRUMS] = DRUMS
    return raw_channels


def named_kits(events: ChannelEvents, names: list[str]) -> list[int]:
    """The tracks of one channel that have a drum kit's name and no program; that of another track that plays on the
    channel is not theirs, since many a DAW puts all on channel 1."""
    named = [t for t, name in enumerate(names) if is_kit(name)]
    if not named:
        return []
    playing, changing = (
        {*zip(events.track[mine].tolist(), events.channel[mine].tolist(), strict=True)}
        for mine in (events.kind == ON, events.kind == PROGRAM)
    )
    kits = list[int]()
    for t in named:
        channels = {channel for track, channel in playing if track == t}
        voices = {track for track, channel in changing if channel in channels}
        others = {track for track, channel in playing if channel in channels} - {t}
        if len(channels) == 1 and not voices - others:
            kits.append(t)
    return kits


def drums_of(channels: list[RawChannel]) -> Places:
    """The tracks, and their channels of a port, whose notes are all drums."""
    drums = Places()
    for raw in channels:
        program, track = raw.notes[4:]
        drums |= {(t, raw.number % CHANNELS) for t in {*track.tolist()} - {*track[program != DRUMS].tolist()}}
    return drums


def latest(at: Ints, values: Ints, ticks: Ints, default: int) -> Ints:
    """The last value up to each tick (N,)."""
    order = np.argsort(at, kind="stable")
    return np.append(default, values[order])[np.searchsorted(at[order], ticks, side="right")]


def pair(events: ChannelEvents, cuts: Ints, ends: Ints, repairs: Counter[str]) -> tuple[ChannelEvents, Ints, Ints]:
    """The strikes of a channel (N,), their ends, and the order of the events that end them, -1 for none.

    An end is for the note of its pitch that sounds longest, and `cuts` end all. A note whose only end was for a longer
    one is left out."""
    cuts, is_on = np.unique(cuts), events.kind == ON
    # a note struck at a cut sounds on, one released there began before
    age = np.where(is_on, *(np.searchsorted(cuts, events.tick, side=side) for side in ("right", "left")))
    key = events.first * (len(cuts) + 1) + age
    order = np.argsort(key, kind="stable")
    early = ends_first(key[order], events.tick[order], is_on[order])
    repairs["end_first"] += int(early.sum())
    order = order[np.lexsort((early, events.tick[order], key[order]))] if early.any() else order
    events, key, age, is_on = events.take(order), key[order], age[order], is_on[order]
    is_first = begins_group(key)
    group = np.cumsum(is_first) - 1
    is_end = has_note(is_on, is_first)
    on, off = np.flatnonzero(is_on), np.flatnonzero(is_end)
    before = np.cumsum([is_on, is_end], axis=1) - [is_on, is_end]  # notes and ends before each event
    start = np.flatnonzero(is_first)[group[off]]
    partner = before[0, start] + before[1, off] - before[1, start]
    strikes, age, place = events.take(on), age[on], np.full(len(on), -1)
    offset, place[partner] = np.append(cuts, 0)[age], events.order[off]
    offset[partner] = events.tick[off]
    is_open = (age == len(cuts)) & (place < 0)
    last_end = np.full(len(key), -1)
    last_end[group[off]] = off
    is_lost = is_open & (last_end[group[on]] > on)
    is_open &= ~is_lost
    offset[is_open] = np.maximum(ends[strikes.track], strikes.tick)[is_open]
    repairs["note_without_end"] += int(is_open.sum())
    repairs["note_lost"] += int(is_lost.sum())
    return strikes.where(~is_lost), offset[~is_lost], place[~is_lost]


def begins_group(key: Ints) -> NDArray[np.bool_]:
    """Where another key begins (N,)."""
    is_first: NDArray[np.bool_] = np.append(True, key[1:] != key[:-1])[: len(key)]
    return is_first


def has_note(is_on: NDArray[np.bool_], is_first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which events end a note (N,), in groups by time."""
    group = np.cumsum(is_first) - 1
    step = np.where(is_on, 1, -1)
    sounding = np.cumsum(step)
    sounding -= (sounding - step)[is_first][group]
    level = sounding - group * (2 * len(step) + 1)  # each group lies below those before, so one minimum does for all
    lowest = np.append(1, np.minimum.accumulate(level))[: len(step)]
    ends: NDArray[np.bool_] = ~is_on & ~((sounding < 0) & (level < lowest))
    return ends


def ends_first(key: Ints, tick: Ints, is_on: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which ends come before their strikes (N,), as some programs write notes without length. Events are by key, then
    time."""
    is_first = begins_group(key)
    group, place = np.cumsum(is_first) - 1, np.arange(len(key))
    is_end = has_note(is_on, is_first)
    at_tick = is_first | (np.diff(tick, prepend=-1) != 0)
    after = np.append(place[at_tick], len(key))[np.cumsum(at_tick)]  # the first event of the next tick or key
    is_followed = np.append(~is_on & ~is_first, False)[after]  # by an end
    # it ends no note, the strike at its tick has no end before the next one, and the key has too few ends
    early: NDArray[np.bool_] = ~is_on & ~is_end & (after - 1 > place) & is_on[after - 1] & ~is_followed
    missing = np.bincount(group, is_on.astype(float) - is_end)
    early &= (np.bincount(group, early) <= missing)[group]
    return early


def pedal_of(control: ChannelEvents) -> Ints:
    """The sustain pedal (2, K): tick, value. An end of all sound lifts it for a moment."""
    control = control.where(np.isin(control.first, (PEDAL, RESET, SOUND_OFF)))
    value = np.where(control.first == PEDAL, control.second, 0)
    is_moment = control.first == SOUND_OFF
    last = np.maximum.accumulate(np.where(is_moment, -1, np.arange(len(value))))
    moments = np.flatnonzero(is_moment)
    again = np.append(value, 0)[last[moments]]
    return np.insert(np.stack([control.tick, value]), moments + 1, [control.tick[moments], again], axis=1)
