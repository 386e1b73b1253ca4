"""The chords of a score, bar by bar."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import gcd

import numpy as np

from musictx.errors import ConfigError, counted
from musictx.generate.tune_chords import chords_of_tune
from musictx.music.harmony import MOST_CHORDS, NO_CHORD, chord_on, chords_by_bar
from musictx.music.notation.chord_symbols import NO_CHORD as KIND_OF_NO_CHORD
from musictx.music.notation.chord_symbols import ChordSymbol
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Note, Part
from musictx.music.score import UNITS, Score

SIXTEENTH = UNITS // 4


def chords_found(notation: Notation, end_bar: int, asked: str = "seed") -> str:
    """The chords of the bars up to a bar's number, without silence before them. Raises ConfigError as
    `chords_between`."""
    first = 0 if notation.symbols else notation.silent_bars  # symbols may stand over rests
    spans = notation.spans[max(first, notation.has_upbeat) : end_bar]
    return chords_between(notation, [*(bar.onset for bar, _ in spans), *(end for _, end in spans[-1:])], asked)


def has_symbols(notation: Notation, first: int, last: int) -> bool:
    """Whether known chords are written over some bars, by their places in the score. The last one before them goes on;
    a single one of a whole score only for a bar."""
    known = [each.onset for each in notation.symbols if each.classes]
    begin = notation.bars[max(first - 1, 0)].onset if len(known) == 1 else 0
    return any(begin <= at < notation.spans[last][1] for at in known)


def chords_between(notation: Notation, lines: Sequence[int], asked: str = "seed") -> str:
    """The chords of bars between lines, as text: those written over them, else the nearest to the notes of the bar,
    without any notes the first chord. Raises ConfigError, with what a person `asked` for, without notes and chords, and
    for too many bars."""
    spans = [*pairwise(lines)]
    allowed = f"the chords of at most {MOST_CHORDS} bars, as in 'C | Am'"
    if len(spans) > MOST_CHORDS:
        why = f"they are found in {counted(len(spans), 'bar')}"
        raise ConfigError("chords", got=asked, why=why, allowed=allowed)
    end = lines[-1] if lines else 0
    notes = sorted(note for part in notation.parts for note in part.notes if note.onset < end)
    known = [str(chord_on(each.root, each.classes)) for each in notation.symbols if each.classes and each.onset < end]
    if notes:
        heard = heard_chords(notes, lines)
    elif known:
        heard = [(begin, known[0]) for begin, _ in spans]
    else:
        why = "no notes come before the new music" if asked == "seed" else "it has no notes"
        raise ConfigError("chords", got=asked, why=why, allowed=allowed)
    return " | ".join(chords_of_bar(notation, *span, heard) for span in spans)


def heard_chords(notes: Sequence[Note], lines: Sequence[int]) -> list[tuple[int, str]]:
    """The chords that notes in their order suggest, and where each begins: of a line those that lead sheets would have,
    of fuller music the nearest to the notes of each bar."""
    if Part("", 0, tuple(notes)).is_line:
        return [(at, str(chord)) for at, chord in chords_of_tune(notes, lines)]
    onset, length, pitch = np.array(notes, np.int64).T
    in_units = Score(onset * 1.0, (onset + length) * 1.0, pitch, np.full(len(pitch), 1))
    return [*zip(lines[:-1], chords_by_bar(in_units, np.array(lines, np.float64)).split(" | "), strict=True)]


def name_of(symbol: ChordSymbol) -> str:
    """As a `Control` has it; "" of a chord that is not known."""
    if symbol.classes is None:
        return NO_CHORD if symbol.kind == KIND_OF_NO_CHORD else ""
    return str(chord_on(symbol.root, symbol.classes))


def chords_of_bar(notation: Notation, onset: int, end: int, heard: Sequence[tuple[int, str]]) -> str:
    """The chords of a bar, each as long as the others: those of its symbols, and the one before; what is `heard` where
    there is none, or none that is known."""
    last, within = bisect_right(notation.symbols, (onset + 1,)), list[tuple[int, str]]()
    symbols = notation.symbols[max(last - 1, 0) : bisect_left(notation.symbols, (end,))]
    said: list[tuple[int, str]] = [(max(each.onset, onset), name_of(each)) for each in symbols]
    said = said if said and said[0][0] == onset else [(onset, ""), *said]
    for (at, chord), (until, _) in zip(said, [*said[1:], (end, "")], strict=True):
        first = bisect_right(heard, at, key=lambda each: each[0]) - 1
        others = heard[max(first, 0) : bisect_left(heard, until, key=lambda each: each[0])]
        within += [(at, chord)] if chord else [(max(begin, at), name) for begin, name in others]
    within = [each for n, each in enumerate(within) if not n or each[1] != within[n - 1][1]]
    step = gcd(end - onset, *(at - onset for at, _ in within))
    if step < SIXTEENTH and (end - onset) % SIXTEENTH == 0:  # the text has so many chords a bar
        within = [(onset + round((at - onset) / SIXTEENTH) * SIXTEENTH, name) for at, name in within]
        step = SIXTEENTH
    places = range(onset, end, step)
    return " ".join(within[bisect_right(within, at, key=lambda each: each[0]) - 1][1] for at in places)
