"""A MIDI file in ticks as tracks of notes in seconds, with the sustain pedal."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.files import printable
from musictx.music.repairs import say_repairs
from musictx.music.score import DRUMS, MOST_BARS, UNITS, Meter, Score, beat_of

PEDAL_DOWN = 64  # controller 64 at this value or above is down
FORGOTTEN_S = 60.0  # of 530,781 presses in MAESTRO's 199 hours the longest takes 57 s
FORGOTTEN = f"a pedal that stays down for more than {FORGOTTEN_S:g} s is taken as forgotten and not heard"


def sustain(
    onset_s: NDArray[np.float64],
    offset_s: NDArray[np.float64],
    pitch: NDArray[np.integer],
    spans: NDArray[np.float64],
    is_before: NDArray[np.bool_] | bool = False,
) -> NDArray[np.float64]:
    """The ends of a channel's notes (N,) with its pedal: its lift, or the next strike of the pitch.

    `spans` (P, 2) are those of `pedal_spans`; a press beyond `FORGOTTEN_S` does not count. Where the pedal is lifted
    and pressed in one moment, a note released in it ends if that `is_before` (N,) the press."""
    down_s, up_s = spans[spans[:, 1] - spans[:, 0] <= FORGOTTEN_S].T
    if not len(onset_s) or not len(down_s):
        return offset_s
    last_down = np.searchsorted(down_s, offset_s, side="right") - 1
    is_sustained = (last_down >= 0) & (offset_s < up_s[last_down])
    is_sustained &= ~(np.isin(offset_s, spans[:, 1]) & (offset_s == down_s[last_down]) & is_before)
    until = np.minimum(up_s[last_down], _next_strike_s(onset_s, pitch))
    return np.where(is_sustained, np.maximum(until, offset_s), offset_s)


def pedal_spans(pedal_s: NDArray[np.float64], pedal_value: NDArray[np.integer], end_s: float) -> NDArray[np.float64]:
    """The spans (P, 2) of the pedal, from the values of controller 64 (K,).

    A pedal that never comes up lifts at the end of the music (as in Oore et al. 2018, section 3.1) or of its
    messages."""
    turns = np.flatnonzero(np.diff(pedal_value >= PEDAL_DOWN, prepend=False))  # down, up, down, up …
    times = pedal_s[turns]
    if len(times) % 2:
        times = np.append(times, max(end_s, float(pedal_s[-1])))
    return times.reshape(-1, 2)


def _next_strike_s(onset_s: NDArray[np.float64], pitch: NDArray[np.integer]) -> NDArray[np.float64]:
    """The next strike of each note's pitch, or infinity."""
    out = np.empty(len(onset_s))
    for each in np.unique(pitch):
        at = np.flatnonzero(pitch == each)
        onset = np.sort(onset_s[at])
        out[at] = np.append(onset, np.inf)[np.searchsorted(onset, onset_s[at], side="right")]
    return out


PARTS = (1, 2, 3, 4, 5, 6, 8)  # of a quarter: notes that keep to bar lines gather on one of these grids
# How much: the length of the mean of their phases. MAESTRO's 137 validation pieces, played without a beat, have 0.10 at
# most. A few notes gather by chance: by the second number, 0.1 % of their half minutes pass, 1.2 % of 10 s
KEEPS_TIME, BY_CHANCE, EXACT = 0.4, 2.5, 0.99
CLOSE_S = 1e-3  # ticks are rounded
MOST_QUARTERS = 100_000  # of a file whose beat is kept
PEDAL = 64  # the controller of the sustain pedal
DEFAULT_MSPQ = 500_000  # microseconds per quarter, for a file without a tempo

Ticks = NDArray[Any]


@dataclass(frozen=True)
class RawChannel:
    """The notes and the sustain pedal of a channel."""

    number: int
    notes: Ticks  # (6, N) onset, offset, pitch, velocity, program, track
    pedal: Ticks  # (2, K) tick, value
    is_before: NDArray[np.bool_]  # (N,) whether a note is released before the pedal is pressed at the same tick


@dataclass(frozen=True)
class RawMidi:
    """Channels, and the clock: tempi and ticks a quarter, or `tick_s` of SMPTE time."""

    channels: list[RawChannel]
    ticks_per_quarter: int
    tempo: Ticks  # (K,) ticks at which a tempo begins
    mspq: NDArray[Any]  # (K,) microseconds per quarter from there on
    tick_s: float | None = None
    signatures: Ticks = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # (K, 3) tick, beats, unit
    names: list[str] = field(default_factory=list)  # of the tracks
    repairs: Counter[str] = field(default_factory=Counter)  # what is wrong in the file, by kinds of `REPAIRS`


@dataclass(frozen=True)
class Track:
    """The notes of one instrument of a file."""

    name: str
    score: Score
    pedal_presses: int = 0
    pedal_forgotten: int = 0  # of these presses: so long that they are not heard
    part: int = 0  # tracks and their channels that have notes, counted from 1

    @property
    def program(self) -> int:
        return int(self.score.program[0]) if len(self.score) else 0

    @property
    def is_drums(self) -> bool:
        return self.program == DRUMS


@dataclass(frozen=True)
class Tracks:
    """The instruments of a file, its clock and its time signatures (K, 3): tick, beats, unit."""

    tracks: list[Track]
    tempo_map: "TempoMap"
    signatures: Ticks = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    repairs: Counter[str] = field(default_factory=Counter)  # what is wrong in the file, by kinds of `REPAIRS`
    numbers: Ticks | None = None  # (B, 2) of notation: twenty-fourths of quarters, and the bar's number from there on

    @property
    def quarter_s(self) -> float:
        return self.tempo_map.quarter_s

    def merge(self, drums: bool = False) -> Score:
        """All notes, drums only with `drums`."""
        return Score.merge([t.score for t in self.tracks if drums or not t.is_drums], self.quarter_s)

    def parts(self) -> list[Score]:
        """The parts with notes but drums, each with all of its sounds."""
        heard = [track for track in self.tracks if len(track.score) and not track.is_drums]
        numbers = dict.fromkeys(track.part for track in heard)
        return [Score.merge([each.score for each in heard if each.part == n], self.quarter_s) for n in numbers]

    def remark(self, drums: bool = False) -> str:
        """The repairs of the file, and a pedal forgotten in `merge(drums)`."""
        audible = [track for track in self.tracks if drums or not track.is_drums]
        pedal = [FORGOTTEN] if any(track.pedal_forgotten for track in audible) else []
        return "; ".join(say_repairs(self.repairs) + pedal)

    def meter(self) -> Meter:
        """The bars of the file."""
        end_s = max((track.score.duration_s for track in self.tracks), default=0.0)
        meter = self._numbered(self.tempo_map.meter(self.signatures, end_s))
        onset_s = np.unique((self.merge() or self.merge(drums=True)).onset_s)
        if meter.lines_s is None or not len(onset_s):
            return meter
        turns = 2 * np.pi * np.outer(PARTS, self.tempo_map.quarters(onset_s))
        if np.cos(turns).mean(1).max() <= min(max(KEEPS_TIME, BY_CHANCE / np.sqrt(len(onset_s))), EXACT):
            return meter
        lines = meter.bars_s(end_s, more=2)
        k = min(int(np.searchsorted(lines, onset_s[0] + CLOSE_S, side="right")) - 1, len(lines) - 3)
        first, line, after = self.tempo_map.quarters(np.array([onset_s[0], lines[k + 1], lines[k + 2]]))
        is_upbeat = line - first < (after - line) / 2 - CLOSE_S
        return replace(meter, whole_s=float(lines[k + is_upbeat]))

    def _numbered(self, meter: Meter) -> Meter:
        """With the numbers that notation gives its bars."""
        if self.numbers is None or meter.lines_s is None:
            return meter
        lines, (begins, numbers) = np.rint(meter.quarters(meter.lines_s) * UNITS), self.numbers.T
        at = np.maximum(np.searchsorted(begins, lines, side="right") - 1, 0)
        return replace(meter, numbers=numbers[at] + np.cumsum(lines > begins[-1]))


class TempoMap:
    """Ticks to seconds in float64. Raises ValueError for a division of zero."""

    def __init__(self, midi: RawMidi, one_tempo: bool = False) -> None:
        if midi.tick_s is None and midi.ticks_per_quarter <= 0:
            raise ValueError(f"{midi.ticks_per_quarter} ticks per quarter")
        tempo, mspq = midi.tempo.astype(np.int64), midi.mspq.astype(np.float64)
        tempo, mspq = tempo[mspq > 0], mspq[mspq > 0]
        order = np.argsort(tempo, kind="stable")
        order = order[np.diff(tempo[order], append=-1) != 0]  # of several at one tick the last
        tempo, mspq = tempo[order], mspq[order]
        self.changes = midi.tick_s is None and len(set(mspq.tolist())) > 1  # of tempo
        self.quarter_s = (float(mspq[0]) if len(mspq) and midi.tick_s is None else DEFAULT_MSPQ) / 1e6
        if one_tempo or midi.tick_s is not None:
            tempo, mspq = tempo[:0], mspq[:0]
        if not len(tempo) or tempo[0] > 0:
            first = self.quarter_s * 1e6 if one_tempo else DEFAULT_MSPQ
            tempo, mspq = np.append(0, tempo), np.append(first, mspq)
        self.tempo, self.ticks_per_quarter = tempo, midi.ticks_per_quarter if midi.tick_s is None else 0
        self.tick_s = mspq / 1e6 / midi.ticks_per_quarter if midi.tick_s is None else np.array([midi.tick_s])
        self.base_s = np.append(0, np.cumsum(np.diff(tempo) * self.tick_s[:-1]))

    def seconds(self, ticks: Ticks) -> NDArray[np.float64]:
        ticks = np.maximum(ticks, 0)
        at = np.searchsorted(self.tempo, ticks, side="right") - 1
        result: NDArray[np.float64] = self.base_s[at] + (ticks - self.tempo[at]) * self.tick_s[at]
        return result

    def ticks_at(self, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Moments in ticks, with fractions."""
        at = np.maximum(np.searchsorted(self.base_s, at_s, side="right") - 1, 0)
        return np.asarray(self.tempo[at] + (at_s - self.base_s[at]) / self.tick_s[at])

    def ticks(self, at_s: NDArray[np.float64]) -> NDArray[np.int64]:
        """The nearest ticks to moments from 0 on."""
        return np.rint(np.maximum(self.ticks_at(at_s), 0)).astype(np.int64)

    def quarters(self, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) the quarters before each moment (N,)."""
        return self.ticks_at(at_s) / self.ticks_per_quarter

    def meter(self, signatures: Ticks, end_s: float) -> Meter:
        """Bar lines up to one at or after `end_s`; in SMPTE time equal bars."""
        changes = signatures[(signatures[:, 1:] > 0).all(1)]
        changes = changes[np.argsort(changes[:, 0], kind="stable")]
        changes = changes[np.diff(changes[:, 0], append=-1) != 0]  # of several at one tick the last
        if not len(changes) or changes[0, 0] > 0:
            changes = np.concatenate([[(0, 4, 4)], changes])
        first = int(changes[0, 1]), int(changes[0, 2])
        if not self.ticks_per_quarter:
            return Meter(self.quarter_s, first)
        last = int(np.ceil(self.quarters(np.array([end_s]))[0] * self.ticks_per_quarter - 1e-6))
        # new music after the notes follows what the map says there
        later = int(max(self.tempo[-1], changes[-1, 0]))
        last = max(last, later if later <= MOST_QUARTERS * self.ticks_per_quarter else 0)
        changes = changes[changes[:, 0] <= last]
        bars = np.maximum(self.ticks_per_quarter * 4 * changes[:, 1] / changes[:, 2], (last + 1) / MOST_BARS)  # ticks
        borders = np.append(changes[1:, 0], last + bars[-1])
        lines = [np.arange(*segment) for segment in zip(changes[:, 0], borders, bars, strict=True)]
        quarters = last // self.ticks_per_quarter + 2
        units = np.arange(quarters * UNITS + 1 if quarters <= MOST_QUARTERS else 0) * (self.ticks_per_quarter / UNITS)
        lines_s, units_s = self.seconds(np.rint(np.concatenate(lines))), self.seconds(units)
        beats = np.repeat([beat_of(beats, unit) for _, beats, unit in changes.tolist()], [len(each) for each in lines])
        return Meter(self.quarter_s, first, lines_s, units_s=units_s if len(units_s) else None, beats=beats)


Seconds = NDArray[np.float64]


def sounding(raw: RawChannel, tempo_map: TempoMap) -> tuple[Seconds, Seconds, Seconds]:
    """The beginnings and ends of a channel's notes (N,) with its pedal, and the pedal's spans (P, 2)."""
    onset, offset, pitch = raw.notes[:3]
    onset_s = tempo_map.seconds(onset)
    offset_s = np.maximum(tempo_map.seconds(offset), onset_s)
    spans = pedal_spans(tempo_map.seconds(raw.pedal[0]), raw.pedal[1], float(offset_s.max(initial=0.0)))
    return onset_s, sustain(onset_s, offset_s, pitch, spans, raw.is_before), spans


def tracks_in_seconds(midi: RawMidi, one_tempo: bool) -> Tracks:
    """The notes of every track, channel and program, with the pedal."""
    tempo_map = TempoMap(midi, one_tempo)
    rows: list[tuple[tuple[int, int, int], Track]] = []
    for raw in midi.channels:
        _, _, pitch, velocity, program, number = raw.notes
        onset_s, offset_s, spans = sounding(raw, tempo_map)
        n_forgotten = int((np.diff(spans) > FORGOTTEN_S).sum())
        columns = onset_s, offset_s, pitch, velocity
        part = number * (DRUMS + 1) + program
        for each in np.unique(part).tolist():
            track, sound = divmod(each, DRUMS + 1)
            on_s, off_s, keys, loudness = (column[part == each] for column in columns)
            score = Score(on_s, off_s, keys, loudness, tempo_map.quarter_s, sound)
            name, place = printable(midi.names[track]), (track, raw.number, sound)
            rows.append((place, Track(name, score, len(spans), n_forgotten)))
    rows.sort(key=lambda item: item[0])
    parts = dict.fromkeys(place[:2] for place, _ in rows)
    numbers = {place: number for number, place in enumerate(parts, 1)}
    tracks = [replace(track, part=numbers[place[:2]]) for place, track in rows]
    return Tracks(tracks, tempo_map, midi.signatures, midi.repairs)
