"""The bars of a person's MusicXML, as they are, in the score that goes on from it: signs, words and layout too."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import accumulate
from xml.etree import ElementTree

from musictx.music.notation.musicxml import Element, Transposition, by_parts
from musictx.music.notation.notation import Notation, Note, Source

# what holds from bar to bar, in the order of MusicXML; all but the first two are of a staff
HELD = ("divisions", "staves", "key", "time", "clef", "transpose")
DRAWN = {"slur", "wedge", "octave-shift", "pedal", "dashes", "bracket", "glissando", "slide", "wavy-line"}
STYLES = {"measure-repeat", "beat-repeat", "slash"}  # of bars; without an end until the last
ENDS, GOES_ON = {"stop", "discontinue"}, {"continue", "change"}
LETTERS = {"G", "F", "C"}  # clefs of staves that have pitches
State = dict[tuple[str, int], Element]  # the last of each of `HELD`, by staff


def with_kept(text: bytes, notation: Notation) -> bytes:
    """A score as MusicXML with the bars of its source in place of those that have the same notes; all other bars, and
    new parts, are those of `text`."""
    source = notation.source
    if source is None:
        return text
    given, made = _parsed(source), ElementTree.fromstring(text)
    olds, news = given.findall("part"), made.findall("part")
    begins = [0, *accumulate(map(_staves, olds))]
    later = {n for same in notation.instruments for n in same[1:]}
    joined = {same[0]: same for same in notation.instruments}
    staves = [joined.get(n, (n,)) for n in range(len(notation.parts)) if n not in later]
    fits = begins[-1] == len(source.notes) and [_staves(each) for each in news] == [len(each) for each in staves]
    fits &= all(len(part.findall("measure")) == len(notation.bars) for part in news)  # else a line has no place
    if not fits or any(len(part.findall("measure")) > len(source.spans) for part in olds):
        return text
    place = {span: n for n, span in enumerate(source.spans)}
    old_of = {tuple(range(begin, begin + _staves(old))): old for begin, old in zip(begins, olds, strict=False)}
    present = {part.origin for part in notation.parts}
    parts = list[tuple[Element, Element]]()  # each new one and the old one, or itself
    for new, mine in zip(news, staves, strict=True):
        origins = [origin for n in mine if (origin := notation.parts[n].origin) is not None]
        old = old_of.get(tuple(origins)) if len(origins) == len(mine) else None
        if old is None and len(mine) == len(origins) == 1 and origins[0] + 1 not in present:
            old = old_of.get((origins[0], origins[0] + 1))  # the second is tablature, empty in new bars
        parts.append((new, new if old is None else old))
        if old is None:
            continue
        bars = old.findall("measure")
        heard = [_by_bar(notation.parts[n].notes, notation.spans_in_units) for n in mine]
        written = [_by_bar(source.notes[n], source.spans[: len(bars)]) for n in origins]
        kept = {
            n: place[span]
            for n, span in enumerate(notation.spans_in_units)
            if all(span in b and a[span] == b[span] for a, b in zip(heard, written, strict=True))
        }
        joint = [*_joined(bars, new.findall("measure"), kept, _staves(old))]
        for each in bars:
            old.remove(each)
        old.extend(joint)
    _list(given, made, parts)
    return _as_text(given)


def as_given(source: Source) -> bytes:
    """A person's MusicXML, its bars ordered by parts."""
    return _as_text(_parsed(source))


def _parsed(source: Source) -> Element:
    score = ElementTree.fromstring(source.text)
    if score.tag == "score-timewise":
        by_parts(score)
    return score


def _as_text(score: Element) -> bytes:
    text: bytes = ElementTree.tostring(score, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text.removeprefix(b"<?xml version='1.0' encoding='utf-8'?>\n")


def _staves(part: Element) -> int:
    return max((int(each.text or 1) for each in part.iterfind("measure/attributes/staves")), default=1)


def _by_bar(notes: Iterable[Note], spans: Sequence[tuple[int, int]]) -> dict[tuple[int, int], set[Note]]:
    """The notes that sound in each bar, which begins and ends there."""
    lines, found = [begin for begin, _ in spans], {span: set[Note]() for span in spans}
    for note in notes:
        for span in spans[max(bisect_right(lines, note.onset) - 1, 0) : bisect_left(lines, note.offset)]:
            found[span].add(note)
    return found


def _joined(old: list[Element], new: list[Element], kept: dict[int, int], staves: int) -> Iterator[Element]:
    """The bars of a part; where old and new ones meet, with what holds there."""
    _cut_lines(old, kept)
    states = [_states(bars, staves) for bars in (old, new)]
    now: State = {}
    later = 0  # than the number that a new bar has
    for n, made in enumerate(new):
        bar, before = (old[kept[n]], states[0][kept[n]]) if n in kept else (made, states[1][n])
        if n in kept:
            if n + 1 < len(new):
                _open(bar)
            numbers = bar.get("number", ""), made.get("number", "")
            later = int(numbers[0]) - int(numbers[1]) if all(map(str.isdecimal, numbers)) else later
        elif made.get("number", "").isdecimal():
            made.set("number", str(int(made.get("number", "")) + later))
        missing = _missing(now, before, _leading(bar), staves)
        if len(missing):
            bar.insert(next((k for k, each in enumerate(bar) if each.tag != "print"), 0), missing)
        now = before | _held([bar], staves)
        yield bar


def _states(bars: Sequence[Element], staves: int) -> list[State]:
    """What holds before each bar."""
    return [*accumulate(bars, lambda state, bar: state | _held([bar], staves), initial=State())]


def _held(bars: Iterable[Element], staves: int) -> State:
    """What the attributes of some bars, or of parts of them, say last."""
    found: State = {}
    for each in (each for bar in bars for attributes in bar.iterfind("attributes") for each in attributes):
        if each.tag in HELD:
            one = each.get("number", "1" if each.tag == "clef" else "")
            for staff in range(1, staves + 1) if not one.isdecimal() and each.tag not in HELD[:2] else [int(one or 1)]:
                found[each.tag, staff] = each
    return found


def _leading(bar: Element) -> State:
    """What a bar says before its first note, for all staves that it speaks of."""
    first = Element("measure")
    for each in bar:
        if each.tag in ("note", "backup", "forward"):
            break
        first.append(each)
    return _held([first], 99)


def _missing(now: State, before: State, said: State, staves: int) -> Element:
    """The attributes that bring a part from what holds now to what shall hold."""
    attributes = Element("attributes")
    places = sorted({*now, *before} - {*said}, key=lambda each: (HELD.index(each[0]), each[1]))
    for place in places:
        tag, staff = place
        wanted, there = before.get(place), now.get(place)
        is_of_pitches = tag != "clef" or there is None or there.findtext("sign") in LETTERS
        if _value(tag, wanted) == _value(tag, there) or not is_of_pitches or (wanted is None and tag != "transpose"):
            continue
        each = Element(tag) if wanted is None else deepcopy(wanted)
        if wanted is None:
            for name in ("diatonic", "chromatic"):
                ElementTree.SubElement(each, name).text = "0"
        if tag not in HELD[:2] and staves > 1:
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


def _open(bar: Element) -> None:
    """Takes the final double line from a bar that others follow."""
    for line in bar.findall("barline"):
        style = line.find("bar-style")
        if style is not None and style.text == "light-heavy" and line.find("repeat") is None:
            line.remove(style)
            if not len(line):
                bar.remove(line)


def _cut_lines(bars: Sequence[Element], kept: dict[int, int]) -> None:
    """Takes away slurs and other signs that begin in a bar and end in another, where bars between them are new."""
    runs = {old: new - old for new, old in kept.items()}  # neighbours of one run have the same difference
    run_of = [*accumulate(range(len(bars)), lambda run, n: run + (n not in runs or runs[n] != runs.get(n - 1)))]
    opened = dict[tuple[str, str], list[tuple[int, Element, Element]]]()
    for n, bar in enumerate(bars):
        for parent in [*bar.iter()]:
            for sign in parent:
                if sign.tag not in DRAWN | STYLES:
                    continue
                name, kind = (sign.tag, sign.get("number", "1")), sign.get("type", "")
                opened.setdefault(name, []).append((n, parent, sign))
                if kind in ENDS:
                    pieces = opened.pop(name)
                    if len({run_of[at] for at, _, _ in pieces}) > 1:
                        for _, above, each in pieces:
                            above.remove(each)
                elif kind not in GOES_ON and len(opened[name]) > 1:  # the one before has no end
                    opened[name] = opened[name][-1:]
    for (tag, _), pieces in opened.items():
        for _, above, each in pieces if tag in STYLES else ():
            above.remove(each)
    for n, bar in enumerate(bars):
        for above in bar.iterfind("attributes/measure-style"):
            for each in above.findall("multiple-rest"):
                if len({*run_of[n : n + int(each.text or 1)]}) > 1 or n + int(each.text or 1) > len(bars):
                    above.remove(each)
        _without_empty(bar)


def _without_empty(bar: Element) -> None:
    """Takes away what held signs alone: MusicXML has no empty one."""
    for direction in bar.findall("direction"):
        types = direction.findall("direction-type")
        if types and not any(map(len, types)):
            bar.remove(direction)
    for attributes in bar.findall("attributes"):
        for style in attributes.findall("measure-style"):
            if not len(style):
                attributes.remove(style)
        if not len(attributes):
            bar.remove(attributes)


def _list(given: Element, made: Element, parts: Sequence[tuple[Element, Element]]) -> None:
    """Puts the parts into the given score, each behind the one before; those that no part goes on from leave it."""
    names, more = given.find("part-list"), made.find("part-list")
    assert names is not None
    assert more is not None
    old_of = {each.get("id"): each for each in names.findall("score-part")}
    about = {each.get("id"): each for each in more.findall("score-part")}
    for each in given.findall("part"):
        given.remove(each)
    stay, at = {part.get("id") for new, part in parts if part is not new}, 0
    for name, each in old_of.items():
        if name not in stay:
            names.remove(each)
    for new, part in parts:
        if part is not new:
            at = [*names].index(old_of[part.get("id")]) + 1
        else:
            one = about[part.get("id")]
            while part.get("id") in old_of:
                part.set("id", f"{part.get('id')}n")
            one.set("id", part.get("id", ""))
            names.insert(at, one)
            at += 1
        given.append(part)
    if given.find("work/work-title") is None and given.find("movement-title") is None:
        title = next((each for each in made if each.tag in ("work", "movement-title")), None)
        if title is not None and "".join(title.itertext()).strip():
            given.insert(0, title)
