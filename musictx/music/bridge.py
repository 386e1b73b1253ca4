"""Two files joined to one, with new notes between them."""

from collections.abc import Sequence
from dataclasses import replace
from math import lcm

import numpy as np

from musictx.music import midi_file as midi
from musictx.music.channel_use import reset_events
from musictx.music.midi_file import Event, EventFile, EventTrack, in_order, meta, with_events
from musictx.music.pedal import lifts
from musictx.music.project import NAME, Line, Project
from musictx.music.ticks import RawMidi, TempoMap

TEMPO, SIGNATURE = 0x51, 0x58
HEADS = (midi.NAME, 0x04, midi.PORT)  # of a track: its name, its instrument and its port stand at its beginning
MOST = 0x7FFF  # ticks a quarter
DEFAULTS = {TEMPO: b"\x03" + (500_000).to_bytes(3), SIGNATURE: b"\x04\x04\x02\x18\x08"}  # of a file that says nothing


def join_files(
    first: Project, second: Project, lines: Sequence[Line], from_s: float, to_s: float, text: str, *, pedal: bool
) -> bytes:
    """The first file, new lines from `from_s` on, and the second from `to_s` of the first one's clock on; ticks become
    finer to keep both exact."""
    one, other = in_quarters(first), in_quarters(second)
    ticks = [project.clock.ticks_per_quarter for project in (one, other)]
    fine = lcm(*ticks) if lcm(*ticks) <= MOST else ticks[0] * (MOST // ticks[0])
    one, other = at_ticks(one, fine), at_ticks(other, fine)
    join, later = one.tick(from_s), one.tick(to_s)
    clock = clock_of(other, later)
    before = one.tracks_until(later, whole=False)
    before = [EventTrack([e for e in t.events if e.tick < later or not _is_clock(e)], t.end) for t in before]
    before[0] = with_events(before[0], [], clock)
    after = [_shift(track, later) for track in other.file.tracks]
    new = one.new_tracks(lines, join, before + after, text=text, pedal=pedal, shares=len(lines) == 1)
    channels = sorted({event.channel for track in after for event in track.events if event.channel is not None})
    resets = [event for channel in channels for event in reset_events(before, channel, later)]
    state = [*lifts(one.raw.channels, later), *resets]
    new = new or [EventTrack([meta(0, midi.NAME, NAME), *([meta(0, midi.TEXT, text)] if text else [])], later)]
    new[0] = with_events(new[0], [], [event for event in state if event not in new[0].events])
    return midi.write_events(EventFile(fine.to_bytes(2), before + new + after))


def in_quarters(project: Project) -> Project:
    """The file in ticks a quarter, not parts of film frames."""
    if project.clock.ticks_per_quarter:
        return project
    frames, ticks = 256 - project.file.division[0], max(project.file.division[1], 1)
    per_quarter = min((30 if frames == 29 else frames) * ticks, MOST)  # a quarter is about a second
    mspq = round(float(project.clock.tick_s[0]) * per_quarter * 1e6)
    tracks = [
        EventTrack([e for e in t.events if e.data[:2] != bytes([midi.META, TEMPO])], t.end) for t in project.file.tracks
    ]
    tempo = Event(0, bytes([midi.META, TEMPO, 3]) + mspq.to_bytes(3))
    tracks[0] = EventTrack([tempo, *tracks[0].events], tracks[0].end)
    clock = TempoMap(RawMidi([], per_quarter, np.array([0]), np.array([mspq])))
    data = midi.write_events(EventFile(per_quarter.to_bytes(2), tracks))
    return replace(project, data=data, clock=clock)


def at_ticks(project: Project, per_quarter: int) -> Project:
    """The file with other ticks a quarter, at the nearest times."""
    clock, before = project.clock, project.clock.ticks_per_quarter
    if before == per_quarter:
        return project

    def moved(tick: int) -> int:
        return round(tick * per_quarter / before)

    tracks = [EventTrack([Event(moved(e.tick), e.data) for e in t.events], moved(t.end)) for t in project.file.tracks]
    starts = np.array([moved(tick) for tick in clock.tempo.tolist()])
    clock = TempoMap(RawMidi([], per_quarter, starts, clock.tick_s * before * 1e6))
    data = midi.write_events(EventFile(per_quarter.to_bytes(2), tracks))
    return replace(project, data=data, clock=clock)


def clock_of(project: Project, later: int) -> list[Event]:
    """The tempi and meters of a file that begins at the tick `later`; readers look in the first track."""
    events = in_order(event for track in project.file.tracks for event in track.events if _is_clock(event))
    kinds = {event.data[1] for event in events if event.tick == 0}
    defaults = [Event(0, bytes([midi.META, kind]) + body) for kind, body in DEFAULTS.items() if kind not in kinds]
    return [event._replace(tick=event.tick + later) for event in [*defaults, *events]]


def _is_clock(event: Event) -> bool:
    return event.kind == midi.META and event.data[1] in DEFAULTS


def _shift(track: EventTrack, by: int) -> EventTrack:
    heads = [e for e in track.events if e.tick == 0 and e.kind == midi.META and e.data[1] in HEADS]
    rest = [e for e in track.events if e not in heads and not _is_clock(e)]
    return EventTrack([*heads, *(e._replace(tick=e.tick + by) for e in rest)], track.end + by)
