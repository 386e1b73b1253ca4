"""The bars of a score: music21 reads each staff for itself, so their bars are put together here."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, zip_longest
from typing import Any

from musictx.music.notation.midi import is_short
from musictx.music.notation.notation import Losses
from musictx.music.notation.parts import FINEST, Bar
from musictx.music.notation.staves import units
from musictx.music.score import UNITS

FREE, MOST_BEATS = (4, 4), 99  # the meter where nothing says one; music21 takes seconds to write thousands of beats


def begin_together(staves: Sequence[Any], losses: Losses, finest: int = FINEST) -> None:
    """Moves the bars of each staff to where the last staff's begin, in steps of `finest`; counts those that it
    lengthens."""
    bars = [[*staff.getElementsByClass("Measure")] for staff in staves]
    lengths = [
        [units(after - before) for before, after in pairwise([*(each.offset for each in mine), staff.highestTime])]
        for staff, mine in zip(staves, bars, strict=True)
    ]
    signed = {tuple((n, *_meter(bar)) for n, bar in enumerate(mine) if bar.timeSignature) for mine in bars}
    firsts = {tuple(each[:1]) for each in lengths}
    are_alike = len({len(each) for each in bars}) == 1 or (len(signed) == 1 and len(firsts) == 1)
    places = range(len(staves))
    for group in [places] if are_alike else [[n] for n in places]:  # bars of staves in meters of their own differ
        together = [*zip_longest(*(lengths[n] for n in group), fillvalue=0)]
        losses["uneven"] += sum(len({*bar} - {0}) > 1 for bar in together[:-1])
        losses["odd"] += sum(max(bar) % finest > 0 for bar in together)
        for n in group:
            _place(staves[n], bars[n], lengths[n], [on_line(max(bar), finest) for bar in together])


def reach_over_lines(staves: Sequence[Any]) -> bool:
    """Whether notes are longer than their bars, as in Humdrum, where a note of two bars is written once: their times
    are right, and lines of staves differ."""
    return len({tuple(bar.offset for bar in staff.getElementsByClass("Measure")) for staff in staves}) > 1


def _place(staff: Any, bars: Sequence[Any], old: Sequence[int], new: Sequence[int]) -> None:
    """Gives the bars of a staff new lengths; an upbeat stays before its line."""
    from music21.duration import Duration

    lines = [each.offset for each in bars]
    places = [Fraction(at, UNITS) for at in accumulate(new[: len(bars)], initial=0)]
    if not bars or ([*old] == [*new[: len(bars)]] and lines == places[:-1]):
        return
    is_upbeat = bars[0].timeSignature and is_short(new[0], Bar(0, *_meter(bars[0])).full)
    later = Fraction(new[0] - old[0], UNITS) if is_upbeat else Fraction(0)
    for stream in (staff, *staff.voices):  # what is beside the bars
        for each in stream.getElementsNotOfClass(("Measure", "Voice")):
            at = stream.elementOffset(each)
            n = bisect_right(lines, at) - 1
            by = places[n] - lines[n] + (later if n == 0 and "GeneralNote" in each.classes else 0)
            stream.setElementOffset(each, at + by)
    for each in bars[0].getElementsByClass(("GeneralNote", "Voice")):
        bars[0].setElementOffset(each, each.offset + later)
    for at, each in zip(places, bars, strict=False):
        staff.setElementOffset(each, at)
    bars[-1].duration = Duration(places[-1] - places[-2])


def _meter(bar: Any) -> tuple[int, int]:
    return bar.timeSignature.numerator, bar.timeSignature.denominator


def on_line(at: int, finest: int = FINEST) -> int:
    """The next place where a bar line may be: no time signature has a bar that ends beside all thirty-seconds."""
    return -(-at // finest) * finest


def bars_of(parts: Sequence[Any], part: Any, end: int, source: object) -> tuple[tuple[Bar, ...], int]:
    """The bars of a part, and where the last one ends. A line is where the first of the longest parts begins a bar: in
    another a note may reach over it."""
    bars: list[Bar] = []
    measures = part.getElementsByClass("Measure")
    ends = [staff.highestTime for staff in parts]
    longest = [staff for staff, at in zip(parts, ends, strict=True) if at == max(ends)]
    onsets = [[units(each.offset) for each in staff.getElementsByClass("Measure")] for staff in (*longest, part)]
    whole = [each for each in onsets[:-1] if len(each) == len(measures)] or onsets[-1:]
    lines = [min(at) for at in zip(*whole, strict=True)]
    meters = _lengths_as_meters([units(each.duration.quarterLength) for each in measures])
    meter = None
    for line, measure, free in zip(lines, measures, meters, strict=True):
        signature = measure.timeSignature
        if signature is not None and not (bars and signature.style.hideObjectOnPrint):  # hidden: that of a broken bar
            meter = signature.numerator, signature.denominator
        bar = Bar(line, *(meter or free))
        bar.check(source)
        if bars and bars[-1].onset == bar.onset:
            bars.pop()  # a bar without length
        bars.append(bar)
        last = units(measure.offset + measure.duration.quarterLength)
    while len(bars) > 1 and bars[-1].onset >= max(last, end):  # behind the last double bar
        bars.pop()
    if not bars:
        signatures = part.flatten().getElementsByClass("TimeSignature")
        meter = next(((each.numerator, each.denominator) for each in signatures), FREE)
        bars, last = [Bar(0, *meter)], 0
    bars[0] = bars[0]._replace(onset=0)
    if end > last:
        more = bars[-1]._replace(onset=last).filled(end, source)
        bars += [each for each in more if each.onset > bars[-1].onset]  # the last one may have no length yet
        last = bars[-1].onset + bars[-1].full
    last = max(last, bars[-1].onset + 1)
    return tuple(bars), on_line(last)


def _lengths_as_meters(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The meter of each bar of music without one, from its length; a short first or last bar has its neighbour's."""
    for n, length in enumerate(lengths):
        near = lengths[abs(n - 1)] if n in (0, len(lengths) - 1) and len(lengths) > 1 else 0
        full, unit = max(length, near), 4
        while full * unit % (UNITS * 4) and unit < 32:
            unit *= 2
        beats, rest = divmod(full * unit, UNITS * 4)
        yield (beats, unit) if 0 < beats <= MOST_BEATS and not rest else FREE
