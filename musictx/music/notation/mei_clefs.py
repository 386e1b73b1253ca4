"""Changes of clef in MEI; music21 reads those of `staffDef` alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from musictx.music.notation.mei_xml import ID, SCHEMA, Element, name_of

CHANGED = "clef"  # of an element before which the clef changes
SHAPES = {"G", "F", "C"}
OCTAVES = {"8": 1, "15": 2, "22": 3}
TIMED = {"note", "chord", "rest", "space", "mRest", "mSpace"}  # that stay as they are


def mark_clefs(root: Element) -> int:
    """Names each change of clef at the next note or rest of its staff; how many have none."""
    waiting, count = dict[str | None, str](), 0
    for staff in root.iter(f"{{{SCHEMA}}}staff"):
        number = staff.get("n")
        for element in staff.iter():
            if name_of(element) == "clef" and element.get("shape") in SHAPES and element.get("line", "").isdecimal():
                waiting[number] = f"{element.get('shape')}{element.get('line')} {_octaves(element)}"
            elif name_of(element) in TIMED and number in waiting and element.get("grace") is None:
                element.set(CHANGED, waiting.pop(number))
                if element.get(ID) is None:
                    element.set(ID, f"clef{count}")
                count += 1
    return len(waiting)


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
