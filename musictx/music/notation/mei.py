"""MEI as notation programs write it, for music21, which reads attributes where these write elements."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from musictx.music.notation.chord_symbols import ChordSymbol, symbol_named
from musictx.music.notation.lyrics import printable
from musictx.music.notation.mei_bars import measures_of, repeated
from musictx.music.notation.mei_clefs import CHANGED, mark_clefs, put_clefs
from musictx.music.notation.mei_editorial import settle
from musictx.music.notation.mei_xml import ID, LAYOUT, SCHEMA, Element, name_of, number_of, text_of
from musictx.music.notation.musicxml import MARK
from musictx.music.notation.parts import MODES

ATTRIBUTES = {
    "keySig": {"sig": "key.sig"},
    "meterSig": {"count": "meter.count", "unit": "meter.unit", "sym": "meter.sym"},
}
NAME, ABBREVIATION, SOUND, BRACE = "name", "abbreviation", "sound", "brace"  # of a staff, for `Unread` alone
MARKS = {  # elements that music21 skips, by losses
    **dict.fromkeys(("dynam", "hairpin"), "dynamics"),
    **dict.fromkeys(("dir", "reh"), "words"),
    **dict.fromkeys(("fermata", "fing", "breath", "caesura"), "articulations"),
    **dict.fromkeys(("trill", "mordent", "turn", "ornam", "arpeg", "gliss"), "ornaments"),
    **dict.fromkeys(("octave", "pedal", "line", "bracketSpan"), "spans"),
    "fb": "figures",
}
BRACKETS = {"bracket", "bracketsq", "line"}
LINES = {"dashed", "dotted", "dbl", "end", "invis", "single", "rptstart", "rptend", "rptboth"}  # that music21 knows
ACCIDENTALS = {"1qf": "fu", "3qf": "fd", "1qs": "sd", "3qs": "su"}  # music21 knows those with arrows
WHOLE = {"meter.count", "trans.semi", "trans.diat", "oct", "oct.ges"}  # numbers that may have a decimal point
SIGNS = {"common": ("4", "4"), "cut": ("2", "2")}
SIGNATURE = re.compile(r"0|\d{1,2}[sf]")
HALVES = {"long": "breve", "breve": "1"}  # lengths without a number


def for_music21(text: str, losses: Counter[str]) -> str:
    """The score with the same music, in words that music21 knows. Raises ElementTree.ParseError."""
    root = ElementTree.fromstring(text)
    for parent in reversed([*root.iter()]):
        parent[:] = [child for child in parent if name_of(child) != "score" or len(child)]
    losses["movements"] += max(sum(name_of(each) == "score" for each in root.iter()) - 1, 0)
    settle(root)
    losses["clefs"] += mark_clefs(root)
    for element in root.iter():
        _spell(element, losses)
        if name_of(element) == "syl":  # its sign after a word would become part of it
            element.attrib.pop("con", None)
            element.text, element[:] = text_of(element), []
            if element.get("wordpos") == "s":
                del element.attrib["wordpos"]
        if name_of(element) == "note" and (sounding := element.get("oct.ges")) is not None:
            element.set("oct", sounding)
        if name_of(element) in ("staffDef", "scoreDef"):
            _describe(element)
        if name_of(element) == "layer":
            element[:] = [*_played(element, False, losses)]
    for group in reversed([*root.iter(f"{{{SCHEMA}}}staffGrp")]):
        for kind, label in _labels(group):
            for staff in group.iter(f"{{{SCHEMA}}}staffDef"):
                staff.attrib.setdefault(kind, label)
    _brace(root)
    for score in root.iter(f"{{{SCHEMA}}}score"):
        whole, kept = ElementTree.Element(f"{{{SCHEMA}}}section"), list[Element]()
        for define in score.iter(f"{{{SCHEMA}}}scoreDef"):  # music21 fills bars of rest by its meter alone
            for staff in define.iter(f"{{{SCHEMA}}}staffDef"):
                for name in ("meter.count", "meter.unit"):
                    if (value := staff.get(name)) is not None:
                        define.attrib.setdefault(name, value)
        for child in score:
            is_music = name_of(child) in ("section", "ending")
            if is_music or len(whole):
                whole.extend(measures_of(child) if is_music else [child])
            elif name_of(child) not in LAYOUT:
                kept.append(child)
        whole[:] = [*repeated(whole, kept, losses)]
        score[:] = [*kept, whole]
    _tie(root)
    return ElementTree.tostring(root, "unicode")


def _spell(element: Element, losses: Counter[str]) -> None:
    """Valid attributes without values that stop music21; those of articulations are counted."""
    losses["articulations"] += len(element.attrib.pop("artic", "").split())
    for child in [child for child in element if name_of(child) == "artic"]:
        losses["articulations"] += len(child.get("artic", "").split())
        element.remove(child)
    if name_of(element) == "measure":
        for side in ("left", "right"):
            if element.get(side, "single") not in LINES:
                element.set(side, "dbl")
        if not element.get("n", "").isdecimal():  # 1a, X1
            element.attrib.pop("n", None)
    for name in ("accid", "accid.ges"):
        if (value := element.get(name)) is not None:
            element.set(name, ACCIDENTALS.get(value, value))
    for name in WHOLE.intersection(element.attrib):
        element.set(name, re.sub(r"\.0+$", "", element.attrib[name]))
    if element.get("key.mode") not in MODES:
        element.attrib.pop("key.mode", None)
    if "key.sig" in element.attrib and not SIGNATURE.fullmatch(element.attrib["key.sig"]):  # mixed
        del element.attrib["key.sig"]


class Unread:
    """What music21 does not read of a score: its title, tempi and chord symbols, and on which staff a note is.

    `symbols` has the chord symbols, by the words that stand for them in music21's score.
    """

    def __init__(self, text: str, losses: Counter[str]) -> None:
        self._root = ElementTree.fromstring(text)
        self._score = next(self._root.iterfind(f".//{{{SCHEMA}}}music//{{{SCHEMA}}}score"), self._root)
        self.symbols: dict[str, ChordSymbol] = {}
        self._words = dict[Element, str]()
        for element in self._score.iter():
            losses["brackets"] += element.get("symbol") in BRACKETS
            if (kind := MARKS.get(name_of(element))) and element.get("dir") != "up":  # a pedal's end is no other one
                losses[kind] += 1
        for harm in self._all("harm"):
            if harm.find(f"{{{SCHEMA}}}fb") is not None:
                continue
            losses["symbols"] += 1
            if (symbol := symbol_named(text_of(harm))) is not None:
                self._words[harm] = mark = f"{MARK}{len(self.symbols)}"
                self.symbols[mark] = symbol

    def put_on(self, score: Any, losses: Counter[str]) -> None:
        """Completes music21's score."""
        from music21 import expressions, instrument, metadata

        about = score.metadata or metadata.Metadata()
        names = [each for each in self._root.iter(f"{{{SCHEMA}}}titleStmt") for each in each.iter()]
        titles = [text_of(each) for each in names if name_of(each) == "title" and each.get("type") != "subordinate"]
        about.title = about.title or "".join(titles[:1])
        for role in ("composer", "lyricist", "arranger"):
            people = [text_of(each) for each in names if role in (name_of(each), each.get("role"))]
            setattr(about, role, getattr(about, role) or "".join(people[:1]) or None)
        score.metadata = about
        staves = {staff.get("n"): staff for staff in reversed([*self._all("staffDef")])}
        for staff, part in zip(reversed(staves.values()), score.parts, strict=False):
            part.partName = staff.get(NAME) or part.partName
            part.groups.extend([staff.attrib[BRACE]] if BRACE in staff.attrib else [])
            part.partAbbreviation = staff.get(ABBREVIATION)
            if (number := staff.get(SOUND, "")).isdecimal() and int(number) < 128:
                sound = instrument.Instrument()
                sound.midiProgram = int(number)
                part.insert(0, sound)
        self._to_their_staves(score)
        starts = dict[str, Any]()
        flat = score.flatten()
        for element in flat.notesAndRests:
            starts |= {each.id: flat.elementOffset(element) for each in (element, *getattr(element, "notes", ()))}
        first, numbers = score.parts[0], [*dict.fromkeys(staff.get("n") for staff in self._all("staffDef"))]
        parts = dict(zip(numbers, score.parts, strict=False))
        put_clefs(self._all("staff"), parts, starts)
        units = {each.offset: each.denominator for each in first.flatten().getElementsByClass("TimeSignature")}
        for measure, read in zip(self._all("measure"), first.getElementsByClass("Measure"), strict=False):
            unit = ([4] + [unit for at, unit in sorted(units.items()) if at <= read.offset])[-1]
            for sign in measure:
                onset = read.offset + max(number_of(sign.get("tstamp")) - 1, 0) * 4 / unit
                onset = starts.get((sign.get("startid") or "").removeprefix("#"), onset)
                if sign in self._words:
                    over = parts.get((sign.get("staff") or "").split(" ")[0], first)
                    over.insert(onset, expressions.TextExpression(self._words[sign]))
                if name_of(sign) == "tempo" and _speed(sign) > 0:
                    first.insert(onset, _mark(sign))
                elif name_of(sign) == "tempo":
                    losses["wordy"] += 1
        if _speed(define := next(self._all("scoreDef"), self._score)) > 0:
            first.insert(0, _mark(define))
        if not any("key.mode" in each.attrib for each in self._score.iter()):
            for signature in flat.getElementsByClass("Key"):
                signature.mode = ""  # music21 says major

    def _all(self, name: str) -> Iterator[Element]:
        return self._score.iter(f"{{{SCHEMA}}}{name}")

    def _to_their_staves(self, score: Any) -> None:
        numbers = dict.fromkeys(staff.get("n") for staff in self._all("staffDef"))
        parts, other = dict(zip(numbers, score.parts, strict=False)), {}
        for staff in self._all("staff"):
            for element in staff.iter():
                if element.get("staff", staff.get("n")) in parts.keys() - {staff.get("n")}:
                    other[element.get(ID)] = parts[element.get("staff")]
        for part in score.parts:
            flat = part.flatten()
            moved = [(note, flat.elementOffset(note)) for note in flat.notes if note.id in other]
            for stream in [part, *part.recurse().getElementsByClass("Stream")] if moved else ():
                stream.remove([note for note in stream.notes if note.id in other])
            for note, onset in moved:
                other[note.id].insert(onset, note)


def _played(parent: Element, is_cue: bool, losses: Counter[str]) -> Iterator[Element]:
    """The notes and rests of a layer, without beams, tuplets and tremolos around them; those of cues are silent."""
    for child in parent:
        name, cue = name_of(child), is_cue or child.get("cue") == "true"
        losses["ornaments"] += name in ("bTrem", "fTrem")
        if name in ("beam", "bTrem", "fTrem", "graceGrp", "tuplet"):
            inside = [*_played(child, cue, losses)]
            for each in inside if name == "tuplet" else ():  # music21 has no other way without beams
                for old, new in (("num", "m21TupletNum"), ("numbase", "m21TupletNumbase")):
                    each.set(new, str(int(child.get(old, 1)) * int(each.get(new, 1))))
            for each in inside if name == "fTrem" and len(inside) == 2 else ():  # each says the length of both
                dur = each.get("dur", "4")
                each.set("dur", HALVES.get(dur) or str(2 * int(dur)))
            yield from inside
        elif (cue or child.get("visible") == "false") and name in ("note", "chord"):
            losses["cue" if cue else "hidden"] += 1
            if child.get("grace") is None:
                length = {str(key): child.attrib[key] for key in ("dur", "dots", CHANGED, ID) if key in child.attrib}
                dots = sum(name_of(each) == "dot" for each in child)
                yield Element(f"{{{SCHEMA}}}space", length | ({"dots": str(dots)} if dots else {}))
        elif name not in LAYOUT:
            yield child


def _labels(element: Element) -> Iterator[tuple[str, str]]:
    """The name and the abbreviation that a staff or a group of staves has."""
    for kind, attribute, name in ((NAME, "label", "label"), (ABBREVIATION, "label.abbr", "labelAbbr")):
        child = element.find(f"{{{SCHEMA}}}{name}")
        label = element.attrib.pop(attribute, "") or ("" if child is None else " ".join(child.itertext()))
        if label:
            yield kind, printable(label)


def _describe(staff: Element) -> None:
    """Key, meter and name of a staff as attributes."""
    for child in [*staff]:
        for old, new in ATTRIBUTES.get(name_of(child), {}).items():
            value = child.get(old)
            if value is not None and (name_of(child) != "keySig" or SIGNATURE.fullmatch(value)):
                staff.set(new, value)
    staff[:] = [child for child in staff if name_of(child) not in ATTRIBUTES]
    if SIGNATURE.fullmatch(signed := staff.get("keysig", "")):  # of MEI 5
        staff.attrib.setdefault("key.sig", signed)
    if (sign := SIGNS.get(staff.get("meter.sym", ""))) and staff.get("meter.count") is None:
        staff.attrib |= dict(zip(("meter.count", "meter.unit"), sign, strict=True))
    semitones = round(number_of(staff.get("trans.semi")))
    for attribute in ("trans.semi", "trans.diat"):
        steps = staff.attrib.pop(attribute, "")
    if semitones:  # music21 knows none of 0
        is_said = re.fullmatch(r"[+-]?\d+", steps) and int(steps)
        staff.attrib |= {
            "trans.semi": str(semitones),
            "trans.diat": steps if is_said else str(round(semitones * 7 / 12)),
        }
    # by the name or the sound of a clarinet music21 would transpose its notes
    staff.attrib.update(_labels(staff))
    for sound in staff.findall(f"{{{SCHEMA}}}instrDef"):
        staff.set(SOUND, sound.get("midi.instrnum", ""))
        staff.remove(sound)


def _brace(root: Element) -> None:
    """The same sign for the staves of a brace whose names do not differ: one instrument."""
    for n, group in enumerate(root.iter(f"{{{SCHEMA}}}staffGrp")):
        symbols = {each.get("symbol") for each in (group, *group.findall(f"{{{SCHEMA}}}grpSym"))}
        staves = group.findall(f"{{{SCHEMA}}}staffDef")
        if "brace" in symbols and len({staff.get(NAME) for staff in staves} - {None}) <= 1 < len(staves):
            for staff in staves:
                staff.set(BRACE, str(n))


def _tie(root: Element) -> None:
    """Ties as attributes of the notes."""
    notes = {note.get(ID): note for note in root.iter(f"{{{SCHEMA}}}note")}
    for tie in [*root.iter(f"{{{SCHEMA}}}tie")]:
        for place, sign in (("startid", "i"), ("endid", "t")):
            note = notes.get((tie.get(place) or "").removeprefix("#"))
            if note is not None:
                note.set("tie", "m" if note.get("tie", sign) != sign else sign)


def _speed(sign: Element) -> float:
    """Quarters a minute; 0 where it says none."""
    return number_of(sign.get("midi.bpm")) or number_of(sign.get("mm")) * _beat(sign)


def _beat(sign: Element) -> float:
    """The quarters of the note that a mark names."""
    dots = min(max(number_of(sign.get("mm.dots")), 0.0), 4.0)
    return float(4 / (number_of(sign.get("mm.unit")) or 4) * (2 - 0.5**dots))


def _mark(sign: Element) -> Any:
    """A metronome mark, or a tempo that is heard and not printed."""
    from music21 import duration, tempo

    speed = _speed(sign)
    if not number_of(sign.get("mm")):
        return tempo.MetronomeMark(numberSounding=speed)
    return tempo.MetronomeMark(number=speed / _beat(sign), referent=duration.Duration(_beat(sign)))
