"""What holds in MusicXML from bar to bar: divisions, keys, meters, clefs, transpositions."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import accumulate
from xml.etree import ElementTree

from musictx.music.notation.musicxml import Element, Transposition

HELD = ("divisions", "key", "time", "staves", "clef", "transpose")  # in the order of MusicXML
OF_STAVES = {"key", "time", "clef", "transpose"}
LETTERS = {"G", "F", "C"}  # clefs of staves that have pitches
State = dict[tuple[str, int], Element]  # the last of each of `HELD`, by staff


def states(bars: Sequence[Element], staves: int) -> list[State]:
    """What holds before each bar."""
    return [*accumulate(bars, lambda state, bar: state | held_in([bar], staves), initial=State())]


def held_in(bars: Iterable[Element], staves: int) -> State:
    """What the attributes of some bars, or of parts of them, say last."""
    found: State = {}
    for each in (each for bar in bars for attributes in bar.iterfind("attributes") for each in attributes):
        if each.tag in HELD:
            one = each.get("number", "1" if each.tag == "clef" else "")
            of_all = range(1, staves + 1 if each.tag in OF_STAVES else 2)
            found |= {(each.tag, staff): each for staff in ([int(one)] if one.isdecimal() else of_all)}
    return found


def leading(bar: Element) -> State:
    """What a bar says before its first note, for all staves that it speaks of."""
    first = Element("measure")
    for each in bar:
        if each.tag in ("note", "backup", "forward"):
            break
        first.append(each)
    return held_in([first], 99)


def free_keys(state: State, staves: int) -> State:
    """Those of the keys that name their notes, as of a maqam: no `Notation` says them, so new bars go on in them."""
    keys = ((place, each) for place, each in state.items() if place[0] == "key" and place[1] <= staves)
    return {place: each for place, each in keys if each.find("key-step") is not None}


def missing(now: State, before: State, said: State, staves: int) -> Element:
    """The attributes that bring a part from what holds now to what shall hold."""
    attributes = Element("attributes")
    places = sorted({*now, *before} - {*said}, key=lambda each: (HELD.index(each[0]), each[1]))
    for place in places:
        tag, staff = place
        wanted, there = before.get(place), now.get(place)
        clef = now.get(("clef", staff))
        is_of_pitches = tag not in ("clef", "key") or clef is None or clef.findtext("sign") in LETTERS
        if _value(tag, wanted) == _value(tag, there) or not is_of_pitches or (wanted is None and tag != "transpose"):
            continue
        each = Element(tag) if wanted is None else deepcopy(wanted)
        if there is not None and there.get("print-object") == "no":  # after what is hidden no sign is news
            each.set("print-object", "no")
        if wanted is None:
            for name in ("diatonic", "chromatic"):
                ElementTree.SubElement(each, name).text = "0"
        if tag in OF_STAVES and staves > 1:
            each.set("number", str(staff))
        attributes.append(each)
    return attributes


def _value(tag: str, element: Element | None) -> object:
    """Equal for signs that mean the same; without one, what holds then."""
    if tag == "transpose":
        return (0, 0) if element is None else Transposition.of(element)
    if tag == "key":
        return ["0"] if element is None else [each.text for each in element if each.tag not in ("mode", "cancel")]
    if element is None:
        return None if tag in ("divisions", "time") else ["1"] if tag == "staves" else ["G", "2", "0"]
    if tag == "time":
        return [
            sum(int(n) for n in (each.text or "").split("+") if n.strip().isdecimal())
            for each in element
            if each.tag.startswith("beat")
        ]
    if tag == "clef":
        return [element.findtext(name, default="0") for name in ("sign", "line", "clef-octave-change")]
    return [element.text]
