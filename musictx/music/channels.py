"""What the channels of a MIDI file play. MIDI's state belongs to a channel, whichever tracks its events are in."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.music.events import SYSEX, Events, Ints
from musictx.music.score import DRUMS
from musictx.music.ticks import PEDAL, PEDAL_DOWN, RawChannel

OFF, ON, CONTROL, PROGRAM, PRESSURE = 0x8, 0x9, 0xB, 0xC, 0xD  # the upper half of a status
BANK, SOUND_OFF, RESET, NOTES_OFF = 0, 120, 121, 123  # controllers; those after NOTES_OFF end notes as well
DRUM_CHANNEL, CHANNELS, PORTS = 9, 16, 256
GM2_DRUMS, GM2_MELODY, XG_DRUMS = 120, 121, 127  # banks
# Files that do not say XG use its bank too: of 7 from trackers one for drums. The other 6 have other programs
XG_KITS = {0, 1, 8, 16, 24, 25, 32, 40}


class Played(NamedTuple):
    """The events of all channels in order of time. At one tick they are in order of their tracks, as in a file whose
    tracks have been merged; so such a file is the same music."""

    tick: Ints  # (N,)
    channel: Ints  # (N,) of all ports
    kind: Ints  # (N,) OFF, ON …
    first: Ints  # (N,) data bytes
    second: Ints  # (N,)
    track: Ints  # (N,)
    order: Ints  # (N,) how many events come before

    def where(self, keep: NDArray[np.bool_]) -> "Played":
        return self.take(np.flatnonzero(keep))

    def take(self, places: Ints) -> "Played":
        return Played(*(column.take(places) for column in self))


class Rhythm(NamedTuple):
    """A message to a channel: be a drum kit from here on, or be none."""

    tick: int
    channel: int
    is_drums: bool


def play_together(tracks: list[Events], ports: list[Ints], repairs: Counter[str]) -> Played:
    """The events of the channels in all tracks; each port (N,) has its own 16. Counts what is no event or value."""
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
    together = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(together[0], kind="stable")
    tick, channel, kind, first, second, track = (column[order] for column in together)
    return Played(tick, channel, kind, first, second, track, np.arange(len(order)))


def read_channels(
    played: Played, rhythms: list[Rhythm], is_xg: bool | None, ends: Ints, repairs: Counter[str]
) -> list[RawChannel]:
    """Every channel's notes and pedal. A note that nothing ends does so with its track, at its tick in `ends`. `is_xg`:
    whether banks are those of XG; None: the file does not say. At one tick programs and banks come before notes."""
    controls, programs = played.where(played.kind == CONTROL), played.where(played.kind == PROGRAM)
    notes = played.where((played.kind == ON) | (played.kind == OFF))
    raw_channels, banks = [], []
    for channel in np.unique(notes.channel).tolist():
        control, change = controls.where(controls.channel == channel), programs.where(programs.channel == channel)
        cuts = control.tick[(control.first == SOUND_OFF) | (control.first >= NOTES_OFF)]
        struck, offset, place = pair(notes.where(notes.channel == channel), cuts, ends, repairs)
        at, value = np.array([r[::2] for r in rhythms if r.channel == channel], np.int64).reshape(-1, 2).T
        is_drums = latest(at, value, struck.tick, channel % CHANNELS == DRUM_CHANNEL)
        bank = control.where(control.first == BANK)
        banks.append(latest(bank.tick, bank.second, struck.tick, 0))
        is_drums = (is_drums > 0) & (banks[-1] != GM2_MELODY) | (banks[-1] == GM2_DRUMS)
        program = np.where(is_drums, DRUMS, latest(change.tick, change.first, struck.tick, 0))
        columns = struck.tick, offset, struck.first, struck.second, program, struck.track
        press = control.where((control.first == PEDAL) & (control.second >= PEDAL_DOWN) | (control.first == SOUND_OFF))
        is_before = latest(press.tick, press.order, offset, -1) > place
        raw_channels.append(RawChannel(channel, np.stack(columns), pedal_of(control), is_before))
    in_bank = [raw.notes[4, its_bank == XG_DRUMS] for raw, its_bank in zip(raw_channels, banks, strict=True)]
    if is_xg or (is_xg is None and {int(p) for each in in_bank for p in np.unique(each)} <= {*XG_KITS, DRUMS}):
        for raw, its_bank in zip(raw_channels, banks, strict=True):
            raw.notes[4, its_bank == XG_DRUMS] = DRUMS
    return raw_channels


def latest(at: Ints, values: Ints, ticks: Ints, default: int) -> Ints:
    """What was said last, up to each tick (N,)."""
    order = np.argsort(at, kind="stable")
    return np.append(default, values[order])[np.searchsorted(at[order], ticks, side="right")]


def pair(mine: Played, cuts: Ints, ends: Ints, repairs: Counter[str]) -> tuple[Played, Ints, Ints]:
    """The notes of a channel as they are struck (N,), when each ends, and the order of the event that ends it, -1 for
    none. An end is for the note of its pitch that has sounded longest. At `cuts` all notes end that began before;
    without any end, a note ends with its track. One whose only end was for a longer note is left out."""
    cuts, is_on = np.unique(cuts), mine.kind == ON
    # what is struck at a cut sounds on, what is released there began before
    age = np.where(is_on, *(np.searchsorted(cuts, mine.tick, side=side) for side in ("right", "left")))
    key = mine.first * (len(cuts) + 1) + age
    order = np.argsort(key, kind="stable")
    early = ends_first(key[order], mine.tick[order], is_on[order])
    repairs["end_first"] += int(early.sum())
    order = order[np.lexsort((early, mine.tick[order], key[order]))] if early.any() else order
    mine, key, age, is_on = mine.take(order), key[order], age[order], is_on[order]
    is_first = begins_group(key)
    group = np.cumsum(is_first) - 1
    is_end = has_note(is_on, is_first)
    on, off = np.flatnonzero(is_on), np.flatnonzero(is_end)
    before = np.cumsum([is_on, is_end], axis=1) - [is_on, is_end]  # notes and ends before each event
    start = np.flatnonzero(is_first)[group[off]]
    partner = before[0, start] + before[1, off] - before[1, start]
    struck, age, place = mine.take(on), age[on], np.full(len(on), -1)
    offset, place[partner] = np.append(cuts, 0)[age], mine.order[off]
    offset[partner] = mine.tick[off]
    is_open = (age == len(cuts)) & (place < 0)
    last_end = np.full(len(key), -1)
    last_end[group[off]] = off
    is_lost = is_open & (last_end[group[on]] > on)
    is_open &= ~is_lost
    offset[is_open] = np.maximum(ends[struck.track], struck.tick)[is_open]
    repairs["note_without_end"] += int(is_open.sum())
    repairs["note_lost"] += int(is_lost.sum())
    return struck.where(~is_lost), offset[~is_lost], place[~is_lost]


def begins_group(key: Ints) -> NDArray[np.bool_]:
    """Where another key begins (N,)."""
    is_first: NDArray[np.bool_] = np.append(True, key[1:] != key[:-1])[: len(key)]
    return is_first


def has_note(is_on: NDArray[np.bool_], is_first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which events end a note (N,). They are strikes and ends, group by group, each in order of time."""
    group = np.cumsum(is_first) - 1
    step = np.where(is_on, 1, -1)
    sounding = np.cumsum(step)
    sounding -= (sounding - step)[is_first][group]
    level = sounding - group * (2 * len(step) + 1)  # each group lies below those before, so one minimum does for all
    lowest = np.append(1, np.minimum.accumulate(level))[: len(step)]
    ends: NDArray[np.bool_] = ~is_on & ~((sounding < 0) & (level < lowest))
    return ends


def ends_first(key: Ints, tick: Ints, is_on: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which ends come before their strikes (N,), as programs write notes without length: such an end has no note, the
    strike at its tick no end before the next one, and the key too few ends. Events are in order of their keys, then of
    time."""
    is_first = begins_group(key)
    group, place = np.cumsum(is_first) - 1, np.arange(len(key))
    is_end = has_note(is_on, is_first)
    at_tick = is_first | (np.diff(tick, prepend=-1) != 0)
    after = np.append(place[at_tick], len(key))[np.cumsum(at_tick)]  # the first event of the next tick or key
    is_followed = np.append(~is_on & ~is_first, False)[after]  # by an end
    early: NDArray[np.bool_] = ~is_on & ~is_end & (after - 1 > place) & is_on[after - 1] & ~is_followed
    missing = np.bincount(group, is_on.astype(float) - is_end)
    early &= (np.bincount(group, early) <= missing)[group]
    return early


def pedal_of(control: Played) -> Ints:
    """The sustain pedal (2, K): tick, value. A reset lifts it; an end of all sound lifts it for a moment."""
    control = control.where(np.isin(control.first, (PEDAL, RESET, SOUND_OFF)))
    value = np.where(control.first == PEDAL, control.second, 0)
    is_moment = control.first == SOUND_OFF
    last = np.maximum.accumulate(np.where(is_moment, -1, np.arange(len(value))))
    moments = np.flatnonzero(is_moment)
    again = np.append(value, 0)[last[moments]]
    return np.insert(np.stack([control.tick, value]), moments + 1, [control.tick[moments], again], axis=1)
