"""Notation -> MusicXML, by music21: voices, ties, rests, beams."""

import io
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from musictx.errors import UserError
from musictx.music.notation.bars import on_line
from musictx.music.notation.chord_symbols import moved
from musictx.music.notation.hands import name_of_staves
from musictx.music.notation.lyrics import printable, sing
from musictx.music.notation.midi import meter_of
from musictx.music.notation.musicxml import MARK, numbered, with_symbols
from musictx.music.notation.notation import MUSIC21, Losses, Notation
from musictx.music.notation.note_heads import put
from musictx.music.notation.parts import FINEST, UNSAID, Bar, Clef, Key, Part, Tempo
from musictx.music.notation.spelling import Name, key_of, missing, spelled
from musictx.music.notation.transposing import fifths_at, key_at, within_signs
from musictx.music.notation.voices import Chord, Given, as_given, chords_of, in_few, in_two_lines, in_voices
from musictx.music.score import UNITS

T = TypeVar("T", bound=tuple[Any, ...])
MOST_BARS = 10_000  # of all staves: each takes about ten milliseconds
INSTRUMENT = re.compile(rb'\s*<instrument id="[^"]*" ?/>')  # of notes: a staff has one sound, which needs no name
LOW = 60  # mean pitch of a staff in the bass clef


def to_musicxml(notation: Notation, title: str = "") -> tuple[bytes, Losses]:
    """The text of a MusicXML file, and its losses; a score without a title gets `title`. Raises UserError where music21
    or partitura is not installed."""
    try:
        from music21 import layout, metadata, stream
        from music21.musicxml.m21ToXml import GeneralObjectExporter
    except ImportError:
        raise missing("music21") from None
    if (bars := len(notation.bars) * len(notation.parts)) > MOST_BARS:
        raise UserError(f"a score of {bars:,} bars, all staves together", f"cut it: at most {MOST_BARS:,} are written")
    score = stream.Score()
    score.metadata = metadata.Metadata(title=printable(notation.title or title) or " ")
    score.metadata.composer = printable(notation.composer) or " "  # else music21 writes its own name
    score.metadata.lyricist = printable(notation.lyricist) or None
    score.metadata.arranger = printable(notation.arranger) or None
    score.metadata.copyright = printable(notation.rights) or None
    notation = notation if notation.keys else replace(notation, keys=(key_of(notation.key_from or notation),))
    names = spelled(notation)
    notation, losses = _on_lines(notation)
    notation = replace(notation, parts=_of_one_name(notation))
    parts = [within_signs(part, notation.keys) for part in notation.parts]
    staves = [_staff(part, names[n], notation, losses, n) for n, part in enumerate(parts)]
    for staff in staves:
        score.insert(0, staff)
    for same in notation.instruments:
        name = printable(notation.parts[same[0]].name)
        score.insert(0, layout.StaffGroup([staves[n] for n in same], symbol="brace", name=name))
    with MUSIC21, redirect_stderr(io.StringIO()):  # music21's remarks on more instruments than MIDI has channels
        text: bytes = GeneralObjectExporter(score).parse()
    symbols = tuple(moved(each, -fifths_at(parts[each.staff], each.onset)) for each in notation.symbols)
    return with_symbols(numbered(INSTRUMENT.sub(b"", text)), symbols), +losses


def _of_one_name(notation: Notation) -> tuple[Part, ...]:
    """The parts; all staves of an instrument have the first name that one has, without what tells them apart."""
    parts = [*notation.parts]
    for same in notation.instruments:
        name = name_of_staves([parts[n].name for n in same])
        for n in same:
            parts[n] = replace(parts[n], name=name)
    return tuple(parts)


def _on_lines(notation: Notation) -> tuple[Notation, Losses]:
    """Without bar lines at no thirty-second: no time signature has a bar that ends there."""
    bars = tuple(bar for bar in notation.bars if bar.onset % FINEST == 0)
    return replace(notation, bars=bars, end=on_line(notation.end)), Losses(lines=len(notation.bars) - len(bars))


def _staff(
    part: Part,
    names: Sequence[Name],
    notation: Notation,
    losses: Losses,
    place: int,
) -> Any:
    from music21 import expressions, interval, meter, stream
    from music21.stream.enums import ShowNumber

    staff = stream.PartStaff()
    staff.partName, staff.partAbbreviation = printable(part.name), printable(part.abbreviation)
    staff.insert(0, played := _played(part))
    if part.transposed:  # written as its player reads it
        staff.atSoundingPitch = True
    exact = chords_of(part.notes, names)
    chords = sorted((chord for voice in in_voices(exact) for chord in voice), reverse=True)
    losses["voices"] += len(part.notes) - (_lengths(exact) & _lengths(chords)).total()
    given = {(x.onset, x.length, y): part.voices[x] for x, y in zip(part.notes, names, strict=True) if x in part.voices}
    sounding: list[Chord] = []
    is_low = any(place in same[1:] for same in notation.instruments)  # where no note says it
    if part.notes:
        is_low = part.height - part.transposed_at(0) < LOW
    guessed = Clef(0, "F", 4) if is_low else Clef(0, "G", 2)
    clefs = part.clefs if part.clefs and not part.clefs[0].onset else (guessed, *part.clefs)
    keys = notation.keys if part.keys is None else part.keys
    symbols = [(each.onset, k) for k, each in enumerate(notation.symbols) if each.staff == place]
    before: tuple[int, int] | None = None
    shown = before
    for number, (bar, end), last in zip(
        notation.numbers, notation.spans, [notation.first - 1, *notation.numbers], strict=False
    ):
        measure = stream.Measure(number=number)
        if number == last:  # of an upbeat, and of the second part of a bar
            measure.showNumber, measure.numberSuffix = ShowNumber.NEVER, "a" if number >= notation.first else None
        is_upbeat = number < notation.first
        signed = (bar.numerator, bar.denominator) if is_upbeat else meter_of(bar, end)
        if signed != before:
            before = signed
            signature = meter.TimeSignature(f"{signed[0]}/{signed[1]}")
            if signed != (bar.numerator, bar.denominator) or signed == shown:  # of a broken bar, and after it
                signature.style.hideObjectOnPrint = True
            else:
                shown = signed
            measure.insert(0, signature)
        if is_upbeat:
            measure.paddingLeft = float(Fraction(bar.full - (end - bar.onset), UNITS))
        sounding = [chord for chord in sounding if chord.offset > bar.onset]
        while chords and chords[-1].onset < end:
            sounding.append(chords.pop())
        signs: list[Clef | Key] = [*within(clefs, bar.onset, end), *within(keys, bar.onset, end)]
        for change in within(part.transposed, bar.onset, end)[-1:]:
            if bar.onset:
                staff.insert(Fraction(bar.onset, UNITS), played := _played(part))
            played.transposition = interval.Interval(change.semitones)
            if not within(keys, bar.onset, bar.onset + 1):  # players read another for the same
                signs.append(key_at(keys, bar.onset))
        voices = _fill(measure, sounding, given, bar, end, {sign.onset for sign in signs})
        sing(voices, within(part.lyrics, bar.onset, end), bar.onset, losses)
        # these come after the notes, which are appended behind all that is there
        for sign in signs:
            at = Fraction(sign.onset - bar.onset, UNITS)
            beside = measure.voices if at else []
            at_a_note = (voice for voice in beside if any(each.offset == at for each in voice.notesAndRests))
            next(at_a_note, beside[0] if beside else measure).insert(at, _sign(sign))
        for mark in within(notation.tempi, bar.onset, end) if not place else ():
            at = Fraction(mark.onset - bar.onset, UNITS)
            if mark != UNSAID:
                measure.insert(at, _tempo(mark))
        for onset, k in within(symbols, bar.onset, end):
            measure.insert(Fraction(onset - bar.onset, UNITS), expressions.TextExpression(f"{MARK}{k}"))
        staff.append(measure)
    measure.rightBarline = "final"
    return staff


def _played(part: Part) -> Any:
    from music21 import instrument

    played = instrument.instrumentFromMidiProgram(part.program)
    played.partName, played.instrumentAbbreviation = printable(part.name), printable(part.abbreviation)
    played.transposition = None
    return played


def within(signs: Sequence[T], begin: int, end: int) -> Sequence[T]:
    """The signs of a bar, of all in order of their onsets, which come first in each."""
    return signs[bisect_left(signs, (begin,)) : bisect_left(signs, (end,))]


def _sign(sign: Clef | Key) -> Any:
    from music21 import clef, key

    if isinstance(sign, Clef):
        return clef.clefFromString(f"{sign.sign}{sign.line}", sign.octaves)
    signature = key.KeySignature(sign.sharps)
    return signature.asKey(sign.mode) if sign.mode else signature


def _tempo(mark: Tempo) -> Any:
    """A metronome mark, or one that only programs hear."""
    from music21 import duration, tempo

    if not mark.beat:
        return tempo.MetronomeMark(numberSounding=round(mark.quarters_a_minute, 3))
    beat = Fraction(mark.beat, UNITS)
    number = round(float(mark.quarters_a_minute / beat), 3)
    return tempo.MetronomeMark(number=number, referent=duration.Duration(beat))


def _lengths(chords: Iterable[Chord]) -> Counter[Any]:
    """The length of each note."""
    return Counter((chord.onset, chord.length, name) for chord in chords for name in chord.names)


def _fill(
    measure: Any, chords: Sequence[Chord], given: Given, bar: Bar, end: int, cuts: Collection[int]
) -> dict[int, Any]:
    """The notes and rests of a bar: in one voice as they are, in several in voices of their own, from the top; a rest
    ends at each of the `cuts`. Returns music21's voices by their numbers."""
    from music21 import stream

    inside, fullest = as_given(chords, given, bar, end), None
    if not inside:
        found = in_voices(chords) or [[]]
        if not (lines := in_two_lines(chords) if len(found) == 2 else []):
            found = in_few(found, bar.onset, end)
            fullest = 1 + max(range(len(found)), key=lambda n: sum(chord.length for chord in found[n]))
        inside = dict(enumerate(lines or found, 1))
    targets = dict[int, Any]()
    for n, (number, voice) in enumerate(inside.items()):
        target = targets[number] = measure if len(inside) == 1 else stream.Voice(id=str(number))
        stem = ("up", "down")[n % 2] if len(inside) > 1 else "unspecified"
        put(voice, target, bar, end, stem, cuts, is_bare=fullest not in (None, number))
        if target is not measure:
            measure.insert(0, target)
    return targets
