"""A staff of music21 as a part: its notes, voices, words, clefs, name and instrument."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from musictx.errors import MidiError
from musictx.music.notation.lyrics import syllables_of
from musictx.music.notation.musicxml import Transposition
from musictx.music.notation.notation import Losses
from musictx.music.notation.parts import MOST_QUARTERS, Clef, Note, Part, Transposed
from musictx.music.notation.sounds import sounds_of
from musictx.music.score import UNITS


def move_to_sound(staff: Any, changes: Mapping[int, Transposition]) -> None:
    """Moves notes and keys from where players read them to where they sound, from which bar on; music21 would also
    move a clarinet by its name."""
    from music21 import interval

    if not changes:
        return
    for each in staff.flatten().getElementsByClass("Instrument"):
        each.transposition = None
    begins = [bar.offset for bar in staff.getElementsByClass("Measure")]
    for (n, by), following in zip(sorted(changes.items()), [*sorted(changes), None][1:], strict=True):
        end = staff.highestTime + 1 if following is None else begins[following]
        inside = staff.flatten().getElementsByOffset(begins[n], end, includeEndBoundary=False, mustFinishInSpan=False)
        generic = interval.GenericInterval(by.steps + (1 if by.steps >= 0 else -1))
        size = interval.intervalFromGenericAndChromatic(generic, interval.ChromaticInterval(by.semitones))
        moved = ("Note", "Chord", "KeySignature")
        inside.stream().transpose(size, inPlace=True, classFilterList=moved)


def said_sounds(parts: Sequence[Any]) -> list[int | None]:
    """The sound of each staff that its name says."""
    are_sung = [any(each.lyrics for each in part.flatten().notesAndRests) for part in parts]
    return sounds_of([_name(part) for part in parts], are_sung)


def staff_of(part: Any, sound: int | None, moved: Mapping[int, Transposition], losses: Losses, source: object) -> Part:
    """The part; `sound` is the one that its name says, and it was `moved` to where it sounds, from which bar on."""
    flat = part.flatten()
    known = _voices(part, flat)
    voices = _notes(flat.notes, known, losses, source)
    lyrics = syllables_of(flat.notesAndRests, known, losses)
    abbreviation = in_one_line(getattr(part, "_partAbbreviation", ""))[:60]  # else music21 tells its instrument's
    return Part(
        _name(part),
        _program(part, sound),
        (*voices,),
        lyrics,
        tuple(_transposed(part, moved)),
        tuple(_clefs(flat)),
        voices=voices if known else {},
        abbreviation=abbreviation,
    )


def _voices(part: Any, flat: Any) -> dict[int, int]:
    """The voice of each of music21's notes by its `id`, 1 is the top; of a staff with one voice none."""
    numbers = dict[int, int]()
    for bar in (part, *part.getElementsByClass("Measure")):
        for n, voice in enumerate(bar.voices, 2 if bar is part else 1):  # those beside the bars come after theirs
            name = str(voice.id)
            number = int(name) if name.isdecimal() and len(name) < 3 and bar is not part else n
            numbers |= {id(element): number for element in voice}
    alone = 1 if part.voices else min(numbers.values(), default=1)  # of bars with one voice
    ranks = {number: rank for rank, number in enumerate(sorted({*numbers.values(), alone}), 1)}
    return {id(each): ranks[numbers.get(id(each), alone)] for each in flat.notesAndRests} if numbers else {}


def _transposed(part: Any, moved: Mapping[int, Transposition]) -> Iterator[Transposed]:
    """The transpositions of a staff, where they change."""
    lines, last = [units(bar.offset) for bar in part.getElementsByClass("Measure")], 0
    for n, by in sorted(moved.items()):
        if by.semitones != last:
            yield Transposed(lines[n], last := by.semitones)


def _clefs(flat: Any) -> Iterator[Clef]:
    """The clefs of a staff, where they change."""
    last: Clef | None = None
    for each in flat.getElementsByClass("Clef"):
        if each.sign in ("G", "F", "C") and each.line:
            clef = Clef(units(each.offset), each.sign, each.line, each.octaveChange or 0)
            if last is None or last[1:] != clef[1:]:
                yield clef
            last = clef


def instruments_of(scores: Sequence[Any], staves: Sequence[Any], is_said: bool) -> list[int | None]:
    """The instrument of each staff, as the number of its first; None where the file does not say. Where it `is_said`
    each staff has one of its own, but for a brace around whole parts, which may be families too."""
    braces = [each for score in scores for each in score.getElementsByClass("StaffGroup") if each.symbol == "brace"]
    unsaid = {id(staff) for brace in braces for staff in brace.getSpannedElements()}
    names = list[str | None]()
    for n, staff in enumerate(staves):
        if "PartStaff" in staff.classes:
            names.append(str(staff.id).rpartition("-Staff")[0])
        elif staff.groups or is_said:
            names.append(None if id(staff) in unsaid else "".join(staff.groups) or str(n))
        else:
            names.append(None)
    return [None if name is None else names.index(name) for name in names]


def _notes(
    elements: Iterable[Any], known: Mapping[int, int], losses: Losses, source: object
) -> dict[Note, tuple[int, ...]]:
    """Notes of a staff with their voices, tied ones as one, in order of time and pitch."""
    ended: dict[tuple[Fraction, int], list[list[Any]]] = defaultdict(list)  # those that are tied to the next
    spans: list[list[Any]] = []  # [onset, offset, pitch, voice] in quarters
    for element in elements:
        if "Harmony" in element.classes:  # a chord's name
            continue
        for note in element.notes if hasattr(element, "notes") else [element]:
            if element.duration.isGrace:
                losses["grace"] += 1
                continue
            if not hasattr(note, "pitch"):
                losses["unpitched"] += 1
                continue
            if note.hasStyleInformation and note.style.hideObjectOnPrint:  # only for playing
                losses["hidden"] += 1
                continue
            onset, length = Fraction(element.offset), Fraction(element.duration.quarterLength)
            if onset + length > MOST_QUARTERS:
                raise MidiError(source, f"it lasts more than {MOST_QUARTERS:,} quarters", "cut the score")
            pitch, tie = round(note.pitch.ps), note.tie
            if not 0 <= pitch <= 127:
                losses["beyond"] += 1
                continue
            losses["between"] += pitch != note.pitch.ps
            voice = known.get(id(element), 0)
            waiting = ended.get((onset, pitch))
            if tie is not None and tie.type in ("stop", "continue") and waiting:
                own = (n for n, (*_, its) in enumerate(waiting) if its == voice)
                new = waiting.pop(next(own, -1))
                new[1] = onset + length
            else:
                new = [onset, onset + length, pitch, voice]
                spans.append(new)
            if tie is not None and tie.type in ("start", "continue"):
                ended[new[1], pitch].append(new)
    notes: dict[Note, set[int]] = defaultdict(set)
    for onset, offset, pitch, voice in spans:
        begins, ends = units(onset), units(offset)
        losses["finer"] += begins != onset * UNITS or ends != offset * UNITS
        notes[Note(begins, max(ends - begins, 1), pitch)].add(voice)
    losses["shared"] += len(spans) - len(notes)
    return {note: tuple(sorted(voices)) for note, voices in sorted(notes.items())}


def staves_of(scores: Iterable[Any]) -> list[Any]:
    """All staves of some scores; a score may be one."""
    return [staff for score in scores for staff in getattr(score, "parts", [score])]


def units(quarters: Any) -> int:
    return round(Fraction(quarters) * UNITS)


def _name(part: Any) -> str:
    return in_one_line(getattr(part, "partName", ""))[:60]


def in_one_line(text: object) -> str:
    return " ".join(str(text or "").split())


def _program(part: Any, said: int | None) -> int:
    """The MIDI sound of a staff at its beginning: the file's, or the one that its name says."""
    given = [(each.offset, each.midiProgram) for each in part.flatten().getElementsByClass("Instrument")]
    sounds = [*(sound for at, sound in given if not at), said, *(sound for at, sound in given if at)]
    return next((int(sound) for sound in sounds if sound is not None and 0 <= sound <= 127), 0)
