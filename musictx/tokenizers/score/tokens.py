"""Score encoding: bars of parts, on the grid of twenty-fourths of a quarter.

A bar is METER, KEY, PART 1 …, PART 2 …, BAR; KEY, the number of sharps and 7, is left out where nobody said one. A
part's music is AT, a place in the bar; then for each length of the notes that begin there LENGTH, and their pitches,
low to high. LENGTH is left out where it is that of the note before in this bar of the part. SPAN tells, as an AT, that
a bar is shorter or longer than its meter says. LONG lengthens the next LENGTH.

One part may be a bar ahead: METER, AHEAD 0 with its next bar, PART 1 … and PART 2 … with the bar before, BAR. So who
writes the others knows what the tune does next.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import TokenError
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.music.score import DRUMS, UNITS, Score
from musictx.tokenizers.score.slots import NAMES, SLOTS, TUNE, slots_of
from musictx.tokenizers.tokenizer import Tokenizer, Trace
from musictx.tokenizers.vocab import EventRange, Ids, Vocab

if TYPE_CHECKING:
    from musictx.tokenizers.rules import Rules
    from musictx.tokenizers.score.rules import ScoreRules

MOST_UNITS = 16 * UNITS  # of a bar
MOST_BEATS = {1: 4, 2: 8, 4: 16, 8: 32, 16: 32, 32: 32}  # of a meter, by their unit
LENGTHS = 4 * UNITS
MOST_LONG = 16  # times LENGTHS, in one id
MOST_SHARPS = 7
VELOCITY = 80
PITCHES = 128


class Placed(NamedTuple):
    """A note of some ids, the token that begins it, and its place: its slot and its bar's onset."""

    token: int
    slot: int
    note: Note


class Section(NamedTuple):
    """Some ids of a stream: the beginning of a bar, its end, or a part's music in it, with its slot and its bar."""

    ids: list[int]
    slot: int | None = None
    bar: int = -1


class ScoreTokenizer(Tokenizer):
    """Parts in bars, without loudness. A `Score` is heard as one keyboard in 4/4; a `Notation` keeps its parts and
    meters."""

    name = "score"
    pitched = ("PITCH",)
    metrical = True
    ruled = True
    vocab = Vocab(
        "score/1",
        (
            *(EventRange(f"METER_{unit}", 1, most) for unit, most in MOST_BEATS.items()),
            EventRange("SPAN", 0, 0),
            EventRange("KEY", 0, 2 * MOST_SHARPS),
            EventRange("AHEAD", 0, SLOTS - 1),
            EventRange("PART", 0, SLOTS - 1),
            EventRange("AT", 0, MOST_UNITS),
            EventRange("LONG", 1, MOST_LONG),
            EventRange("LENGTH", 1, LENGTHS),
            EventRange("PITCH", 0, PITCHES - 1),
            EventRange("BAR", 0, 0),
        ),
    )

    def __init__(self, state: str = "") -> None:
        super().__init__(state)
        vocab = self.vocab
        self.ahead0, self.part0, self.at0 = (vocab.offsets[name] for name in ("AHEAD", "PART", "AT"))
        self.long0, self.length0, self.pitch0 = (vocab.offsets[name] for name in ("LONG", "LENGTH", "PITCH"))
        self.span, self.key0, self.bar = (vocab.offsets[name] for name in ("SPAN", "KEY", "BAR"))
        self.meters = [(beats, unit) for unit, most in MOST_BEATS.items() for beats in range(1, most + 1)]  # by id
        self.pace: NDArray[Any] = np.where(np.arange(vocab.size) == self.bar, 1.0, 0.0)  # (V,) bars

    def encode(self, score: Score) -> Ids:
        """(T,) ids. Raises TokenError for more bars than a score has."""
        return self.encode_notation(notation_of(score)) if len(score) else np.zeros(0, dtype=np.uint16)

    def encode_notation(self, notation: Notation, ahead: int | None = TUNE) -> Ids:
        """(T,) ids; part `ahead`, if the score has it beside others, is a bar ahead. Raises TokenError for
        parts that have no slot, and for bars that the table lacks."""
        notation = notation.on_two_staves()
        groups = self.sections(notation, slots_of(notation), ahead)
        return np.array([i for group in groups for section in group for i in section.ids], dtype=np.uint16)

    def sections(
        self, notation: Notation, slots: Sequence[int | None], ahead: int | None, start: int = 0
    ) -> list[list[Section]]:
        """The stream from bar `start` on, up to each BAR, of the staves that have a slot. Raises TokenError as
        `encode_notation`."""
        staves = {slot: part.notes for part, slot in zip(notation.parts, slots, strict=True) if slot is not None}
        bars = list(self._bars(notation))
        music = {slot: _bar_by_bar(staves[slot], notation.bars) for slot in sorted(staves)}  # of each slot, bar by bar
        first = ahead if ahead in music and len(music) > 1 else None
        leads, others = first is not None, [slot for slot in music if slot != first]

        def part(begin: int, slot: int, n: int) -> Section:
            return Section([begin + slot, *self._events(music[slot][n], notation.bars[n].onset)], slot, n)

        groups = list[list[Section]]()
        for n in range(start, len(bars) + leads):
            group = [Section(bars[n])] if n < len(bars) else []
            if first is not None and n < len(bars):
                group.append(part(self.ahead0, first, n))
            if (own := n - leads) >= start:
                group += [part(self.part0, slot, own) for slot in others]
            groups.append([*group, Section([self.bar])])
        return groups

    def _bars(self, notation: Notation) -> Iterator[list[int]]:
        """The ids that begin each bar."""
        for number, (bar, end) in enumerate(notation.spans, 1):
            span, meter = end - bar.onset, f"{bar.numerator}/{bar.denominator}"
            if not 1 <= bar.numerator <= MOST_BEATS.get(bar.denominator, 0):
                raise TokenError(f"bar {number} is in {meter}, which {self.name} tokens lack")
            if span > MOST_UNITS:
                quarters = span / UNITS
                raise TokenError(
                    f"bar {number} lasts {quarters:g} quarters, {self.name} tokens have {MOST_UNITS // UNITS}"
                )
            begin = [self.vocab.id(f"METER_{bar.denominator}", bar.numerator)]
            sharps = next((key.sharps for key in reversed(notation.keys) if key.onset <= bar.onset), None)
            begin += [] if span == bar.full else [self.span, self.at0 + span]
            yield begin if sharps is None else [*begin, self.key0 + MOST_SHARPS + sharps]

    def _events(self, notes: Sequence[Note], bar: int) -> Iterator[int]:
        """The ids of a part's bar."""
        at, last = -1, 0
        for onset, length, pitches in chords_of(notes):
            if onset != at:
                yield self.at0 + onset - bar
            if length != last:
                yield from self.length_ids(length)
            at, last = onset, length
            yield from (self.pitch0 + pitch for pitch in pitches)

    def length_ids(self, length: int) -> Iterator[int]:
        """The ids of a length, in units."""
        longer = (length - 1) // LENGTHS
        while longer:
            yield self.long0 + min(longer, MOST_LONG) - 1
            longer -= min(longer, MOST_LONG)
        yield self.length0 + (length - 1) % LENGTHS

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """The notes of all parts. Raises TokenError for ids outside the vocabulary."""
        return _score((each.note for each in self.placed(ids)[0]), quarter_s)

    def decode_notation(self, ids: NDArray[np.integer]) -> Notation:
        """The score, with a part for each slot. Raises TokenError as `decode`."""
        placed, bars, end = self.placed(ids)
        keys = self._keys(ids, bars)
        parts: dict[int, set[Note]] = {}
        for _, slot, note in placed:
            parts.setdefault(slot, set()).add(note)
        staves = tuple(Part(NAMES[slot], 0, tuple(sorted(parts[slot]))) for slot in sorted(parts))
        last = max((note.offset for part in staves for note in part.notes), default=0)
        if last > end:
            bars += bars[-1]._replace(onset=end).filled(last, self.name)
            end = bars[-1].onset + bars[-1].full
        return Notation(staves, tuple(bars), end, keys)

    def _keys(self, ids: NDArray[np.integer], bars: Sequence[Bar]) -> tuple[Key, ...]:
        """The keys, from the bars on where they change."""
        keys, within = list[Key](), self.begins_within(music := self.vocab.music(ids).tolist())
        n = 0 if within else -1  # number of the bar
        for i in music:
            n += i < self.span
            sharps = i - self.key0 - MOST_SHARPS
            if self.key0 <= i < self.ahead0 and (not keys or keys[-1].sharps != sharps):
                keys.append(Key(bars[n].onset if keys else 0, sharps))
        return tuple(keys)

    def placed(self, ids: NDArray[np.integer]) -> tuple[list[Placed], list[Bar], int]:
        """The notes of any ids, their bars, and where the last one ends.

        Music before the first METER is in bars of 4/4, or of the meter after it."""
        music = self.vocab.music(ids).tolist()
        notes, bars, end = list[Placed](), list[Bar](), 0
        slot, base, at, longer, length = TUNE, 0, 0, 0, UNITS
        has_meter = has_ahead = in_span = False
        meters = [self.meters[i] for i in music if i < self.span]
        if self.begins_within(music):  # a window of a longer piece
            bars, end = [Bar(0, *(meters or [(4, 4)])[0])], 0
            end = bars[0].full
        for token, i in enumerate(music):
            if i < self.span:
                bars.append(Bar(end, *self.meters[i]))
                base, end, has_meter = end, end + bars[-1].full, True
            elif i == self.span:
                in_span = True
            elif i < self.ahead0:
                pass  # a key says nothing about notes
            elif i < self.part0:
                slot, base, has_ahead = i - self.ahead0, bars[-1].onset, True
            elif i < self.at0:
                slot, base = i - self.part0, bars[-1 - (has_meter and has_ahead and len(bars) > 1)].onset
            elif i < self.long0:
                at = i - self.at0
                if in_span:
                    end, in_span = bars[-1].onset + max(at, 1), False
            elif i < self.length0:
                longer += i - self.long0 + 1
            elif i < self.pitch0:
                length, longer = longer * LENGTHS + i - self.length0 + 1, 0
            elif i < self.bar:
                notes.append(Placed(token, slot, Note(base + at, length, i - self.pitch0)))
            else:
                base, has_meter, has_ahead, in_span = bars[-1].onset, False, False, False
        return notes, bars, end

    def begins_within(self, music: list[int]) -> bool:
        """Whether ids begin with music of a bar whose METER they lack."""
        first = music[: music.index(self.bar)] if self.bar in music else music
        has_ahead, has_part = (
            any(low <= i < high for i in first) for low, high in ((self.ahead0, self.part0), (self.part0, self.at0))
        )
        return not music or music[0] >= self.span or (has_ahead and has_part)

    def transpose(self, ids: Ids, semitones: int) -> Ids:
        """A window with every pitch and key moved; the caller keeps it within `lo` … `hi`."""
        moved = super().transpose(ids, semitones)
        is_key = (ids >= self.key0) & (ids < self.ahead0)
        sharps = (ids.astype(np.int64) - self.key0 - MOST_SHARPS + 7 * semitones + 5) % 12 - 5  # -5 … 6
        return np.where(is_key & (semitones != 0), self.key0 + MOST_SHARPS + sharps, moved).astype(np.uint16)

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> float:
        """The end of the last bar, or the onset of a note behind it."""
        notes, _, end = self.placed(ids)
        last = max((each.note.onset for each in notes), default=0)
        return max(end, last) * quarter_s / UNITS if len(ids) else 0.0

    def grammar(
        self,
        rules: "Rules",
        prompts: Sequence[NDArray[np.integer]],
        quarter_s: Sequence[float],
        on_grid: Sequence[bool] = (),
    ) -> "ScoreRules":
        from musictx.tokenizers.score.rules import ScoreRules

        return ScoreRules(self, rules, prompts, quarter_s)

    def trace(self, ids: Ids, quarter_s: float) -> Trace:
        placed, bars, _ = self.placed(ids)
        score = _score((each.note for each in placed), quarter_s)
        order = sorted(range(len(placed)), key=lambda n: _key(placed[n].note))
        struck_by = np.array([placed[n].token for n in order], dtype=np.int64)
        note, time_s = np.full(len(ids), -1), np.zeros(len(ids))
        note[struck_by] = np.arange(len(order))
        unit_s = quarter_s / UNITS
        time_s[struck_by] = score.onset_s
        is_pitch = self.pitch[ids] >= 0
        is_place = (ids >= self.at0) & (ids < self.pitch0)
        upcoming, now_s = -1, 0.0
        for t in range(len(ids) - 1, -1, -1):  # a place and a length belong to the note that they begin
            if is_pitch[t]:
                upcoming = int(note[t])
            elif is_place[t] and upcoming >= 0:
                note[t], time_s[t] = upcoming, score.onset_s[upcoming]
            else:
                upcoming = -1
        starts = iter(bars)
        for t, i in enumerate(ids.tolist()):  # all else has the time of its bar
            if i < self.span:
                now_s = next((bar.onset * unit_s for bar in starts), now_s)
            if note[t] < 0:
                time_s[t] = now_s
        return Trace(score, time_s, note, struck_by)


def chords_of(notes: Iterable[Note]) -> Iterator[tuple[int, int, list[int]]]:
    """(onset, length, pitches), in time; of one onset by the lowest pitch, then by length."""
    chords: dict[tuple[int, int], list[int]] = {}
    for note in sorted(notes):
        chords.setdefault((note.onset, note.length), []).append(note.pitch)
    for (onset, length), pitches in sorted(chords.items(), key=lambda each: (each[0][0], each[1][0], each[0][1])):
        yield onset, length, pitches


def _bar_by_bar(notes: Sequence[Note], bars: Sequence[Bar]) -> list[list[Note]]:
    lines, within = [bar.onset for bar in bars], [list[Note]() for _ in bars]
    for note in notes:
        within[bisect_right(lines, note.onset) - 1].append(note)
    return within


def notation_of(score: Score) -> Notation:
    """A score's notes at the nearest places as one keyboard in 4/4, without drums."""
    score = score.select(score.program != DRUMS)
    onset, offset = (np.rint(at / score.quarter_s * UNITS).astype(np.int64) for at in (score.onset_s, score.offset_s))
    columns = onset.tolist(), np.maximum(offset - onset, 1).tolist(), score.pitch.tolist()
    notes = tuple(sorted({Note(*each) for each in zip(*columns, strict=True)}))
    bars = Bar(0, 4, 4).filled(max((note.offset for note in notes), default=0), "the music")
    return Notation((Part(NAMES[1], 0, notes),), tuple(bars), bars[-1].onset + bars[-1].full, keys=())


def _key(note: Note) -> tuple[int, int, int]:
    return note.onset, note.pitch, note.length  # the order of a Score


def _score(notes: Iterable[Note], quarter_s: float) -> Score:
    unit_s, rows = quarter_s / UNITS, sorted(notes, key=_key)
    onset, length, pitch = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Score(onset * unit_s, (onset + length) * unit_s, pitch, np.full(len(pitch), VELOCITY), quarter_s)
