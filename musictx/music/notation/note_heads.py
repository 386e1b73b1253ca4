"""The notes and rests of a voice in a bar, by music21: lengths that note heads have, ties, triplets."""

from collections.abc import Collection, Container, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from musictx.music.notation.parts import Bar
from musictx.music.notation.voices import Chord
from musictx.music.score import UNITS

ONE = (96, 72, 48, 36, 24, 18, 12, 9, 6, 3, 32, 16, 8, 4, 2, 1)  # lengths that one note head can have, in units
TRIPLETS = {6, 12, 24, 48, 96}  # lengths of whole ones


def put(
    voice: Sequence[Chord], target: Any, bar: Bar, end: int, stem: str, cuts: Collection[int], is_bare: bool = False
) -> None:
    """Puts a voice on music21's measure or voice; a rest ends at each of the `cuts`, and is hidden in a bare voice."""
    spans = [(max(chord.onset, bar.onset), min(chord.offset, end)) for chord in voice]
    places = sorted({bar.onset, end, *(at for span in spans for at in span)})
    tuplets = in_triplets([at - bar.onset for at in places])
    now = bar.onset
    for chord, (begins, ends) in zip(voice, spans, strict=True):
        target.append([_rest(length, is_bare) for length in _rests(now, begins, bar, cuts, tuplets)])
        _add(target, chord, bar, end, stem, tuplets)
        now = ends
    target.append([_rest(length, is_bare) for length in _rests(now, end, bar, cuts, tuplets)])
    _bracket(target)


def _rests(begin: int, end: int, bar: Bar, cuts: Collection[int], tuplets: Container[int]) -> Iterator[int]:
    """The lengths of rests."""
    for a, b in pairwise(sorted({begin, end, *(at for at in cuts if begin < at < end)})):
        yield from pieces(a - bar.onset, b - a, tuplets)


def _bracket(target: Any) -> None:
    """Marks where tuplets begin and end, and how long each is: music21 would take that from its first note, and split
    a longer one behind it."""
    from music21 import duration

    tuplet, begin = list[Any](), 0
    for element in target.notesAndRests:
        if not tuplet:
            begin = round(element.offset * UNITS)
        tuplet += [element.duration] if element.duration.tuplets else []
        end = round((element.offset + element.quarterLength) * UNITS)
        if tuplet and end % 3 == 0:
            if end - begin in TRIPLETS:
                unit = duration.Duration(Fraction(end - begin, 2 * UNITS)).type
                for each in tuplet:
                    each.tuplets = (duration.Tuplet(3, 2, unit),)
                    each.expressionIsInferred = False  # else music21 joins tied notes of two
            kinds = ("start", "stop") if len(tuplet) > 1 else ("startStop", "startStop")
            tuplet[0].tuplets[0].type, tuplet[-1].tuplets[0].type = kinds
            tuplet = []


def _add(target: Any, chord: Chord, bar: Bar, end: int, stem: str, tuplets: Container[int]) -> None:
    from music21 import chord as chords
    from music21 import note, pitch, tie

    begins, ends = max(chord.onset, bar.onset), min(chord.offset, end)
    lengths = list(pieces(begins - bar.onset, ends - begins, tuplets))
    for k, length in enumerate(lengths):
        pitches = [pitch.Pitch(step=step, octave=octave) for step, _, octave in chord.names]
        for each, (_, alter, _) in zip(pitches, chord.names, strict=True):
            if alter:
                each.accidental = pitch.Accidental(alter)
        element = note.Note(pitches[0]) if len(pitches) == 1 else chords.Chord(pitches)
        element.duration.quarterLength = Fraction(length, UNITS)
        element.stemDirection = stem
        all_go_on, all_came = k + 1 < len(lengths) or chord.offset > end, k > 0 or chord.onset < bar.onset
        for head, name in zip(element.notes if len(pitches) > 1 else [element], chord.names, strict=True):
            goes_on, came = all_go_on or name in chord.go_on, all_came or name in chord.came
            if goes_on or came:
                head.tie = tie.Tie("continue" if goes_on and came else "start" if goes_on else "stop")
        target.append(element)


def _rest(length: int, is_hidden: bool) -> Any:
    from music21 import note

    rest = note.Rest(quarterLength=Fraction(length, UNITS))
    rest.style.hideObjectOnPrint = is_hidden
    return rest


def in_triplets(places: Sequence[int]) -> set[int]:
    """Of the places where the notes and rests of a voice begin, those in whole triplets, wherever these begin."""
    found = set[int]()
    straight = [k for k, at in enumerate(places) if at % 3 == 0]
    for first, last in pairwise(straight):
        lengths = [b - a for a, b in pairwise(places[first : last + 1])]
        if sum(lengths) in TRIPLETS and all(each in ONE and each % 3 for each in lengths):
            found.update(places[first:last])
    return found


def pieces(at: int, length: int, tuplets: Container[int] = ()) -> Iterator[int]:
    """A length as note heads have it, tied at the next quarter where one head is not enough; those of the places of
    `tuplets` are enough."""
    if length <= 0:
        return
    if length in ONE and (at in tuplets or length % 3 == 0 or at % UNITS + length <= UNITS or at % length == 0):
        yield length
        return
    rest_of_beat = -at % UNITS
    if 0 < rest_of_beat < length:
        yield from pieces(at, rest_of_beat)
        yield from pieces(at + rest_of_beat, length - rest_of_beat)
        return
    head = next(each for each in sorted(ONE, reverse=True) if each < length and (each % 3 == 0 or each < UNITS))
    yield head
    yield from pieces(at + head, length - head)
