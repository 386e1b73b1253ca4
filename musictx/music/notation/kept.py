"""The bars of a person's MusicXML, as they are, in the score that goes on from it: signs, words and layout too."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import accumulate
from xml.etree import ElementTree

from musictx.errors import UserError
from musictx.music.notation.held import State, free_keys, held_in, leading, missing, states
from musictx.music.notation.musicxml import Element, by_parts
from musictx.music.notation.notation import Notation, Source
from musictx.music.notation.parts import Note
from musictx.music.notation.piece_signs import give_signs, is_tempo, open_up

DRAWN = {"slur", "wedge", "octave-shift", "pedal", "dashes", "bracket", "glissando", "slide", "wavy-line"}
STYLES = {"measure-repeat", "beat-repeat", "slash"}  # of bars; without an end until the last
ENDS, GOES_ON = {"stop", "discontinue"}, {"continue", "change"}
DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*>")
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def with_kept(text: bytes, notation: Notation) -> bytes:
    """A score as MusicXML with the bars of its source in place of those that have the same notes; all other bars, and
    new parts, are those of `text`. Raises UserError for elements within thousands of others."""
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
    place = {span: n for n, span in enumerate(source.spans[: source.until])}
    places = [place.get(span) for span in notation.spans_in_units]
    old_of = {tuple(range(begin, begin + _staves(old))): old for begin, old in zip(begins, olds, strict=False)}
    present = {part.origin for part in notation.parts}
    origins = [[at for n in mine if (at := notation.parts[n].origin) is not None] for mine in staves]
    parts = list[tuple[Element, Element]]()  # each new one and the old one, or itself
    for new, mine, its in zip(news, staves, origins, strict=True):
        old = old_of.get(tuple(its)) if len(its) == len(mine) else None
        if old is None and len(mine) == len(its) == 1 and its[0] + 1 not in present:
            old = old_of.get((its[0], its[0] + 1))  # the second is tablature, empty in new bars
        parts.append((new, new if old is None else old))
    first = deepcopy(olds[0].findall("measure"))
    paced = {n for new, old in parts if old is not new for n, bar in enumerate(old) if any(map(is_tempo, bar))}
    for (new, old), mine, its in zip(parts, staves, origins, strict=True):
        bars = [] if old is new else old.findall("measure")
        give_signs(new.findall("measure"), places, bars or first, bars, paced)
        if old is new:
            continue
        # the last one of a part with fewer than the others may be longer than its span
        whole = source.spans[: len(bars) - (len(bars) < len(source.spans))]
        heard = [_by_bar(notation.parts[n].notes, notation.spans_in_units) for n in mine]
        written = [_by_bar(source.notes[n], whole) for n in its]
        kept = {
            n: place[span]
            for n, span in enumerate(notation.spans_in_units)
            if span in place and all(span in b and a[span] == b[span] for a, b in zip(heard, written, strict=True))
        }
        joint = [*_joined(bars, new.findall("measure"), kept, places, _staves(old))]
        for each in bars:
            old.remove(each)
        old.extend(joint)
    _list(given, made, parts)
    return _as_text(given, source)


def as_it_is(source: Source) -> bytes:
    """A person's MusicXML, its bars ordered by parts. Raises UserError as `with_kept`."""
    return _as_text(_parsed(source), source)


def _parsed(source: Source) -> Element:
    score = ElementTree.fromstring(source.text)
    if score.tag == "score-timewise":
        by_parts(score)
    return score


def _as_text(score: Element, source: Source) -> bytes:
    try:
        text: bytes = ElementTree.tostring(score, encoding="utf-8")
    except RecursionError:
        raise UserError("the score has elements within thousands of others", "export it again") from None
    body = text.removeprefix(b"<?xml version='1.0' encoding='utf-8'?>\n")
    kind = DOCTYPE.search(source.text)
    named = f"{kind[0]}\n" if kind and score.tag in kind[0] else ""  # bars by parts have another
    return f'<?xml version="1.0" encoding="utf-8"?>\n{named}'.encode() + body


def _staves(part: Element) -> int:
    return max((int(each.text or 1) for each in part.iterfind("measure/attributes/staves")), default=1)


def _by_bar(notes: Iterable[Note], spans: Sequence[tuple[int, int]]) -> dict[tuple[int, int], set[Note]]:
    """The notes that sound in each bar, which begins and ends there."""
    lines, found = [begin for begin, _ in spans], {span: set[Note]() for span in spans}
    for note in notes:
        for span in spans[max(bisect_right(lines, note.onset) - 1, 0) : bisect_left(lines, note.offset)]:
            found[span].add(note)
    return found


def _joined(
    old: list[Element], new: list[Element], kept: dict[int, int], places: Sequence[int | None], staves: int
) -> Iterator[Element]:
    """The bars of a part; where old and new ones meet, with what holds there."""
    _cut_lines(old, kept)
    befores = [states(bars, staves) for bars in (old, new)]
    now: State = {}
    sound = ""  # of the last note that names one
    for n, made in enumerate(new):
        bar, before = (old[kept[n]], befores[0][kept[n]]) if n in kept else (made, befores[1][n])
        if n in kept:
            if n + 1 < len(new):
                open_up(bar)
        else:
            place = places[n]
            own = free_keys(leading(old[place]), staves) if place is not None and place < len(old) else {}
            for each in bar.findall("attributes") if own else ():
                each[:] = [one for one in each if one.tag != "key"]
            before = before | free_keys(now, staves) | own
            if sound:
                _name_sound(bar, sound)
        lacks = missing(now, before, leading(bar), staves)
        if len(lacks):
            bar.insert(next((k for k, each in enumerate(bar) if each.tag != "print"), 0), lacks)
        now = before | held_in([bar], staves)
        sound = [sound, *(each.get("id", "") for each in bar.iterfind("note/instrument"))][-1]
        yield bar


def _name_sound(bar: Element, sound: str) -> None:
    """Gives new notes of a part with several sounds that of those before: without a name some programs play none."""
    for note in bar.findall("note"):
        at = sum(each.tag in ("chord", "pitch", "rest", "duration", "tie") for each in note)
        if note.find("instrument") is None and note.find("rest") is None:
            note.insert(at, Element("instrument", id=sound))


def _cut_lines(bars: Sequence[Element], kept: dict[int, int]) -> None:
    """Takes away slurs and other signs that begin in a bar and end in another, where bars between them are new."""
    runs = {old: new - old for new, old in kept.items()}  # neighbours of one run have the same difference
    run_of = [*accumulate(range(len(bars)), lambda run, n: run + (n not in runs or runs[n] != runs.get(n - 1)))]
    opened = dict[tuple[str, str], list[tuple[int, Element, Element]]]()
    for n, bar in enumerate(bars):
        for parent in [*bar.iter()]:
            for sign in sorted(parent, key=lambda sign: sign.get("type") not in ENDS):  # one may end where one begins
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
    taken = {each.get("id", "") for each in given.iter()}
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
            old = name = part.get("id", "")
            mine = [each for each in one.iter() if each.get("id")]  # the part and its sounds, P2 and P2-I1
            while {name + each.get("id", "").removeprefix(old) for each in mine} & taken:
                name += "n"
            for each in (*mine, part):
                each.set("id", name + each.get("id", "").removeprefix(old))
            names.insert(at, one)
            at += 1
        given.append(part)
    title = next((each.text for each in made.iter() if each.tag in ("work-title", "movement-title")), None) or ""
    if title.strip() and not any(given.findtext(each) for each in ("work/work-title", "movement-title")):
        work = given.find("work")
        if work is None:
            given.insert(0, work := Element("work"))
        at = len(work.findall("work-number"))
        for each in work.findall("work-title"):
            work.remove(each)
        work.insert(at, Element("work-title"))
        work[at].text = title
