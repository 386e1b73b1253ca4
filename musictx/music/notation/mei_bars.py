"""The bars of MEI, one after the other: in no section, and those that are only counted or repeated written out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from xml.etree.ElementTree import SubElement

from musictx.music.notation.mei_beats import WITHIN, Meters, with_beats
from musictx.music.notation.mei_clefs import with_clef
from musictx.music.notation.mei_xml import LAYOUT, SCHEMA, Copies, Element, name_of, number_of
from musictx.music.notation.parts import MOST_BARS

STAFF, LAYER, REST, SPACE = (f"{{{SCHEMA}}}{name}" for name in ("staff", "layer", "mRest", "mSpace"))
BARS = {"mRpt": 1, "mRpt2": 2}  # that a sign repeats
RESTS = {"mRest", "multiRest"}
MUSIC = {"note", "chord", "rest", "space", "multiRpt", *BARS, *WITHIN}
Place = tuple[str | None, int]  # the number of a staff, and the layer's place in it
Layers = dict[Place, Element]


def measures_of(section: Element) -> Iterator[Element]:
    """Measures and what changes between them, without sections and endings around them."""
    for child in section:
        if name_of(child) in ("section", "ending"):
            yield from measures_of(child)
        elif name_of(child) not in LAYOUT:
            yield child


def repeated(measures: Iterable[Element], defined: Iterable[Element], losses: Counter[str]) -> Iterator[Element]:
    """The measures with those that are only counted or repeated; the first meter is `defined`."""
    elements = [*measures]
    following = dict(pairwise(each for each in elements if name_of(each) == "measure"))
    copies, meters = Copies(), Meters(defined)
    repeats = _Repeats(copies, meters, losses)
    for element in elements:
        meters.read(element)
        count = 1
        if name_of(element) == "measure":
            count = _count(element, following.get(element))
            repeats.write_out(element, count)
        yield element
        yield from copies.of([element], count - 1)


class _Repeats:
    """Bars, beats and halves that are the same again, from measure to measure."""

    def __init__(self, copies: Copies, meters: Meters, losses: Counter[str]) -> None:
        self._copies, self._meters, self._losses = copies, meters, losses
        self._past = list[Layers]()
        self._waiting = dict[Place, tuple[int, int]]()  # repeats of several bars: how many, and how many are to come

    def write_out(self, measure: Element, count: int) -> None:
        """Gives the measure, which stands for some bars, the music that it repeats."""
        layers: Layers = {}
        for number, staff in self._staves(measure).items():
            for n, layer in enumerate(staff.iterfind(LAYER)):
                layers[number, n] = layer
                self._repeat(layer, (number, n))
                if not WITHIN.isdisjoint(map(name_of, layer)):
                    before = self._past[-1].get((number, n), ()) if self._past else ()
                    meter = self._meters.of(number)
                    layer[:] = with_beats(layer, [*before], meter, self._copies, self._losses)
        if layers:
            self._past += [layers] * count

    def _staves(self, measure: Element) -> dict[str | None, Element]:
        """The staves by number, with layers for repeats that go on."""
        staves = {staff.get("n"): staff for staff in measure.iterfind(STAFF)}
        for number, n in dict([*self._waiting]).items():  # the last layer of each
            if number not in staves:
                staves[number] = SubElement(measure, STAFF, {} if number is None else {"n": number})
            for _ in range(n + 1 - len(staves[number].findall(LAYER))):
                SubElement(staves[number], LAYER)
        return staves

    def _repeat(self, layer: Element, place: Place) -> None:
        said = max([0, *map(_bars, layer)])
        bars, left = self._waiting.pop(place, (0, 0))
        if said and said != bars:
            bars = left = said
        elif not said and not _is_blank(layer):
            return
        if bars > len(self._past):
            self._losses["unread"] += 1
            layer[:] = [Element(SPACE)]
        elif bars:
            layer[:] = with_clef(self._copies.of(self._past[-bars].get(place, ())) or [Element(SPACE)], [*layer])
            if left > 1:
                self._waiting[place] = bars, left - 1


def _bars(sign: Element) -> int:
    """How many bars a sign repeats."""
    return int(number_of(sign.get("num"))) if name_of(sign) == "multiRpt" else BARS.get(name_of(sign), 0)


def _is_blank(layer: Element) -> bool:
    return (MUSIC | RESTS).isdisjoint(map(name_of, layer))


def _count(measure: Element, following: Element | None) -> int:
    """How many bars the measure stands for; its rests of several bars become rests of one."""
    counts, is_silent = dict[str | None, int](), True
    for staff in measure.iterfind(STAFF):
        for layer in staff.iterfind(LAYER):
            rests = [each for each in layer if name_of(each) == "multiRest"]
            is_silent = is_silent and MUSIC.isdisjoint(map(name_of, layer))
            if rests:
                counts[staff.get("n")] = int(number_of(rests[-1].get("num")))
                layer[:] = with_clef([Element(REST)], rests)
    later = () if following is None else following.iterfind(STAFF)
    layers = (layer for staff in later if staff.get("n") in counts for layer in staff.iterfind(LAYER))
    goes_on = following is not None and all(map(_is_blank, layers))  # others write these bars, and rest in this one
    return max(1, min(*counts.values(), MOST_BARS)) if counts and is_silent and not goes_on else 1
