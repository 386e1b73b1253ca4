"""Elements of MEI: names, texts, numbers."""

import math
from xml.etree import ElementTree

from musictx.music.notation.lyrics import printable

Element = ElementTree.Element
SCHEMA = "http://www.music-encoding.org/ns/mei"
ID = "{http://www.w3.org/XML/1998/namespace}id"
LAYOUT = {"sb", "pb", "cb", "expansion", "clef", "octave"}  # notes of an octave say how they sound


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
