"""The bars of MEI, one after the other: in no section, and those that are only counted or repeated written out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy

from musictx.music.notation.mei_xml import ID, LAYOUT, SCHEMA, Element, name_of, number_of
from musictx.music.notation.parts import MOST_BARS

MOST_COPIES = 2**20  # elements of bars that are repeated
Layers = dict[tuple[str | None, int], Element]


def measures_of(section: Element) -> Iterator[Element]:
    """Measures and what changes between them, without sections and endings around them."""
    for child in section:
        if name_of(child) in ("section", "ending"):
            yield from measures_of(child)
        elif name_of(child) not in LAYOUT:
            yield child


def repeated(measures: Iterable[Element], losses: Counter[str]) -> Iterator[Element]:
    """The measures with those that are only counted or repeated."""
    before: Layers = {}
    copied = 0
    for measure in measures:
        count = 1
        layers: Layers = {}
        for staff in measure.iterfind(f"{{{SCHEMA}}}staff"):
            for n, layer in enumerate(staff.iterfind(f"{{{SCHEMA}}}layer")):
                names = {name_of(each): each for each in layer}
                losses["unread"] += sum(name_of(each) in ("beatRpt", "halfmRpt", "mRpt2") for each in layer)
                if (rests := names.get("multiRest")) is not None:
                    count = max(1, min(int(number_of(rests.get("num"))), MOST_BARS))
                    layer[:] = [Element(f"{{{SCHEMA}}}mRest")]
                if "mRpt" in names and (staff.get("n"), n) in before:
                    layer[:] = [_copy(each) for each in before[staff.get("n"), n]]
                    copied += sum(1 for _ in layer.iter())
                layers[staff.get("n"), n] = layer
        copied += count - 1 and count * sum(1 for _ in measure.iter())
        if copied > MOST_COPIES:
            raise ValueError("its repeated bars are too long")
        before = layers or before
        yield measure
        yield from (_copy(measure) for _ in range(count - 1))


def _copy(element: Element) -> Element:
    """The same again, without names that point at the first."""
    copied = deepcopy(element)
    for each in copied.iter():
        each.attrib.pop(ID, None)
    return copied
