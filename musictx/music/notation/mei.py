"""MEI as notation programs write it, for music21, which reads attributes where these write elements."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from musictx.music.notation.chord_symbols import ChordSymbol, symbol_named
from musictx.music.notation.lyrics import printable

Element = ElementTree.Element
SCHEMA = "http://www.music-encoding.org/ns/mei"
MARK = "\ue000"  # begins words that stand for a chord symbol
ID = "{http://www.w3.org/XML/1998/namespace}id"
LAYOUT = {
    "sb",
    "pb",
    "cb",
    "expansion",
    "clef",
    "octave",
}  # a clef may only name another; an octave's notes say `oct.ges`
ATTRIBUTES = {
    "keySig": {"sig": "key.sig"},
    "meterSig": {"count": "meter.count", "unit": "meter.unit", "sym": "meter.sym"},
}


def for_music21(text: str, losses: Counter[str]) -> str:
    """The score with the same music, in words that music21 knows. Raises ElementTree.ParseError."""
    root = ElementTree.fromstring(text)
    for element in root.iter():
        name = _name(element)
        if name == "syl" and element.get("wordpos") == "s":
            del element.attrib["wordpos"]
        if element.get("cue") == "true":
            losses["cue"] += name in ("note", "chord")
            element.tag = f"{{{SCHEMA}}}space"
        if name == "note" and (sounding := element.get("oct.ges")) is not None:
            element.set("oct", sounding)
        if name in ("staffDef", "scoreDef"):
            _describe(element)
        else:
            _without(element, LAYOUT)
    for group in root.iter(f"{{{SCHEMA}}}staffGrp"):
        if label := _label(group):
            for staff in group.iter(f"{{{SCHEMA}}}staffDef"):
                staff.attrib.setdefault("label", label)
    for score in root.iter(f"{{{SCHEMA}}}score"):
        whole = ElementTree.Element(f"{{{SCHEMA}}}section")
        for child in [*score]:
            if _name(child) in ("section", "ending"):
                score.remove(child)
                whole.extend(_measures(child))
        score.append(whole)
    _tie(root)
    return ElementTree.tostring(root, "unicode")


class Unread:
    """What music21 does not read of a score: its title, tempi and chord symbols, and on which staff a note is.

    `symbols` has the chord symbols, by the words that stand for them in music21's score.
    """

    def __init__(self, text: str, losses: Counter[str]) -> None:
        self._root = ElementTree.fromstring(text)
        self.symbols: dict[str, ChordSymbol] = {}
        self._words = dict[Element, str]()
        losses["dynamics"] += sum(len([*self._all(name)]) for name in ("dynam", "hairpin"))
        losses["words"] += len([*self._all("dir")])
        for harm in self._all("harm"):
            losses["symbols"] += 1
            if (symbol := symbol_named(printable("".join(harm.itertext())))) is not None:
                self._words[harm] = mark = f"{MARK}{len(self.symbols)}"
                self.symbols[mark] = symbol

    def put_on(self, score: Any) -> int:
        """Completes music21's score; 0, since no syllable is lost."""
        from music21 import expressions, metadata, tempo

        about = score.metadata or metadata.Metadata()
        names = [each for each in self._all("titleStmt") for each in each.iter() if (each.text or "").strip()]
        titles = [str(each.text) for each in names if _name(each) == "title" and each.get("type") != "subordinate"]
        composers = [str(each.text) for each in names if "composer" in (_name(each), each.get("role"))]
        about.title, about.composer = about.title or "".join(titles[:1]), about.composer or "".join(composers[:1])
        score.metadata = about
        self._to_their_staves(score)
        starts = {note.id: score.flatten().elementOffset(note) for note in score.flatten().notes}
        units = {each.offset: each.denominator for each in score.parts[0].flatten().getElementsByClass("TimeSignature")}
        measures = score.parts[0].getElementsByClass("Measure")
        for measure, read in zip(self._all("measure"), measures, strict=False):
            unit = units[max(at for at in units if at <= read.offset)] if units else 4
            for sign in measure:
                onset = read.offset + max(_number(sign.get("tstamp")) - 1, 0) * 4 / unit
                onset = starts.get((sign.get("startid") or "").removeprefix("#"), onset)
                if sign in self._words:
                    score.parts[0].insert(onset, expressions.TextExpression(self._words[sign]))
                if _name(sign) == "tempo" and (speed := _number(sign.get("midi.bpm"))) > 0:
                    score.parts[0].insert(onset, tempo.MetronomeMark(number=speed))
        return 0

    def _all(self, name: str) -> Iterator[Element]:
        return self._root.iter(f"{{{SCHEMA}}}{name}")

    def _to_their_staves(self, score: Any) -> None:
        numbers = dict.fromkeys(staff.get("n") for staff in self._all("staffDef"))
        parts, other = dict(zip(numbers, score.parts, strict=False)), {}
        for staff in self._all("staff"):
            for element in staff.iter():
                if element.get("staff", staff.get("n")) in parts.keys() - {staff.get("n")}:
                    other[element.get(ID)] = parts[element.get("staff")]
        for part in score.parts:
            flat = part.flatten()
            for note in [*flat.notes]:
                if note.id in other:
                    part.remove(note, recurse=True)
                    other[note.id].insert(flat.elementOffset(note), note)


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _without(element: Element, names: set[str]) -> None:
    for child in [*element]:
        if _name(child) in names:
            element.remove(child)


def _label(element: Element) -> str:
    label = element.find(f"{{{SCHEMA}}}label")
    return "" if label is None else printable(" ".join(label.itertext()))


def _describe(staff: Element) -> None:
    """Key, meter and name of a staff as attributes."""
    for child in [*staff]:
        for old, new in ATTRIBUTES.get(_name(child), {}).items():
            if (value := child.get(old)) is not None:
                staff.set(new, value)
    _without(staff, {*ATTRIBUTES})
    if name := _label(staff):
        staff.attrib.setdefault("label", name)


def _measures(section: Element) -> Iterator[Element]:
    """Measures and what changes between them, without sections and endings around them."""
    for child in section:
        if _name(child) in ("section", "ending"):
            yield from _measures(child)
        else:
            yield child


def _tie(root: Element) -> None:
    """Ties as attributes of the notes."""
    notes = {note.get(ID): note for note in root.iter(f"{{{SCHEMA}}}note")}
    for tie in [*root.iter(f"{{{SCHEMA}}}tie")]:
        for place, sign in (("startid", "i"), ("endid", "t")):
            note = notes.get((tie.get(place) or "").removeprefix("#"))
            if note is not None:
                note.set("tie", "m" if note.get("tie", sign) != sign else sign)


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
