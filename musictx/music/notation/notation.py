"""A score as notation has it: parts of exact notes, bars, keys, tempi."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import counted
from musictx.music.notation.chord_symbols import ChordSymbol, over
from musictx.music.notation.hands import KEYBOARDS, pairs_of
from musictx.music.notation.lyrics import cut
from musictx.music.notation.parts import MIDDLE_C, UNSAID, Bar, Key, Note, Part, Tempo, name_of
from musictx.music.notation.swing import STRAIGHT, Swing

Losses = Counter[str]  # by kinds of `LOSSES`
MUSICXML, MXL = ".musicxml", ".mxl"  # the second is compressed
SCORES = (MUSICXML, MXL)
MUSIC21 = Lock()  # its remarks are caught for the whole process, so one thread at a time
MOST_PARTS = 64


class Source(NamedTuple):
    """A MusicXML file, as text, and what is heard of it: the notes of each staff, and where bars begin and end."""

    text: str
    notes: tuple[tuple[Note, ...], ...]
    spans: tuple[tuple[int, int], ...]
    until: int  # so many bars may come back
    ends_in_repeat: bool = False


@dataclass(frozen=True)
class Notation:
    """All staves, and the bars that they share; `end` is the end of the last bar. Without `keys` nobody said any."""

    parts: tuple[Part, ...]
    bars: tuple[Bar, ...]
    end: int
    keys: tuple[Key, ...] = (Key(0, 0),)
    tempi: tuple[Tempo, ...] = (UNSAID,)
    symbols: tuple[ChordSymbol, ...] = ()
    title: str = ""
    composer: str = ""
    lyricist: str = ""
    arranger: str = ""
    rights: str = ""
    first: int = field(default=1, compare=False)  # the number of the first whole bar; an excerpt has its own
    printed: tuple[int, ...] = field(default=(), compare=False)  # the numbers that a file gives its bars; others go on
    swing: Swing = field(default=STRAIGHT, compare=False)  # of the file that it is of
    source: Source | None = field(default=None, compare=False, repr=False)  # its bars are written again as they are
    key_from: "Notation | None" = field(
        default=None, compare=False, repr=False
    )  # whose notes say a key that nobody said

    @property
    def size(self) -> str:
        """How many staves and bars, in words."""
        return f"{counted(len(self.parts), 'staff', 'staves')}, {counted(len(self.bars), 'bar')}"

    @property
    def spans(self) -> list[tuple[Bar, int]]:
        """Each bar with where it ends."""
        ends = [*(bar.onset for bar in self.bars[1:]), self.end]
        return list(zip(self.bars, ends, strict=True))

    @property
    def spans_in_units(self) -> list[tuple[int, int]]:
        """Where each bar begins and ends."""
        return [(bar.onset, end) for bar, end in self.spans]

    @property
    def has_upbeat(self) -> bool:
        """Whether the first bar is shorter than its meter, and another follows."""
        return len(self.bars) > 1 and self.bars[1].onset < self.bars[0].full

    @property
    def silent_bars(self) -> int:
        """How many bars are before the first note, as in a DAW; 0 without notes."""
        first = min((note.onset for part in self.parts for note in part.notes), default=0)
        return sum(end <= first for _, end in self.spans)

    @property
    def numbers(self) -> list[int]:
        """The number of each bar, as printed; else an upbeat's is the one before `first`, and both parts of a bar that
        a repeat sign divides have the same."""
        numbers, rest = [*self.printed[:1]] or [self.first - self.has_upbeat], 0
        for n, ((before, begin), (bar, end)) in enumerate(pairwise(self.spans), 1):
            rest = before.full - (begin - before.onset) if not rest else 0  # what the bar before lacks
            completes = numbers[-1] >= self.first and before[1:] == bar[1:] and 0 < rest == end - bar.onset
            rest *= completes
            numbers.append(self.printed[n] if n < len(self.printed) else numbers[-1] + (not completes))
        return numbers

    @property
    def numbered(self) -> NDArray[np.int64]:
        """(B + 1, 2) where each bar begins and its number, and the end with the number that follows."""
        numbers = self.numbers
        return np.array([*zip((bar.onset for bar in self.bars), numbers, strict=True), (self.end, numbers[-1] + 1)])

    def first_bars(self, count: int) -> "Notation":
        """The first `count` bars; notes end with them."""
        if count >= len(self.bars):
            return self
        end = self.bars[count].onset
        source = self.source and self.source._replace(until=min(self.source.until, count))
        return replace(
            self,
            source=source,
            parts=tuple(part.until(end) for part in self.parts),
            bars=self.bars[:count],
            printed=self.printed[:count],
            end=end,
            keys=tuple(each for each in self.keys if each.onset < end),
            tempi=tuple(each for each in self.tempi if each.onset < end),
            symbols=tuple(each for each in self.symbols if each.onset < end),
        )

    def without_doubles(self, places: Collection[int], losses: Losses) -> "Notation":
        """Without those of some staves whose notes another staff of their instrument has, as of tablature."""
        others = [part for n, part in enumerate(self.parts) if n not in places]

        def is_double(part: Part) -> bool:
            return any(part.group == each.group and {*part.notes} <= {*each.notes} for each in others)

        stay = [n for n, part in enumerate(self.parts) if n not in places or not is_double(part)]
        losses["tablatures"] += len(self.parts) - len(stay)
        symbols = over(self.symbols, {old: new for new, old in enumerate(stay)})
        return replace(self, parts=tuple(self.parts[n] for n in stay), symbols=symbols)

    def with_symbols_apart(self) -> "Notation":
        """With chord symbols of one place over equal shares of the note that begins there, as lead sheets mean them; it
        counts until its bar or the next symbol."""
        together = {onset: list(same) for onset, same in groupby(self.symbols, key=lambda each: each.onset)}
        if len(together) == len(self.symbols):
            return self
        lines, symbols = [end for _, end in self.spans], list[ChordSymbol]()
        notes = [note for part in reversed(self.parts) for note in part.notes]  # at one place the first part's counts
        note_ends = {note.onset: note.offset for note in notes}
        for onset, following in zip(together, [*together, self.end][1:], strict=True):
            line = lines[min(bisect_right(lines, onset), len(lines) - 1)]
            share, same = min(line, following, note_ends.get(onset, line)) - onset, together[onset]
            symbols += [each._replace(onset=onset + k * share // len(same)) for k, each in enumerate(same)]
        return replace(self, symbols=tuple(symbols))

    def with_texts(self, given: "Notation", new_from: float, new_to: float) -> tuple["Notation", int]:
        """With the title, people, rights, chord symbols, transposing staves and all verses of a score that it goes on
        from; and how many syllables have no staff any more.

        Staves that are new in a region get no words there, and if all are new no chord symbols. A syllable may have no
        note."""
        given, places = given.on_two_staves(), dict[int, int]()
        before = [(name_of(n, part), n, part) for n, part in enumerate(given.parts)]
        parts, lost, stays = list[Part](), sum(len(part.lyrics) for part in given.parts), False
        for part in self.parts:
            alike = [
                (len(part.places & each.places), -k) for k, (name, _, each) in enumerate(before) if name == part.name
            ]
            common, place = max(alike, default=(0, 0))
            if not common:
                parts.append(part)
                continue
            _, n, like = before.pop(-place)
            places[n] = len(parts)
            lost -= len(like.lyrics)
            new, old = ({at for at in each.places if new_from <= at[0] < new_to} for each in (part, like))
            stays |= bool(new) and new == old
            lyrics = like.lyrics if new == old else cut(like.lyrics, lambda at: not new_from <= at < new_to)
            parts.append(replace(like, name=part.name, program=part.program, notes=part.notes, lyrics=lyrics))
        symbols = over((each for each in given.symbols if stays or not new_from <= each.onset < new_to), places)
        modes = {key[:2]: key for key in given.keys}
        keys = tuple(modes.get(key[:2], key) for key in self.keys)
        marks = {(tempo.onset, round(tempo.quarters_a_minute)): tempo for tempo in given.tempi}
        tempi = tuple(marks.get((each.onset, round(each.quarters_a_minute)), each) for each in self.tempi)
        texts = {name: getattr(given, name) for name in ("title", "composer", "lyricist", "arranger", "rights")}
        texts["source"] = given.source
        return replace(self, parts=tuple(parts), symbols=symbols, keys=keys, tempi=tempi, **texts), lost

    def followed_by(self, other: "Notation", onset: int) -> "Notation":
        """The staves and chord symbols of both, the other's from `onset` on."""
        first = len(self.parts)
        later = (
            replace(
                part,
                name=name_of(n, part),
                group=None if part.group is None else part.group + first,
                origin=None,
                notes=tuple(each._replace(onset=each.onset + onset) for each in part.notes),
                lyrics=tuple(each._replace(onset=each.onset + onset) for each in part.lyrics),
                clefs=tuple(each._replace(onset=each.onset + onset) for each in part.clefs),
                keys=part.keys and tuple(each._replace(onset=each.onset + onset) for each in part.keys),
                transposed=tuple(each._replace(onset=each.onset + onset) for each in part.transposed),
                voices={each._replace(onset=each.onset + onset): voice for each, voice in part.voices.items()},
            )
            for n, part in enumerate(other.parts)
        )
        symbols = (each._replace(onset=each.onset + onset, staff=each.staff + first) for each in other.symbols)
        return replace(self, parts=(*self.parts, *later), symbols=(*self.symbols, *symbols))

    @property
    def instruments(self) -> list[tuple[int, ...]]:
        """The staves of each instrument that has several, from the top: as the file says, else as music looks."""
        said = [(group, [n for n, _ in same]) for group, same in groupby(enumerate(self.parts), lambda x: x[1].group)]
        guessed = [pair for pair in pairs_of(self.parts) if pair[0] < pair[1]]
        return sorted([*guessed, *(tuple(same) for group, same in said if group is not None and len(same) > 1)])

    @property
    def keyboards(self) -> list[tuple[int, int]]:
        """The two hands of each keyboard, the higher staff first; where the file has it below, they are one keyboard
        for models, and on a page two instruments."""
        programs = [part.program for part in self.parts]
        below = [pair for pair in pairs_of(self.parts) if pair[0] > pair[1]]
        staves = [*self.instruments, *below]
        return [(same[0], same[1]) for same in staves if KEYBOARDS.issuperset(programs[n] for n in same)]

    @property
    def divided(self) -> set[int]:
        """The parts that get two staves: wide ones of a keyboard, whose notes are on one."""
        paired = {n for staves in (*self.instruments, *self.keyboards) for n in staves}
        parts = enumerate(self.parts)
        return {n for n, part in parts if n not in paired and part.program in KEYBOARDS and part.is_wide}

    @property
    def given_staves(self) -> list[int]:
        """The number of each staff where the halves of a divided one are one again, as in the source."""
        pairs = pairwise([None, *(part.origin for part in self.parts)])
        return [n - 1 for n in accumulate(each is None or each != before for before, each in pairs)]

    def on_given_staves(self) -> "Notation":
        """With one staff for each that the source has, where `on_two_staves` divided it."""
        places, parts = self.given_staves, list[Part]()
        for place, part in zip(places, self.parts, strict=True):
            if place == len(parts):
                parts.append(part)
                continue
            upper = parts[place]
            notes, lyrics = sorted({*upper.notes, *part.notes}), sorted((*upper.lyrics, *part.lyrics))
            parts[place] = replace(upper, notes=tuple(notes), lyrics=tuple(lyrics))
        return replace(self, parts=tuple(parts), symbols=over(self.symbols, dict(enumerate(places))))

    def on_two_staves(self, but: int | None = None) -> "Notation":
        """With two staves for each keyboard that has one, and is wide, `but` for one part."""
        staves, divided, places = list[Part](), self.divided - {but}, dict[int, int]()
        for n, part in enumerate(self.parts):
            places[n] = len(staves)
            if n not in divided:
                staves.append(part)
                continue
            above = {note.onset for note in part.notes if note.pitch >= MIDDLE_C}
            for is_upper in (True, False):
                mine = tuple(note for note in part.notes if (note.pitch >= MIDDLE_C) == is_upper)
                sung = tuple(each for each in part.lyrics if (each.onset in above) == is_upper)
                clefs = () if part.origin is None else part.clefs
                staves.append(replace(part, notes=mine, lyrics=sung, clefs=clefs))
        return replace(self, parts=tuple(staves), symbols=over(self.symbols, places))
