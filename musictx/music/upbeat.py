"""A last bar that only has what the upbeat lacks: music that goes on has the meter before it."""

from dataclasses import replace

import numpy as np

from musictx.music.midi_file import META, EventFile, read_events, with_events, write_events
from musictx.music.ticks import Tracks

SIGNATURE = bytes((META, 0x58))  # the event of a time signature begins with it


def completes_upbeat(tracks: Tracks) -> bool:
    """Whether the last time signature is for one bar alone, which makes the upbeat a whole bar."""
    per_quarter = tracks.tempo_map.ticks_per_quarter
    ticks, beats, units = tracks.signatures[(tracks.signatures[:, 1:] > 0).all(1)].T
    bars = per_quarter * 4 * beats / units
    if len(ticks) < 2 or (ticks[1:] <= ticks[:-1]).any() or ticks[1] > bars[0]:  # more than a bar is no upbeat
        return False
    end_s = max((track.score.duration_s for track in tracks.tracks), default=0.0)
    upbeat, end = ticks[1], round(tracks.tempo_map.ticks_at(np.array([end_s])).item())
    return bool(ticks[-1] < end <= ticks[-1] + bars[-1] and upbeat + bars[-1] == bars[-2])


def without_last_signature(data: bytes) -> bytes:
    """A MIDI file without its last time signature."""
    file = read_events(data)
    _, t, k = _signatures(file)[-1]
    events = file.tracks[t].events
    tracks = [*file.tracks]
    tracks[t] = tracks[t]._replace(events=events[:k] + events[k + 1 :])
    return write_events(file._replace(tracks=tracks))


def with_usual_meter(tracks: Tracks, data: bytes, fills: bool) -> tuple[Tracks, bytes]:
    """A MIDI file whose last bar completes the upbeat, with the meter before that: `fills` gives it to that bar too;
    else the bar stays, and the meter is that of what follows. Other files stay as they are."""
    if not completes_upbeat(tracks):
        return tracks, data
    if fills:
        return replace(tracks, signatures=tracks.signatures[:-1]), without_last_signature(data)
    *_, before, (at, beats, unit) = tracks.signatures.tolist()
    tick = at + tracks.tempo_map.ticks_per_quarter * 4 * beats // unit
    signatures = np.append(tracks.signatures, [[tick, *before[1:]]], axis=0)
    return replace(tracks, signatures=signatures), with_meter_again(data, tick)


def with_meter_again(data: bytes, tick: int) -> bytes:
    """A MIDI file that has the meter before its last time signature again, from a tick on."""
    file = read_events(data)
    _, t, k = _signatures(file)[-2]
    track = file.tracks[t]
    tracks = [*file.tracks]
    tracks[t] = with_events(track, [], [track.events[k]._replace(tick=tick)])
    return write_events(file._replace(tracks=tracks))


def _signatures(file: EventFile) -> list[tuple[int, int, int]]:
    """The tick, the track and the place of each time signature, in time."""
    return sorted(
        (event.tick, t, k)
        for t, track in enumerate(file.tracks)
        for k, event in enumerate(track.events)
        if event.data.startswith(SIGNATURE)
    )
