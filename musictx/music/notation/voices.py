"""The notes of a staff divided among voices: as a file gives them, as two lines, or by height."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby, pairwise
from typing import NamedTuple

from musictx.music.notation.parts import Bar, Note
from musictx.music.notation.spelling import Name

VOICES = 4  # of a staff, as notation programs have
TIES = 2  # that two voices may take to become one
Given = Mapping[tuple[int, int, Name], tuple[int, ...]]  # the voices of notes by their onset, length and name


class Chord(NamedTuple):
    """Pitches that begin and end together; `names` are their steps, alterations and octaves. Those that `came` from
    the chord before in its voice, and those that `go_on`, are tied."""

    onset: int
    length: int
    names: tuple[Name, ...]
    came: frozenset[Name] = frozenset()
    go_on: frozenset[Name] = frozenset()

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
    """At most four voices from the top, in which no chord overlaps the next: as few as there can be, which cross and
    leap as little as they can. Where there would be more, the one that sounds longest ends early."""
    voices: list[list[Chord]] = []
    for onset, group in groupby(chords, key=lambda chord: chord.onset):
        together = sorted(group, key=lambda chord: -chord.height)
        while len(together) > VOICES:  # five lengths at one moment: two join
            last = together.pop()
            together[-1] = together[-1]._replace(names=together[-1].names + last.names)
        sounding = [voice for voice in voices if voice[-1].offset > onset]
        for _ in range(len(sounding) + len(together) - VOICES):
            oldest = min(sounding, key=lambda voice: voice[-1].onset)
            oldest[-1] = oldest[-1]._replace(length=onset - oldest[-1].onset)
            sounding.remove(oldest)
        free = len(voices) - len(sounding)
        new = max(len(together) - free, 0)
        ways = (_with_new(voices, where) for where in combinations(range(len(voices) + new), new))
        found = ((those, taken) for those in ways for taken in _ways(those, onset, len(together), new > 0))
        voices, taken = min(found, key=lambda way: _cost(way[0], way[1], onset, together))
        for n, chord in zip(taken, together, strict=True):
            voices[n].append(chord)
    return voices


def _with_new(voices: Sequence[list[Chord]], where: Sequence[int]) -> list[list[Chord]]:
    """The voices, with new ones at places among them."""
    old = iter(voices)
    return [[] if n in where else next(old) for n in range(len(voices) + len(where))]


def _ways(voices: Sequence[list[Chord]], onset: int, count: int, is_new: bool) -> Iterator[tuple[int, ...]]:
    """The voices that so many chords can have, from the top; of new ones all."""
    free = [n for n, voice in enumerate(voices) if not voice or voice[-1].offset <= onset]
    for taken in combinations(free, count):
        if not is_new or all(voices[n] or n in taken for n in range(len(voices))):
            yield taken


def _cost(
    voices: Sequence[list[Chord]], taken: Sequence[int], onset: int, chords: Sequence[Chord]
) -> tuple[int, float, int]:
    """How many sounding voices chords cross, how far they leap, and how low their voices are."""
    heights = {n: voice[-1].height for n, voice in enumerate(voices) if voice and voice[-1].offset > onset}
    crossings = sum(
        (n < other) != (chord.height > height)
        for n, chord in zip(taken, chords, strict=True)
        for other, height in heights.items()
    )
    before = [(voices[n][-1].height, chord.height) for n, chord in zip(taken, chords, strict=True) if voices[n]]
    leaps = 0.0 if not heights and len(chords) == 1 else sum(abs(a - b) for a, b in before)  # alone: the highest voice
    return crossings, leaps, sum(taken)


def in_few(voices: Sequence[list[Chord]], begin: int, end: int) -> list[list[Chord]]:
    """The voices of a bar, of which two and two become one while they are more than two: their chords, tied where one
    goes on under another's next, as long as that takes few ties."""
    found = [*voices]
    while len(found) > 2:
        joined = [_tied([*one, *other], begin, end) for one, other in pairwise(found)]
        n = min(range(len(joined)), key=lambda n: _ties(joined[n], end))
        is_double = any(len(set(chord.names)) < len(chord.names) for chord in joined[n])
        if is_double or _ties(joined[n], end) > TIES + _ties([*found[n], *found[n + 1]], end):
            break
        found[n : n + 2] = [joined[n]]
    return found


def _ties(voice: Sequence[Chord], end: int) -> int:
    """How many ties a voice has within a bar."""
    return sum(len(chord.go_on) for chord in voice if chord.offset < end)


def _tied(chords: Sequence[Chord], begin: int, end: int) -> list[Chord]:
    """Chords that overlap as chords that do not, each with the names that sound in its time."""
    spans = [(max(chord.onset, begin), min(chord.offset, end), chord) for chord in chords]
    starts, sounding = sorted(range(len(spans)), key=lambda n: spans[n][0], reverse=True), list[int]()
    found = list[Chord]()
    for here, there in pairwise(sorted({at for a, b, _ in spans for at in (a, b)})):
        sounding = [n for n in sounding if spans[n][1] > here]
        while starts and spans[starts[-1]][0] <= here:
            sounding.append(starts.pop())
        those = [spans[n] for n in sorted(sounding)]
        if those:
            names = tuple(name for _, _, chord in those for name in chord.names)
            came = {name for a, _, chord in those for name in (chord.names if chord.onset < here else chord.came)}
            go_on = {name for _, b, chord in those for name in (chord.names if chord.offset > there else chord.go_on)}
            found.append(Chord(here, there - here, names, frozenset(came), frozenset(go_on)))
    return found


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
