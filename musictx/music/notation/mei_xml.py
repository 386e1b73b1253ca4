"""Elements of MEI: names, texts, numbers, copies."""

import math
from collections.abc import Iterable
from copy import deepcopy
from xml.etree import ElementTree

from musictx.music.notation.lyrics import printable

Element = ElementTree.Element
SCHEMA = "http://www.music-encoding.org/ns/mei"
ID = "{http://www.w3.org/XML/1998/namespace}id"
LAYOUT = {"sb", "pb", "cb", "expansion", "clef", "octave"}  # notes of an octave say how they sound
MOST_COPIES = 2**20  # elements of music that is repeated


def name_of(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def text_of(element: Element) -> str:
    return printable("".join(element.itertext()))


def number_of(text: str | None) -> float:
    try:
        number = float(text or 0)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


class Copies:
    """Elements again, without names that point at the first ones; at most a number of a file."""

    def __init__(self) -> None:
        self._made = 0

    def of(self, elements: Iterable[Element], times: int = 1) -> list[Element]:
        """The elements so many times. Raises ValueError for too many."""
        firsts = [*elements]
        self._made += times * (1 + sum(1 for first in firsts for _ in first.iter()))
        if self._made > MOST_COPIES:
            raise ValueError("its repeated bars are too long")
        copies = [deepcopy(first) for _ in range(times) for first in firsts]
        for copied in copies:
            for each in copied.iter():
                each.attrib.pop(ID, None)
        return copies
