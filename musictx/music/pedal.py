"""The sustain pedal in a file: for long notes, and where a file is cut."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from musictx.music import midi_file as midi
from musictx.music.channels import CHANNELS
from musictx.music.midi_file import Event, EventTrack, Note, with_events
from musictx.music.ticks import FORGOTTEN_S, PEDAL, PEDAL_DOWN, RawChannel, TempoMap, sounding

UP_S = 0.05  # between a lift and the next press
TOGETHER = 2  # notes that begin one after the other and end at once: a pedal, not fingers


class Press(NamedTuple):
    """The ticks of a pedal's press and lift."""

    down: int
    up: int


def with_pedal(notes: Sequence[Note], clock: TempoMap, from_tick: int = 0) -> tuple[list[Note], list[Press]]:
    """Keys and presses: the pedal goes down 50 ms after its last lift, or the last end of a note, and up where several
    notes end, if no others end meanwhile but those that are struck again."""
    out, presses = list(notes), list[Press]()
    strikes: dict[int, list[int]] = {}
    for note in sorted(notes, key=lambda note: note.on):
        strikes.setdefault(note.pitch, []).append(note.on)
    repeats = [note.off in strikes[note.pitch] for note in notes]  # it ends where its pitch is struck again
    ends = sorted({note.off for note, repeat in zip(notes, repeats, strict=True) if not repeat})
    for before, up in pairwise([from_tick, *ends]):
        free_s = float(clock.seconds(np.array([before]))[0]) + UP_S * bool(before)
        down = int(np.ceil(clock.ticks_at(np.array([free_s]))[0]))
        group = [k for k, note in enumerate(notes) if note.off == up and not repeats[k]]
        n_onsets = len({notes[k].on for k in group})
        is_long = np.diff(clock.seconds(np.array([down, up])))[0] > FORGOTTEN_S
        if down >= up - 1 or is_long or n_onsets < TOGETHER:
            continue
        presses.append(Press(down, up))
        onsets = sorted({note.on for note in notes if note.on <= up})
        for k in [*group, *(k for k, note in enumerate(notes) if repeats[k] and down < note.off <= up)]:
            note = notes[k]
            later = next((on for on in onsets if on > note.on), note.off)
            out[k] = note._replace(off=min(max(later, down + 1, note.on + 1), note.off))
    return out, presses


def lifts(channels: Sequence[RawChannel], tick: int | None = None) -> list[Event]:
    """The lifts of pedals that are down at a tick, or at the end."""
    out = list[Event]()
    for raw in channels:
        before = raw.pedal if tick is None else raw.pedal[:, raw.pedal[0] < tick]
        if before[1, -1:].max(initial=0) >= PEDAL_DOWN:  # readers lift it with the last note of its channel
            end = max(int(raw.notes[:2].max()), int(raw.pedal[0, -1]))
            out.append(_pedal(raw, end if tick is None else min(tick, end), 0))
    return out


def let_go(tracks: Sequence[EventTrack], channels: Sequence[RawChannel], tick: int | None = None) -> list[EventTrack]:
    """The tracks with `lifts`, each where the last pedal of its channel is."""
    more: dict[int, list[Event]] = {}
    for lift in lifts(channels, tick):
        moves = [
            t
            for t, track in enumerate(tracks)
            if any(e.kind == midi.CONTROL and e.channel == lift.channel and e.data[1] == PEDAL for e in track.events)
        ]
        more.setdefault(max(moves, default=len(tracks) - 1), []).append(lift)
    return [with_events(track, [], more[t]) if t in more else track for t, track in enumerate(tracks)]


def forgotten_presses(channels: Sequence[RawChannel], clock: TempoMap, tick: int) -> set[Event]:
    """The presses that are too long for a reader, but would count if they ended at a tick."""
    out = set[Event]()
    for raw in channels:
        spans = sounding(raw, clock)[2]
        for down, up in clock.ticks(spans[np.diff(spans)[:, 0] > FORGOTTEN_S]).tolist():
            if down < tick < up:
                out |= {_pedal(raw, at, value) for at, value in raw.pedal.T.tolist() if down <= at < up}
    return out


def _pedal(raw: RawChannel, tick: int, value: int) -> Event:
    return Event(tick, bytes([midi.CONTROL | raw.number % CHANNELS, PEDAL, value]))
