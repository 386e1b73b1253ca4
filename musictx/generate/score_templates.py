"""A score without the music that is to be drawn: more bars, a gap, or the hands beside a tune."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, ScoreError, counted
from musictx.generate.control import Control
from musictx.generate.primer import Part as Region
from musictx.generate.primer import check_bars
from musictx.generate.requests import DEFAULT_S, MOST_TOKENS, Length
from musictx.generate.score_seeds import ScoreSeed, at_pace, free_slots, until
from musictx.music.notation.chord_symbols import over
from musictx.music.notation.hands import KEYBOARDS
from musictx.music.notation.lyrics import cut
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Part, Tempo
from musictx.music.score import UNITS
from musictx.tokenizers.rules import AUTO, Rules
from musictx.tokenizers.score.rules import Limits
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE

C = TypeVar("C", Key, Tempo)
CLOSING, MOST_CLOSING = 1 / 3, 4  # of the usual onsets of a bar; bars
SPARE = 16  # times the ids of its script, which a row has room for
FAR, FEW = 12, 4  # semitones beyond the notes of a part; so many notes say what it does
HAND = 5  # notes at once, if it had no more
HANDS, NEW_PARTS = (RIGHT, LEFT), ("Piano", "Accompaniment")  # the second name where the first is taken


@dataclass(frozen=True)
class Template:
    """A score without the music that is to be drawn."""

    notation: Notation  # each keyboard on two staves
    slots: tuple[int | None, ...]  # of the staves; None: not in the ids
    free: frozenset[tuple[int, int]]  # the slots and bars to draw
    ahead: int | None  # the slot that is a bar ahead
    seed: Notation  # new notes have its limits
    goes_on: bool = False  # behind its last bar; else the piece ends there
    closing: int = 0  # bars before the new ones that are not heard

    @property
    def span(self) -> tuple[int, int]:
        """Where the bars to draw begin and end."""
        bars = [bar for _, bar in self.free]
        return self.notation.bars[min(bars)].onset, self.notation.spans[max(bars)][1]

    @property
    def has_new_parts(self) -> bool:
        """Whether it has staves that the seed lacks, as an accompaniment does."""
        return len(self.notation.parts) > len(self.seed.parts)

    def limits(self, rules: Rules, control: Control) -> Limits:
        """What new notes keep to: a flute has one at a time, and none far from those that it had, a hand what it can
        play; and each part what is asked. Raises ConfigError as `Limits.after`."""
        none = np.zeros(1, dtype=bool)  # meters and keys are in the script
        limits = Limits.after(self.seed, none, none, rules, self.unit_s)
        if self.has_new_parts and rules.max_still_s == AUTO:  # hands that a seed lacks have no waits of their own
            limits = replace(limits, still=max(bar.full for bar in self.notation.bars))
        parts = [*zip(self.slots, self.seed.parts, strict=True)] if not self.has_new_parts else []
        hands = {n for staves in self.seed.keyboards for n in staves}
        at_once, reach = dict[int, int](), dict[int, NDArray[np.bool_]]()
        for n, (slot, part) in enumerate(parts):
            if slot is None:
                continue
            is_known, is_keyboard = len(part.notes) >= FEW, part.program in KEYBOARDS
            is_hand = n in hands or (is_keyboard and not (is_known and part.is_line))
            at_once[slot] = max(part.at_once, HAND) if is_hand else part.at_once
            if is_known and not is_hand:
                low, high = (extreme(note.pitch for note in part.notes) for extreme in (min, max))
                pitch = np.arange(len(limits.pitches))
                near = limits.pitches & (low - FAR <= pitch) & (pitch <= high + FAR)
                reach[slot] = near if near.any() else limits.pitches
        has_more = control.polyphony is not None or control.density is not None
        return replace(
            limits,
            at_once={} if has_more else at_once or dict.fromkeys(self.drawn, HAND),
            reach=reach if control.register is None else {},
            drawn=self.drawn,
            span=self.span,
        )

    @property
    def drawn(self) -> frozenset[int]:
        return frozenset(slot for slot, _ in self.free)

    @property
    def unit_s(self) -> float:
        return 60 / self.notation.tempi[0].quarters_a_minute / UNITS


def continued(seed: ScoreSeed, part: Region, length: Length) -> tuple[ScoreSeed, Template]:
    """The part of a score that goes on, and new bars for all its staves. Raises UserError for bars without notes,
    ConfigError for too many new ones."""
    first = until(seed, part)
    old, is_whole = first.notation, first.notation is seed.notation
    closing = closing_bars(old) if is_whole else 0  # one that a person cuts has no ending
    first = at_pace(first, join_of(old)) if is_whole else first
    old, bar = first.notation, meter_of_rest(old, closing)
    slots = free_slots(seed)
    count, most = bars_of(length, old, bar), most_bars(len(seed.used))
    if count > most:
        most_s = int(most * bar.full / _units_a_second(old))
        name, got, allowed = ("bars", count, most) if length.seconds is None else ("seconds", length.seconds, most_s)
        why = f"{counted(count, 'new bar')} for {counted(len(seed.used), 'part')}"
        hint = "then go on with the result"
        raise ConfigError(f"Length.{name}", got=got, why=why, allowed=f"at most {allowed}", hint=hint).of(seed.file)
    template = more_bars(old, seed.slots, count, is_whole, closing)
    return first, replace(template, free=frozenset(each for each in template.free if each[0] in slots))


def more_bars(
    old: Notation, slots: tuple[int | None, ...], count: int, fill: bool = True, closing: int = 0
) -> Template:
    """New bars for all parts with a slot, behind the last bar line, in the meter before `closing` bars that end a
    piece. `fill` gives a last bar that is not full rests, but for one that goes back to an upbeat."""
    meter, end = meter_of_rest(old, closing), join_of(old, fill)
    bars = [meter._replace(onset=end + k * meter.full) for k in range(count)]
    notation = replace(old, bars=(*old.bars, *bars), end=end + count * meter.full)
    numbers = range(len(old.bars), len(notation.bars))
    free = frozenset((slot, n) for slot in slots if slot is not None for n in numbers)
    return Template(notation, slots, free, TUNE, old, goes_on=True, closing=closing)


def join_of(old: Notation, fill: bool = True) -> int:
    """Where new bars begin."""
    last, goes_back = old.bars[-1], old.source is not None and old.source.ends_in_repeat
    return max(old.end, last.onset + last.full) if fill and not goes_back else old.end


def most_bars(parts: int) -> int:
    """The most new bars of so many parts at once: a row has room for its script and all that is drawn."""
    return MOST_TOKENS // (SPARE * (3 + 2 * parts))  # a meter, a key and an end; each part's beginning and its music


def closing_bars(notation: Notation) -> int:
    """How many last bars end a finished piece: silence, and so few onsets that a model goes on with long notes."""
    lines = [bar.onset for bar in notation.bars]
    moments = {note.onset for part in notation.parts for note in part.notes}
    onsets = np.bincount([bisect_right(lines, at) - 1 for at in moments], minlength=len(lines))  # (B,)
    sounding = np.trim_zeros(onsets, "b")
    is_slow = sounding <= CLOSING * np.median(onsets[onsets > 0])
    most = min(MOST_CLOSING, len(sounding) // 3)
    return len(onsets) - len(sounding) + next((n for n in range(most) if not is_slow[-1 - n]), most)


def without_closing(template: Template) -> Template:
    """A score that goes on, as the model hears it: without the bars that end it."""
    old, count = template.notation, template.closing
    if not count:
        return template
    last = min(bar for _, bar in template.free)
    begin, end = old.bars[last - count].onset, old.bars[last].onset

    def moved(at: int) -> int:
        return at - (end - begin) if at >= end else min(at, begin)

    def latest(changes: Iterable[C]) -> tuple[C, ...]:
        return tuple({(at := moved(each.onset)): each._replace(onset=at) for each in changes}.values())

    notation = replace(
        old,
        parts=tuple(part.until(begin) for part in old.parts),
        bars=tuple(bar._replace(onset=moved(bar.onset)) for bar in (*old.bars[: last - count], *old.bars[last:])),
        end=moved(old.end),
        keys=latest(old.keys),
        tempi=latest(old.tempi),
        symbols=(),
        source=None,
    )
    free = frozenset((slot, bar - count) for slot, bar in template.free)
    return replace(template, notation=notation, free=free)


def meter_of_rest(notation: Notation, closing: int = 0) -> Bar:
    """A bar of the meter in which a score goes on: the last before `closing` bars, unless it only completes the upbeat,
    as MIDI has it."""
    bars = notation.bars[: len(notation.bars) - closing]
    last = bars[-1]
    if len(bars) > 2 and last[1:] != bars[-2][1:] and bars[1].onset + last.full == bars[-2].full:
        return bars[-2]
    return last


def bars_of(length: Length, notation: Notation, bar: Bar) -> int:
    """A length in whole bars, at the last tempo."""
    if length.bars is None:
        seconds = DEFAULT_S if length.seconds is None else length.seconds
        return max(round(seconds * _units_a_second(notation) / bar.full), 1)
    return int(length.bars)


def _units_a_second(notation: Notation) -> float:
    """At the last tempo."""
    return notation.tempi[-1].quarters_a_minute / 60 * UNITS


def with_gap(seed: ScoreSeed, from_bar: int, to_bar: int) -> Template:
    """A score without some bars, of all parts or of the one that `read_score` was given; bar 1 follows an upbeat.
    Raises ConfigError for bars and parts that are not there."""
    old = seed.notation
    check_bars(from_bar, to_bar, old.numbers[old.has_upbeat :], seed.file)
    bars = range(bisect_left(old.numbers, from_bar), bisect_right(old.numbers, to_bar))
    slots = free_slots(seed)
    free = frozenset((slot, n) for slot in slots for n in bars)
    parts = tuple(
        _without(part, old, bars) if slot in slots else part for part, slot in zip(old.parts, seed.slots, strict=True)
    )
    return Template(replace(old, parts=parts), seed.slots, free, TUNE, old)


def _without(part: Part, notation: Notation, bars: Collection[int]) -> Part:
    lines = [bar.onset for bar in notation.bars]

    def stays(onset: int) -> bool:
        return bisect_right(lines, onset) - 1 not in bars

    notes = tuple(note for note in part.notes if stays(note.onset))
    return replace(part, notes=notes, lyrics=cut(part.lyrics, stays))


def accompanied(seed: ScoreSeed) -> Template:
    """The hands that a score lacks, from its first bar to the last, or from the first note of a MIDI file; what it has
    is a bar ahead. Raises ScoreError where both are there."""
    new = [slot for slot in HANDS if slot not in seed.used]
    if not new:
        hint = "give a tune or a right hand alone, or part= that is a tune; bundle=harmoniser hears the top alone"
        raise ScoreError(seed.file, "it has both hands already", hint)
    old, parts, slots = seed.notation, [*seed.notation.parts], [*seed.slots]
    places, group = {n: n for n in range(len(parts))}, len(parts)  # a number that no instrument has
    are_new = [hand in new for hand in HANDS]
    if empty := [pair for pair in old.keyboards if [not parts[n].notes for n in pair] == are_new]:
        slots[empty[0][0]], slots[empty[0][1]] = HANDS
    elif len(new) == 1:  # beside the other hand, as of one keyboard
        at = slots.index(RIGHT + LEFT - new[0])
        like = parts[at] if parts[at].group is not None else replace(parts[at], group=group)
        hand = Part(like.name, like.program if like.program in KEYBOARDS else 0, (), group=like.group)
        parts[at : at + 1] = [hand, like] if new[0] == RIGHT else [like, hand]
        slots.insert(at + (new[0] == LEFT), new[0])
        places = {n: n + (n > at or (n == at and new[0] == RIGHT)) for n in places}
    else:
        name = next(name for name in NEW_PARTS if name not in {part.name for part in parts[-1:]})
        parts += [Part(name, 0, (), group=group)] * 2
        slots += new
    first = old.silent_bars if seed.is_midi else 0  # a bar of rests is written for a purpose
    free = frozenset((slot, n) for slot in new for n in range(first, len(old.bars)))
    whole = replace(old, parts=tuple(parts), symbols=over(old.symbols, places))
    heard = replace(old, parts=tuple(part for part in old.parts if part.notes))  # a hand in an empty staff is new too
    return Template(whole, tuple(slots), free, min(seed.used), heard)
