"""Songs of POP909 as scores: the notes of the MIDI file on the beats of its annotation.

Measured on all 909 songs: the beats of `beat_midi.txt` are a quarter of the file apart, 2 songs excepted, and 98 % of
the median song's onsets lie within a twenty-fourth of a quarter of their sixteenths and triplets (18 % with
`beat_audio.txt`). Its third column begins bars of 4 beats in 880 songs; in the other 29 it begins two bars of 3, and
the second column each of them.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import MidiError, counted
from musictx.music.notation.notation import Losses, Notation
from musictx.music.notation.parts import Bar, Key, Note, Part, Tempo
from musictx.music.raw import read_raw
from musictx.music.read import whole_chunks
from musictx.music.score import UNITS
from musictx.music.ticks import TempoMap

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_FIT = 0.9  # 92 % of the songs have more of their onsets near the grid; below, the beat's phase is often wrong
NEAR_BEAT = 0.02  # of a quarter: how far a beat may be from its place
# places of a beat this many units apart, and the distance in units that a finer or uneven grid must save
SPACINGS = {6: 0.0, 8: 1.0, 3: 2.0, 4: 2.5}
CLOSE = 8  # units: an end so near to an onset of its staff is written there
ENDS = {24: 48, 12: 24, 6: -np.inf}  # places of ends are so many units apart, for notes at least so long
OCTAVE, PULL = 12, 0.2  # a hand's reach; how far a moment moves the middle of a hand
LEFT, RIGHT = 48.0, 67.0  # where the middles of the hands begin
FIFTHS = "FCGDAEB"
SCALE = (0, 2, 4, 5, 7, 9, 11)


Played = dict[str, NDArray[np.float64]]  # tracks by their names: (4, N) onset and end in units, pitch, velocity


def read_song(midi: bytes, beats: str, keys: str, source: object = "") -> tuple[Notation, Losses]:
    """A song from its MIDI file, `beat_midi.txt` and `key_audio.txt`. Raises MidiError with the reason to leave it
    out."""
    return read_played(midi, beats, keys, source)[:2]


def read_played(midi: bytes, beats: str, keys: str, source: object = "") -> tuple[Notation, Losses, Played]:
    """The same with the notes as they are in the MIDI file, in units from the score's beginning."""
    raw = read_raw(whole_chunks(midi, source), Counter())
    try:
        table = np.array([line.split() for line in beats.splitlines()], np.float64).reshape(-1, 3)  # time, two flags
    except ValueError:
        raise MidiError(source, "its beats are no table of a time and two flags") from None
    if len(table) < 2:
        raise MidiError(source, f"{counted(len(table), 'beat')}, and at least 2 are read")
    beat = TempoMap(raw).ticks_at(table[:, 0]) / raw.ticks_per_quarter
    if (abs(beat - beat[0] - np.arange(len(beat))) > NEAR_BEAT).any():
        raise MidiError(source, "its beats are not a quarter apart")
    notes: Played = {}
    for channel in raw.channels:
        for number in np.unique(channel.notes[5]).tolist():
            onset, end, pitch, velocity = channel.notes[:4, channel.notes[5] == number]
            units = [(tick / raw.ticks_per_quarter - beat[0]) * UNITS for tick in (onset, end)]
            notes[raw.names[number]] = np.array([*units, pitch, velocity])
    if not {"MELODY", "PIANO"} <= set(notes):
        raise MidiError(source, "a part has no notes: a song has MELODY and PIANO")
    fit = fit_of(np.concatenate([part[0] for part in notes.values()]))
    if fit < LEAST_FIT:
        raise MidiError(source, f"only {fit:.1%} of its onsets lie near sixteenths or triplets of its beats")
    parts = [Part("Melody", 73, tune(notes["MELODY"]))]
    if "BRIDGE" in notes:
        parts.append(Part("Bridge", 0, staff(notes["BRIDGE"], placed(notes["BRIDGE"][0]))))
    parts += two_hands(notes["PIANO"])
    losses = Losses(shared=sum(part.shape[1] for part in notes.values()) - sum(len(part.notes) for part in parts))
    first = min(note.onset for part in parts for note in part.notes)
    bars, end = bars_of(table[:, 1:], first, max(note.offset for part in parts for note in part.notes), source)
    start = bars[0].onset
    parts = [replace(p, notes=tuple(note._replace(onset=note.onset - start) for note in p.notes)) for p in parts]
    tempo = Tempo.within(0, 60 / float(np.median(np.diff(table[:, 0]))))
    bars = [bar._replace(onset=bar.onset - start) for bar in bars]
    notation = Notation(tuple(parts), tuple(bars), end - start, key_of(keys, parts), (tempo,))
    return notation, +losses, {name: part - np.array([[start], [start], [0], [0]]) for name, part in notes.items()}


def fit_of(onset: Floats) -> float:
    """The share of onsets within a unit of a sixteenth or an eighth of a triplet."""
    return float((np.minimum(*(abs(onset - np.rint(onset / n) * n) for n in (6, 8))) <= 1).mean())


def placed(onset: Floats) -> Ints:
    """Onsets (N,) at places of the grid that fits those of each beat best."""
    moments = np.unique(onset.round(2))
    first = int(moments[0] // UNITS)
    beat = (moments // UNITS).astype(np.int64) - first
    far = [abs(moments - np.rint(moments / n) * n) for n in SPACINGS]
    costs = [np.bincount(beat, each) + more for each, more in zip(far, SPACINGS.values(), strict=True)]  # (4, beats)
    spacing = np.array(list(SPACINGS))[np.argmin(costs, axis=0)]
    mine = spacing[(onset.round(2) // UNITS).astype(np.int64) - first]
    return np.asarray(np.rint(onset / mine).astype(np.int64) * mine)


def staff(notes: NDArray[Any], onset: Ints) -> tuple[Note, ...]:
    """Notes (4, N) with their placed onsets (N,): each ends at a near onset of the staff, else at a
    sixteenth, an eighth or a quarter, by its length."""
    moments = np.unique(onset)
    lasting: dict[tuple[int, int], int] = {}
    for at, end, pitch in zip(onset.tolist(), notes[1].tolist(), notes[2].astype(int).tolist(), strict=True):
        later = moments[np.searchsorted(moments, at, side="right") :]
        near = int(later[np.argmin(abs(later - end))]) if len(later) else at
        step = next(step for step, least in ENDS.items() if end - at >= least)
        until = near if near > at and abs(near - end) <= CLOSE else round(end / step) * step
        if until <= at:  # a short note lasts to the next sixteenth, or to an onset before that
            until = min([at // 6 * 6 + 6, *later[:1].tolist()])
        lasting[at, pitch] = max(until, lasting.get((at, pitch), 0))
    out: list[Note] = []
    following: dict[int, int] = {}
    for (at, pitch), until in sorted(lasting.items(), reverse=True):
        out.append(Note(at, min(until, following.get(pitch, until)) - at, pitch))
        following[pitch] = at
    return tuple(out[::-1])


def tune(notes: NDArray[Any]) -> tuple[Note, ...]:
    """The same for a voice: a note ends where the next begins, and of notes that begin at once the highest sounds."""
    highest = {note.onset: note for note in staff(notes, placed(notes[0]))}  # each onset's notes come by pitch
    ends = [*list(highest)[1:], max(note.offset for note in highest.values())]
    both = zip(highest.values(), ends, strict=True)
    return tuple(note._replace(length=min(note.offset, end) - note.onset) for note, end in both)


def two_hands(notes: NDArray[Any]) -> list[Part]:
    """The staves of the piano; a single one where a hand has hardly any music."""
    onset, pitch = placed(notes[0]), notes[2]
    is_right = np.zeros(len(onset), bool)
    left, right = LEFT, RIGHT
    for at in np.unique(onset):
        here = np.flatnonzero(onset == at)
        here = here[np.argsort(pitch[here])]
        n = lower_hand(pitch[here], left, right)
        is_right[here[n:]] = True
        left += PULL * (pitch[here[:n]].mean() - left) if n else 0
        right += PULL * (pitch[here[n:]].mean() - right) if n < len(here) else 0
    hands = [Part("Piano", 0, staff(notes[:, mine], onset[mine])) for mine in (is_right, ~is_right)]
    return hands if hands[0].is_above(hands[1]) else [Part("Piano", 0, staff(notes, onset))]


def lower_hand(pitch: NDArray[Any], left: float, right: float) -> int:
    """How many notes of a moment, which rise, the left hand plays: both hands stay near their middles, reach an octave
    at most, and leave a gap."""
    gaps = [0.0, *np.diff(pitch).tolist(), 0.0]
    costs = []
    for n, gap in enumerate(gaps):
        hands = [(hand, middle) for hand, middle in ((pitch[:n], left), (pitch[n:], right)) if len(hand)]
        away = sum(abs(hand - middle).sum() + 2 * max(hand[-1] - hand[0] - OCTAVE, 0) for hand, middle in hands)
        costs.append(float(away) - gap)
    return int(np.argmin(costs))


def bars_of(flags: Floats, first: int, last: int, source: object) -> tuple[list[Bar], int]:
    """Bars around notes from `first` to `last`, in units from the first beat, and their end; an upbeat begins with its
    beat."""
    halves, down = (np.flatnonzero(column) for column in flags.T)
    between = Counter(np.diff(down).tolist()).most_common(1)
    if not between or between[0][0] not in (4, 6):
        raise MidiError(source, "its downbeats are mostly not 4 or 6 beats apart")
    meter, down = (4, down) if between[0][0] == 4 else (3, halves)
    at = down.tolist()
    while at[0] * UNITS > first:
        at.insert(0, at[0] - meter)
    while at[-1] * UNITS < last:
        at.append(at[-1] + meter)
    bars: list[Bar] = []
    for line, following in pairwise(at):
        while following - line > meter + 1:  # a bar of 6 is one of 4 and one of 2
            bars.append(Bar(line * UNITS, meter, 4))
            line += meter
        bars.append(Bar(line * UNITS, following - line, 4))
    ends = [*(bar.onset for bar in bars[1:]), at[-1] * UNITS]
    both = zip(bars, ends, strict=True)
    bars, ends = map(list, zip(*[x for x in both if x[0].onset < last and x[1] > first], strict=True))
    if bars[0].onset < down[0] * UNITS:
        bars[0] = Bar(first // UNITS * UNITS, meter, 4)
    return bars, ends[-1]


def key_of(keys: str, parts: list[Part]) -> tuple[Key, ...]:
    """The first key of the recording; none where another scale holds more of the notes, as the arrangement is
    transposed then."""
    name, _, mode = keys.split()[2].partition(":")  # begin, end, "Gb:maj"
    sharps = FIFTHS.index(name[0]) - 1 + 7 * (name.count("#") - name.count("b")) - 3 * (mode == "min")
    time = np.zeros(12)
    for part in parts:
        for note in part.notes:
            time[note.pitch % 12] += note.length
    held = [sum(time[(7 * n + step) % 12] for step in SCALE) for n in range(12)]
    sharps += 12 * (sharps < -7) - 12 * (sharps > 7)
    return (Key(0, sharps),) if held[sharps % 12] == max(held) else ()
