"""Signs within a bar of MEI that repeat its last beat or half, written out."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from musictx.music.notation.mei_xml import SCHEMA, Copies, Element, name_of, number_of
from musictx.music.score import beat_of

HALF = "halfmRpt"
WITHIN = {"beatRpt", HALF}
MOST_BEATS = 64
UNITS = {2**n for n in range(7)}
LENGTHS = {  # in quarters, from the longest on
    "long": Fraction(16),
    "breve": Fraction(8),
    **{str(2**n): Fraction(4, 2**n) for n in range(12)},
}
SHORTEST = Fraction(1, 256)  # music21's, where no length is said
WHOLE_BAR = Fraction(4 * MOST_BEATS + 1)  # no beat or half is as long
MOST_DOTS = 8


class Meter(NamedTuple):
    beats: int = 4
    unit: int = 4

    def length_of(self, sign: Element) -> Fraction:
        """The quarters of music that a sign stands for."""
        if name_of(sign) == HALF:
            return Fraction(2 * self.beats, self.unit)
        said = min(int(number_of(sign.get("beatdef"))), self.beats)
        return Fraction(4 * said, self.unit) if said > 0 else Fraction(beat_of(self.beats, self.unit))


class Meters:
    """The meter of each staff, where one reads a score from its beginning on."""

    def __init__(self, defined: Iterable[Element]) -> None:
        self._of = dict[str | None, Meter]()
        for element in defined:
            self.read(element)

    def read(self, element: Element) -> None:
        """Notes the meters that an element says."""
        for define in element.iter():
            beats = sum(map(int, re.findall(r"\d+", define.get("meter.count", ""))))  # 3+2
            unit = int(number_of(define.get("meter.unit")))
            if 0 < beats <= MOST_BEATS and unit in UNITS:
                if name_of(define) == "scoreDef":
                    self._of.clear()
                self._of[define.get("n")] = Meter(beats, unit)

    def of(self, staff: str | None) -> Meter:
        return self._of.get(staff) or self._of.get(None, Meter())


def with_beats(
    layer: Element, before: Sequence[Element], meter: Meter, copies: Copies, losses: Counter[str]
) -> list[Element]:
    """The music of a layer with its beats and halves again, also those from the bar before; else their time."""
    music = [*before]
    for element in layer:
        if name_of(element) in WITHIN:
            length = meter.length_of(element)
            again = copies.of(_last(music, length))
            losses["unread"] += all(name_of(each) == "space" for each in again)
            music += again or _spaces(length)
        else:
            music.append(element)
    return music[len(before) :]


def _last(music: Sequence[Element], length: Fraction) -> Sequence[Element]:
    """The end of the music that lasts so long, with the grace notes before it; nothing if a note begins earlier."""
    at, lasted = len(music), Fraction(0)
    while at and (lasted < length or music[at - 1].get("grace") is not None):
        at -= 1
        lasted += _length(music[at])
    return music[at:] if lasted == length else []


def _length(element: Element) -> Fraction:
    name = name_of(element)
    if name in ("mRest", "mSpace"):
        return WHOLE_BAR
    if name not in ("note", "chord", "rest", "space") or element.get("grace") is not None:
        return Fraction(0)
    dots = int(number_of(element.get("dots"))) or sum(name_of(each) == "dot" for each in element)
    tuplet = Fraction(int(element.get("m21TupletNumbase", 1)), int(element.get("m21TupletNum", 1)))
    return LENGTHS.get(element.get("dur", ""), SHORTEST) * (2 - Fraction(1, 2 ** max(0, min(dots, MOST_DOTS)))) * tuplet


def _spaces(length: Fraction) -> Iterator[Element]:
    for dur, quarters in LENGTHS.items():
        times, length = divmod(length, quarters)
        yield from (Element(f"{{{SCHEMA}}}space", {"dur": dur}) for _ in range(times))
