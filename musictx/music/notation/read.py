"""MusicXML, packed MusicXML, Humdrum, MEI and ABC -> notation, by music21."""

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from itertools import pairwise
from typing import Any

from musictx.errors import MidiError
from musictx.music.notation import mei
from musictx.music.notation.abc_tune import each_voice
from musictx.music.notation.abc_voices import Layer, Voice
from musictx.music.notation.bars import bars_of, begin_together, reach_over_lines
from musictx.music.notation.chord_symbols import ChordSymbol
from musictx.music.notation.humdrum import Spines, without_names
from musictx.music.notation.musicxml import Transposition, for_music21, transpositions
from musictx.music.notation.notation import MOST_PARTS, MUSIC21, Losses, Notation, Source
from musictx.music.notation.parts import MODES, MOST_BARS, UNSAID, Key, Tempo, Transposed
from musictx.music.notation.staves import (
    in_one_line,
    instruments_of,
    move_to_sound,
    said_sounds,
    staff_of,
    staves_of,
    units,
)
from musictx.music.notation.text import text_of

HINT = "pip install 'musictx[score]'; or export MIDI from the notation program"
REFERENCES = re.compile(r"(?m)^!!(?!!(?:OTL|COM|LYR|LAR|YEC):).*")  # one without a colon stops music21
MARKS = {  # by classes of music21, what a `Notation` lacks
    **dict.fromkeys(("Dynamic", "DynamicWedge"), "dynamics"),
    **dict.fromkeys(("TextExpression", "RehearsalMark"), "words"),
    **dict.fromkeys(("Articulation", "Fermata"), "articulations"),
    **dict.fromkeys(("Ornament", "TremoloSpanner", "ArpeggioMark", "ArpeggioMarkSpanner", "Glissando"), "ornaments"),
    **dict.fromkeys(("Ottava", "PedalMark", "Line"), "spans"),
    "RepeatExpression": "repeats",
}
PLAIN = {"regular", "none", "final"}  # bar lines
BRACKETS = {"bracket", "square", "line"}  # the brace of a keyboard is written again


def read_notation(data: bytes, kind: str, source: object = "", chart: bool = False) -> tuple[Notation, Losses]:
    """The score and its losses; `kind` is music21's name of the format.

    Repeats are as they are written, once. Raises MidiError, which names `source`, also for a score without notes; that
    of a `chart` may have chord symbols or drums alone.
    """
    try:
        from music21 import clef, converter
    except ImportError:
        raise MidiError(
            source, "it is notation, which needs the package music21, which is not installed", HINT
        ) from None
    text = text_of(data, source)
    losses = Losses()
    with MUSIC21, warnings.catch_warnings(), redirect_stderr(io.StringIO()) as complaints:
        warnings.simplefilter("ignore")
        try:
            texts, symbols, unread = _for_music21(text, kind, losses)
            scores = [converter.parseData(each, format=kind) for each in texts]
            changes = transpositions(texts[0], [str(each.id) for each in scores[0].parts]) if kind == "musicxml" else []
            for staff, by in zip(scores[0].parts if changes else (), changes, strict=True):
                move_to_sound(staff, by)
            for score in scores:
                score.toSoundingPitch(inPlace=True)  # a copy would take as long as the reading
            if kind in ("musicxml", "mei"):  # before signs, which have places in bars
                begin_together(staves_of(scores), losses, finest=1)
            for each, score in zip(unread, scores, strict=False):
                each.put_on(score, losses)
            staves = staves_of(scores)
            if kind != "humdrum" or not reach_over_lines(staves):
                begin_together(staves, losses)
            moved = changes or [dict[int, Transposition]()] * len(staves)
            notation = _notation(staves, symbols, moved, losses, source, chart).with_symbols_apart()
            groups = instruments_of(scores, staves, kind in ("musicxml", "abc"))
            pairs = enumerate(zip(notation.parts, groups, strict=True))
            parts = tuple(replace(part, group=group, origin=n) for n, (part, group) in pairs)
            notation = replace(notation, parts=parts)
            if kind != "abc":  # whose bars have no numbers
                notation = _as_numbered(notation, staves, losses)
            if kind == "musicxml":
                heard = tuple(part.notes for part in notation.parts)
                last = [bar for staff in staves for bar in staff.getElementsByClass("Measure")[-1:]]
                repeats = any("Repeat" in bar.rightBarline.classes for bar in last if bar.rightBarline)
                spans = tuple(notation.spans_in_units)
                notation = replace(notation, source=Source(text, heard, spans, len(spans), repeats))
                tablatures = [n for n, staff in enumerate(staves) if staff[clef.TabClef]]
                notation = notation.without_doubles(tablatures, losses)
            if (about := scores[0].metadata) is not None:
                notation = replace(
                    notation,
                    title=in_one_line(about.bestTitle),
                    composer=in_one_line(about.composer),
                    lyricist=in_one_line(about.lyricist),
                    arranger=in_one_line(about.arranger),
                    rights=in_one_line(about.copyright),
                )
            for score in scores:
                losses["brackets"] += sum(each.symbol in BRACKETS for each in score.getElementsByClass("StaffGroup"))
                losses.update(_marks(score.spanners, symbols))
        except (MidiError, MemoryError):
            raise
        except Exception as error:  # damage can make music21 raise anything
            reason = " ".join(str(error).split())[:100] or type(error).__name__
            raise MidiError(source, f"it cannot be read as notation ({reason})", "export it again") from None
    losses["unread"] += complaints.getvalue().count("Error in parsing event")
    return notation, +losses


def _for_music21(
    text: str, kind: str, losses: Losses
) -> tuple[list[str], dict[str, ChordSymbol], Sequence[Voice | Layer | Spines | mei.Unread]]:
    """The texts that music21 reads, the chord symbols that names in them stand for, and what it leaves of each."""
    if kind == "abc":
        return each_voice(text, losses)
    if kind == "musicxml":
        text, symbols = for_music21(text, losses)
        return [text], symbols, []
    if kind == "humdrum":
        text = REFERENCES.sub("", text)
        spines = Spines(without_names(text) if "*k[" in text else text, losses)
        return [spines.text], {}, [spines]
    text = re.sub(r"^[^<]+", "", text)
    text = mei.for_music21(text, losses)
    unread = mei.Unread(text, losses)
    return [text], unread.symbols, [unread]


def _notation(
    parts: list[Any],
    named: dict[str, ChordSymbol],
    moved: Sequence[Mapping[int, Transposition]],
    losses: Losses,
    source: object,
    chart: bool,
) -> Notation:
    if len(parts) > MOST_PARTS:
        raise MidiError(source, f"it has {len(parts)} staves, and at most {MOST_PARTS} are read", "export fewer parts")
    about = zip(parts, said_sounds(parts), moved, strict=True)
    staves = [staff_of(part, sound, by, losses, source) for part, sound, by in about]
    symbols = _symbols(parts, named, losses)
    ends = [note.offset for staff in staves for note in staff.notes]
    if not ends and not (chart and (symbols or losses["unpitched"])):
        unpitched = " with a pitch" * (losses["unpitched"] > 0)
        raise MidiError(source, f"it has no notes{unpitched}", "give a score with notes")
    end = max(ends, default=0)
    longest = max(parts, key=lambda part: len(part.getElementsByClass("Measure")))
    flat = longest.flatten()
    bars, end = bars_of(parts, longest, end, source)
    signatures = [tuple(_signed(part.flatten())) for part in parts]
    owned = [_keys(said, staff.transposed) for said, staff in zip(signatures, staves, strict=True)]
    # that of most staves: timpani have none, and horns that of C
    plain = [n for n, staff in enumerate(staves) if not any(each.semitones % 12 for each in staff.transposed)]
    voters = plain if any(signatures[n] for n in plain) or not any(signatures) else []
    votes = [owned[n] for n in voters or range(len(parts)) if signatures[n] or not any(signatures)]
    keys = max(votes, key=lambda each: (votes.count(each), each == owned[parts.index(longest)]))
    signs = [each[:2] for each in keys]
    staves = [
        staff if [each[:2] for each in own] == signs else replace(staff, keys=own)
        for staff, own in zip(staves, owned, strict=True)
    ]
    marks = [mark for part in parts for mark in part.flatten().getElementsByClass("TempoIndication")]
    speeds = [(units(mark.offset), _speed(mark)) for mark in marks]
    losses["wordy"] += len({at for at, speed in speeds if speed is None})  # of one place a mark in each staff
    heard = [(at, speed) for at, speed in reversed(speeds) if speed is not None]  # of one place the first staff's
    heard.sort(key=lambda each: each[1][1] > 0)  # and printed marks before those that are not
    upbeat = len(bars) > 1 and bars[1].onset < bars[0].full
    first = (*(bar.onset for bar in bars), end)[1 + upbeat]  # whose mark holds from the beginning
    is_later = min((at for at, _ in heard), default=0) >= first
    tempi = _changes([*heard, (0, UNSAID[1:])] if is_later else heard)
    losses.update(_marks((each for part in parts for each in part.flatten()), named))
    losses["repeats"] += len(flat.getElementsByClass("Repeat"))  # of one staff are those of all
    for line in flat.getElementsByClass("Barline"):
        losses["doubles"] += line.type not in PLAIN and "Repeat" not in line.classes and line.offset < flat.highestTime
    losses["sums"] += sum(len(each.displaySequence) > 1 for each in flat.getElementsByClass("TimeSignature"))
    return Notation(
        tuple(staves),
        bars,
        end,
        keys,
        tuple(Tempo.within(at, *speed) for at, speed in tempi) or (UNSAID,),
        tuple(sorted(symbols, key=lambda each: each.onset)),  # of one place as they are written
    )


def _as_numbered(notation: Notation, parts: Sequence[Any], losses: Losses) -> Notation:
    """With the numbers that the file gives its bars. Where they fall, as of movements, bars are counted from 1; where
    some have none, from the number of the first whole bar, if all others go on from there."""
    longest = max(parts, key=lambda part: len(part.getElementsByClass("Measure")))
    numbers = [each.number for each in longest.getElementsByClass("Measure")]
    if len(numbers) != len(notation.bars):
        return notation
    if all(numbers[1:]):
        if not 0 <= numbers[0] <= numbers[-1] <= MOST_BARS or any(a > b for a, b in pairwise(numbers)):
            losses["numbers"] += 1
            return notation
        if notation.has_upbeat:  # some programs give it the number of the bar after it
            numbers[0] = min(numbers[0], numbers[1] - 1)
        return replace(notation, printed=tuple(numbers), first=numbers[notation.has_upbeat])
    pairs = zip(numbers, notation.numbers, notation.spans, strict=True)
    later = {number - ours for number, ours, (bar, end) in pairs if number and end == bar.onset + bar.full}
    return replace(notation, first=1 + max(*later, 0)) if len(later) == 1 else notation


def _signed(flat: Any) -> list[tuple[int, tuple[int, str]]]:
    """The signatures of a staff: where they are, the sharps, and the mode if it is said."""
    return [
        (units(each.offset), (each.sharps, mode if (mode := getattr(each, "mode", "")) in MODES else ""))
        for each in flat.getElementsByClass("KeySignature")
        if each.sharps is not None
    ]


def _keys(signed: Sequence[tuple[int, tuple[int, str]]], moved: Sequence[Transposed]) -> tuple[Key, ...]:
    """The signatures of a staff, from the beginning on; without one its player reads that of C."""
    read = {0: 0} | {each.onset: Transposition.usual(each.semitones).fifths for each in moved}
    unsigned = [(at, (fifths, "")) for at, fifths in read.items()][: 1 if signed else None]
    changes = _changes(signed if any(at == 0 for at, _ in signed) else [*unsigned, *signed])
    return tuple(Key(at, max(-7, min(sharps, 7)), mode) for at, (sharps, mode) in changes)


def _symbols(parts: list[Any], named: dict[str, ChordSymbol], losses: Losses) -> list[ChordSymbol]:
    """The chord symbols over all staves, where the names that stand for them lie. Where two staves have some, those of
    the higher count; others stay counted as losses, but for the same again."""
    found = dict[ChordSymbol, int]()  # the staff of each
    for n, part in enumerate(parts if named else ()):
        taken = {each.onset for each in found}
        for element in part.flatten():
            name = getattr(element, "figure", None) or getattr(element, "content", "")
            if name in named:
                symbol = named[name]._replace(onset=units(element.offset))
                if symbol.onset not in taken:
                    found.setdefault(symbol, n)
                losses["symbols"] -= symbol in found
    return [symbol._replace(staff=n) for symbol, n in found.items()]


def _marks(elements: Iterable[Any], named: dict[str, ChordSymbol]) -> Losses:
    """Words and signs, also those of notes, that a `Notation` lacks, counted."""
    marks = Losses()
    for element in elements:
        for mark in (element, *getattr(element, "articulations", ()), *getattr(element, "expressions", ())):
            kind = next((MARKS[name] for name in mark.classes if name in MARKS), None)
            content = getattr(mark, "content", None)
            if kind is not None and content != "" and content not in named:  # tempi that are only heard have no words
                marks[kind] += 1
    return marks


def _speed(mark: Any) -> tuple[float, int] | None:
    """Quarters a minute where a number is written, or only said for playing; and the beat of a written one."""
    is_written = getattr(mark, "number", None) and not mark.numberImplicit
    if not is_written and not getattr(mark, "numberSounding", None):
        return None
    return float(mark.getQuarterBPM()), units(mark.referent.quarterLength) if is_written else 0


def _changes(marks: Iterable[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Each value from where on it holds; the first from the beginning."""
    by_onset = sorted(dict(sorted(marks, key=lambda each: each[0], reverse=True)).items())
    changes: list[tuple[int, Any]] = []
    for at, value in by_onset:
        if not changes or changes[-1][1] != value:
            changes.append((at if changes else 0, value))
    return changes
