"""What belongs to a piece and not to the notes of a bar: its number, lines, breaks, tempi, jumps, rehearsal marks."""

import re
from collections.abc import Container, Iterator, Sequence
from copy import deepcopy
from fractions import Fraction
from xml.etree import ElementTree

from musictx.music.notation.held import State, states
from musictx.music.notation.musicxml import Element, timed

MARKS = {"rehearsal", "segno", "coda", "metronome"}
PLAYED = {"tempo", "dacapo", "dalsegno", "tocoda", "fine", "segno", "coda"}  # of `sound`
PACE = re.compile(r"(?i)\b(?:tempo|mosso|rit|riten\w*|ritard\w*|rall\w*|accel\w*)\b")  # music21 knows Andante
NUMBER = re.compile(r"^[0-9]{1,9}")  # of 4a too; none of X1


def give_signs(
    new: Sequence[Element],
    places: Sequence[int | None],
    given: Sequence[Element],
    own: Sequence[Element],
    paced: Container[int],
) -> None:
    """Gives new bars in the places of old ones the numbers and lines of those that are `given`, which all parts share,
    and the breaks, tempi, jumps and rehearsal marks of those of their `own` part. Bars that are `paced` have their
    tempi there."""
    _number(new, places, given)
    before = [_divisions(each) for each in states(own, 1)]
    now = [_divisions(each) for each in states(new, 1)[1:]]
    for n, (bar, place) in enumerate(zip(new, places, strict=True)):
        if place is None or place >= len(given):
            continue
        for each in bar.findall("barline") + [each for each in bar if place in paced and is_tempo(each)]:
            bar.remove(each)
        if place < len(own):
            for at, sign in _signs(own[place], before[place]):
                _insert(bar, sign, at, now[n])
            bar[:0] = map(deepcopy, own[place].findall("print"))
        for line in map(deepcopy, given[place].findall("barline")):
            bar.insert(len(bar.findall("print")) if line.get("location") == "left" else len(bar), line)
        if n + 1 < len(new):
            open_up(bar)
        elif bar.find("barline") is None:
            ElementTree.SubElement(ElementTree.SubElement(bar, "barline"), "bar-style").text = "light-heavy"


def _number(new: Sequence[Element], places: Sequence[int | None], given: Sequence[Element]) -> None:
    """Gives new bars the numbers of the old ones in their places; those behind go on from there."""
    later, last = 0, None
    for bar, place in zip(new, places, strict=True):
        number = bar.get("number", "")
        ours = int(number.rstrip("a"))
        if place is None or place >= len(given):
            bar.set("number", number.replace(f"{ours}", f"{ours + later}"))
            continue
        for name in ("number", "implicit"):
            bar.attrib.pop(name, None)
            if name in given[place].attrib:
                bar.set(name, given[place].attrib[name])
        said = NUMBER.match(bar.get("number", ""))
        last = int(said[0]) if said else last  # X1 does not count
        later = later if last is None else last - ours


def open_up(bar: Element) -> None:
    """Takes the final double line from a bar that others follow."""
    for line in bar.findall("barline"):
        style = line.find("bar-style")
        if style is not None and style.text == "light-heavy" and line.find("repeat") is None:
            line.remove(style)
            if not len(line):
                bar.remove(line)


def is_tempo(element: Element) -> bool:
    """Whether it is a direction or sound that says how fast music is."""
    is_played = element.tag in ("direction", "sound") and any("tempo" in each.attrib for each in element.iter("sound"))
    return is_played or element.find("direction-type/metronome") is not None


def _signs(bar: Element, divisions: Fraction) -> Iterator[tuple[Fraction, Element]]:
    """Copies of the directions that are the whole piece's, and where they are in the bar, in quarters."""
    for at, _, each in timed(bar, divisions):
        heard = [one for one in each.iter("sound") if not PLAYED.isdisjoint(one.attrib)]
        if each.tag not in ("direction", "sound") or not (heard or _is_of_all(each)):
            continue
        sign = deepcopy(each)
        for kind in sign.findall("direction-type"):
            if not all(one.tag in MARKS | {"words"} for one in kind):  # as dynamics, which are the old notes'
                sign.remove(kind)
        is_whole = each.tag == "sound" or sign.find("direction-type") is not None
        for one in [sign] if is_whole else map(deepcopy, heard):  # no direction is without a type
            for offset in one.findall("offset"):
                one.remove(offset)
            yield at, one


def _is_of_all(direction: Element) -> bool:
    from music21 import expressions, tempo

    kinds = {one.tag for kind in direction.iterfind("direction-type") for one in kind}
    if not MARKS.isdisjoint(kinds) or direction.get("system", "none") != "none":
        return True
    words = " ".join("".join(each.itertext()) for each in direction.iterfind("direction-type/words")).strip()
    says_pace = PACE.search(words) is not None or tempo.TempoText(words).isCommonTempoText()
    return words != "" and (says_pace or expressions.TextExpression(words).getRepeatExpression() is not None)


def _insert(bar: Element, sign: Element, at: Fraction, divisions: Fraction) -> None:
    """Puts a sign before the note of the first voice that begins or sounds there, behind the signs of its place."""
    place, begin = 0, Fraction(0)
    for n, (now, end, each) in enumerate(timed(bar, divisions)):
        if end < now or end > now > at:  # another voice, or later notes
            break
        if now <= at < end:
            place, begin = n, now
        elif end <= at:
            place, begin = n + 1, max(begin, end) if each.tag in ("note", "forward") else begin
    if at > begin:
        offset = Element("offset")
        offset.text = f"{float((at - begin) * divisions):g}"
        sign.insert(len(sign.findall("direction-type")) if sign.tag == "direction" else len(sign), offset)
    bar.insert(place, sign)


def _divisions(state: State) -> Fraction:
    """The parts of a quarter that lengths count."""
    said = state.get(("divisions", 1))
    return Fraction(1 if said is None else float(said.text or 1))
