"""The notes of a staff divided among voices: as a file gives them, as two lines, or by height."""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from musictx.music.notation.parts import Bar, Note
from musictx.music.notation.spelling import Name

VOICES = 4  # of a staff, as notation programs have
Given = Mapping[tuple[int, int, Name], tuple[int, ...]]  # the voices of notes by their onset, length and name


class Chord(NamedTuple):
    """Pitches that begin and end together; `names` are their steps, alterations and octaves."""

    onset: int
    length: int
    names: tuple[Name, ...]

    @property
    def offset(self) -> int:
        return self.onset + self.length

    @property
    def height(self) -> float:
        """The mean place of its notes on the staff."""
        return sum(7 * octave + "CDEFGAB".index(step) for step, _, octave in self.names) / len(self.names)


def chords_of(notes: Sequence[Note], names: Sequence[Name]) -> list[Chord]:
    together: dict[tuple[int, int], list[Name]] = {}
    for note, name in zip(notes, names, strict=True):
        together.setdefault((note.onset, note.length), []).append(name)
    return [Chord(onset, length, tuple(each)) for (onset, length), each in sorted(together.items())]


def in_voices(chords: Sequence[Chord]) -> list[list[Chord]]:
    """At most four voices, in which no chord overlaps the next: the highest where nothing else sounds, else the
    nearest in height. Where there would be more, the one that sounds longest ends early."""
    voices: list[list[Chord]] = []
    for chord in chords:
        free = [voice for voice in voices if voice[-1].offset <= chord.onset]
        if free and len(free) == len(voices):
            max(free, key=lambda voice: voice[-1].height).append(chord)
        elif free:
            min(free, key=lambda voice: abs(voice[-1].height - chord.height)).append(chord)
        elif len(voices) < VOICES:
            voices.append([chord])
        elif begun := [voice for voice in voices if voice[-1].onset < chord.onset]:
            oldest = min(begun, key=lambda voice: voice[-1].onset)
            oldest[-1] = oldest[-1]._replace(length=chord.onset - oldest[-1].onset)
            oldest.append(chord)
        else:  # five lengths at one moment: it joins the last
            voices[-1][-1] = voices[-1][-1]._replace(names=voices[-1][-1].names + chord.names)
    return voices


def in_two_lines(chords: Sequence[Chord], alone_above: bool = True) -> list[list[Chord]]:
    """An upper and a lower line of single notes that never cross, as two singers have them; [] where there are none.
    `alone_above` is the first guess for a note that begins alone."""
    upper, lower = list[Chord](), list[Chord]()
    for onset, together in groupby(chords, key=lambda chord: chord.onset):
        notes = [chord._replace(names=(name,)) for chord in together for name in chord.names]
        notes.sort(key=lambda note: -note.height)
        above, below = (line[-1] if line and line[-1].offset > onset else None for line in (upper, lower))
        is_above = alone_above if above is below is None else above is None
        over, under = (notes[:1], notes[1:]) if len(notes) == 2 else (notes * is_above, notes * (not is_above))
        overlaps = len(over) > 1 or len(under) > 1 or (over and above) or (under and below)
        crosses = (over and below and over[0].height <= below.height) or (
            under and above and under[0].height >= above.height
        )
        if overlaps or crosses:
            return in_two_lines(chords, False) if alone_above else []
        upper += over
        lower += under
    return [upper, lower] if upper and lower else []


def as_given(chords: Sequence[Chord], given: Given, bar: Bar, end: int) -> dict[int, list[Chord]]:
    """The chords of a bar in the voices that all its notes are given, if none overlaps itself there."""
    found: dict[int, dict[tuple[int, int], list[Name]]] = {}
    for chord in chords:
        is_inside = bar.onset <= chord.onset and chord.offset <= end
        for name in chord.names:
            own = given.get((chord.onset, chord.length, name), (0,))
            for voice in own if is_inside else own[:1]:  # the next bar may not be given, and both would be tied there
                names = found.setdefault(voice, {}).setdefault((chord.onset, chord.length), [])
                names += [name] * (name not in names)
    voices = {
        voice: [Chord(*span, tuple(names)) for span, names in sorted(spans.items())]
        for voice, spans in sorted(found.items())
    }
    is_apart = all(a.offset <= b.onset for voice in voices.values() for a, b in pairwise(voice))
    return voices if is_apart and 0 not in voices and len(voices) <= VOICES else {}
