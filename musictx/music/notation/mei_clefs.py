"""Changes of clef in MEI; music21 reads those of `staffDef` alone."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from musictx.music.notation.mei_xml import ID, SCHEMA, Element, name_of

CHANGED = "clef"  # of an element before which the clef changes
SHAPES = {"G", "F", "C"}
OCTAVES = {"8": 1, "15": 2, "22": 3}
LINES = {"1", "2", "3", "4", "5"}
TIMED = {"note", "chord", "rest", "space", "mRest", "mSpace", "multiRest", "mRpt", "mRpt2", "multiRpt"}


def mark_clefs(root: Element) -> int:
    """Names each change of clef at the next note or rest of its staff; how many have none, or are of no pitches."""
    waiting, count, others = dict[str | None, str](), 0, 0
    for staff in root.iter(f"{{{SCHEMA}}}staff"):
        number = staff.get("n")
        for element in staff.iter():
            is_clef = name_of(element) == "clef" and element.get("sameas") is None
            if is_clef and element.get("shape") in SHAPES and element.get("line") in LINES:
                waiting[number] = f"{element.get('shape')}{element.get('line')} {_octaves(element)}"
            elif is_clef:
                others += 1
            elif name_of(element) in TIMED and number in waiting and element.get("grace") is None:
                element.set(CHANGED, waiting.pop(number))
                if element.get(ID) is None:
                    element.set(ID, f"clef{count}")
                count += 1
    return len(waiting) + others


def with_clef(new: list[Element], old: Iterable[Element]) -> list[Element]:
    """New elements in place of old ones, whose clef the first one gets."""
    for each in old:
        if CHANGED in each.attrib:
            new[0].attrib |= {CHANGED: each.attrib[CHANGED], ID: each.attrib[ID]}
    return new


def _octaves(clef: Element) -> int:
    by = OCTAVES.get(clef.get("dis", ""), 0)
    return -by if clef.get("dis.place") == "below" else by


def put_clefs(staves: Iterator[Element], parts: Mapping[str | None, Any], starts: Mapping[str, Any]) -> None:
    """Puts the clefs on music21's parts, where the marked elements begin."""
    from music21 import clef

    for staff in staves:
        for element in staff.iter():
            part, onset = parts.get(staff.get("n")), starts.get(element.get(ID, ""))
            if CHANGED in element.attrib and part is not None and onset is not None:
                name, octaves = element.attrib[CHANGED].split()
                part.insert(onset, clef.clefFromString(name, int(octaves)))
