"""Chord symbols over a score, as Bbm7 or C/E: their names, their notes, and their elements of MusicXML."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from musictx.music.harmony import FIFTHS, Classes, pitch_class

NO_CHORD = "none"  # MusicXML's kind for N.C.
OTHER = "other"  # … and for all that it has no kind for
NO_CHORD_NAMES = ("N.C.", "NC", "n.c.", "No Chord")
# MusicXML's kinds: their degrees, counted on the scale of a dominant, and how people write them, the usual way first
KINDS = {
    "major": ("1 3 5", "", "maj", "M"),
    "minor": ("1 b3 5", "m", "min", "mi", "-"),
    "augmented": ("1 3 #5", "aug", "+"),
    "diminished": ("1 b3 b5", "dim", "o", "°"),
    "dominant": ("1 3 5 7", "7", "dom7"),
    "major-seventh": ("1 3 5 #7", "maj7", "M7", "Maj7", "ma7", "Δ", "Δ7", "^7"),
    "minor-seventh": ("1 b3 5 7", "m7", "min7", "mi7", "-7"),
    "diminished-seventh": ("1 b3 b5 b7", "dim7", "o7", "°7"),
    "augmented-seventh": ("1 3 #5 7", "aug7", "+7", "7+"),
    "half-diminished": ("1 b3 b5 7", "m7b5", "min7b5", "-7b5", "m7(b5)", "ø", "ø7"),
    "major-minor": ("1 b3 5 #7", "m(maj7)", "mM7", "mmaj7", "-maj7", "mMaj7"),
    "major-sixth": ("1 3 5 6", "6", "maj6"),
    "minor-sixth": ("1 b3 5 6", "m6", "min6", "-6"),
    "dominant-ninth": ("1 3 5 7 9", "9"),
    "major-ninth": ("1 3 5 #7 9", "maj9", "M9"),
    "minor-ninth": ("1 b3 5 7 9", "m9", "min9", "-9"),
    "dominant-11th": ("1 3 5 7 9 11", "11"),
    "major-11th": ("1 3 5 #7 9 11", "maj11", "M11"),
    "minor-11th": ("1 b3 5 7 9 11", "m11", "min11", "-11"),
    "dominant-13th": ("1 3 5 7 9 11 13", "13"),
    "major-13th": ("1 3 5 #7 9 11 13", "maj13", "M13"),
    "minor-13th": ("1 b3 5 7 9 11 13", "m13", "min13", "-13"),
    "suspended-second": ("1 2 5", "sus2"),
    "suspended-fourth": ("1 4 5", "sus4", "sus"),
    "power": ("1 5", "5"),
}
KIND_OF = {name: kind for kind, (_, *names) in KINDS.items() for name in names}
STEPS = (0, 2, 4, 5, 7, 9, 10)  # of the scale of a dominant
NINTHS = (9, 11, 13)
SIGNS = {"": 0, "b": -1, "#": 1}
ROOT = r"[A-G](?:##?|bb?|)"
PIECE = r"maj|min|ma|mi|m|M|dim|dom|aug|sus|add|omit|no|alt|[o°øΔ+^#b(),/\d-]"  # of a kind; Fine is no chord
NAME = re.compile(rf"({ROOT})((?:{PIECE})*?)(?:/({ROOT}))?")
SPELLED = re.compile(r"(?i)maj|min|dim|dom|aug|sus|add|omit|alt")
CHANGES = re.compile(r"(?:[/,]?\(?(?:add|no|omit|sus)?[b#]?\d{1,2}\)?)+")
CHANGE = re.compile(r"(add|no|omit|sus|)([b#]?)(\d{1,2})")
NUMBER = re.compile(r"[+-]?\d{1,2}(?:\.\d*)?")


class ChordSymbol(NamedTuple):
    """Its onset in units as of notes, a root, and a bass if that is another note. `text` is the kind as it is printed,
    if somebody said how; `degrees` are value, alteration, and add, alter or subtract. Without a root it says N.C."""

    onset: int
    root: str
    kind: str
    text: str = ""
    bass: str = ""
    degrees: tuple[tuple[int, int, str], ...] = ()
    staff: int = 0  # over which it is, from the top

    def prints(self, value: int) -> bool:
        """Whether its text says this degree already; a ninth, as of 9sus, says the seventh too."""
        said = {int(number) for number in re.findall(r"\d{1,2}", self.text)}
        return value in said or (value == 7 and not said.isdisjoint(NINTHS))

    @property
    def classes(self) -> Classes | None:
        """Its pitch classes; None of no chord, and of a kind that is not known, nor printed in a known way."""
        if self.kind not in KINDS:
            printed = symbol_named(self.root + self.text) if self.root and self.text else None
            return printed.classes if printed and printed.kind in KINDS else None
        notes = {int(each.lstrip("b#")): SIGNS[each.rstrip("0123456789")] for each in KINDS[self.kind][0].split()}
        for value, alter, how in self.degrees:
            notes[value] = alter
            if how == "subtract":
                notes.pop(value)
        root = pitch_class(self.root[0], self.root[1:])
        return frozenset((root + STEPS[(value - 1) % 7] + alter) % 12 for value, alter in notes.items())


def unknown(symbols: Iterable[ChordSymbol]) -> list[str]:
    """The names of chords of a kind that is not known, as they are printed."""
    found = (each for each in symbols if each.kind != NO_CHORD and each.classes is None)
    return [f"{each.root}{each.text or each.kind}" + f"/{each.bass}" * bool(each.bass) for each in found]


def symbol_named(name: str) -> ChordSymbol | None:
    """The symbol of a name, as lead sheets write it; None of words that are no chord."""
    name = name.strip().replace("♭", "b").replace("♯", "#").replace("∆", "Δ")
    if name in NO_CHORD_NAMES:
        return ChordSymbol(0, "", NO_CHORD, name)
    small = SPELLED.sub(lambda word: word[0].lower(), name)  # Maj7, MIN7
    words = NAME.fullmatch(small)
    if words is None:
        return None
    root, plain, bass = words[1], words[2], words[3] or ""
    text = name[words.start(2) : words.end(2)]
    for size in range(len(plain), -1, -1):
        kind, changes = KIND_OF.get(plain[:size]), plain[size:]
        if kind and (not changes or CHANGES.fullmatch(changes)):
            degrees = [degree for change in CHANGE.findall(changes) for degree in _degrees(*change)]
            return ChordSymbol(0, root, kind, text, bass, tuple(degrees))
    return ChordSymbol(0, root, OTHER, text, bass)


def _degrees(how: str, sign: str, value: str) -> Iterator[tuple[int, int, str]]:
    """A sus4 replaces the third; b5 is another fifth, b9 one more note."""
    if how == "sus":
        yield 3, 0, "subtract"
    way = "subtract" if how in ("no", "omit") else "alter" if not how and int(value) == 5 else "add"
    yield int(value), SIGNS[sign], way


def symbol_of(harmony: Element, fifths: int = 0) -> ChordSymbol | None:
    """The symbol of an element, so many fifths higher; None of one that has no root, as a function's."""
    kind = harmony.find("kind")
    name = _text(kind, ".") or OTHER
    text = "" if kind is None else kind.get("text", "")
    if name == NO_CHORD:
        return ChordSymbol(0, "", NO_CHORD, text)
    root, bass = (_note(harmony.find(each), each, fifths) for each in ("root", "bass"))
    if not root:
        return None
    degrees = tuple(
        (value, _number(each, "degree-alter"), _text(each, "degree-type"))
        for each in harmony.findall("degree")
        if (value := _number(each, "degree-value"))
    )
    return ChordSymbol(0, root, name, text, bass, degrees)


def _text(element: Element | None, path: str) -> str:
    found = None if element is None else element.find(path)
    return "" if found is None else (found.text or "").strip()


def _number(element: Element | None, path: str) -> int:
    """0 where no number stands."""
    text = _text(element, path)
    return round(float(text)) if NUMBER.fullmatch(text) else 0


def _note(element: Element | None, name: str, fifths: int) -> str:
    """A root or bass as F# or Bb."""
    step = _text(element, f"{name}-step")
    if len(step) != 1 or step not in FIFTHS:
        return ""
    return _spelled(FIFTHS.index(step) + 7 * _number(element, f"{name}-alter") + fifths)


def _spelled(place: int) -> str:
    """The note at a place on the line of fifths, from `FIFTHS` on."""
    alter = place // 7
    return FIFTHS[place % 7] + ("#" * alter if alter > 0 else "b" * -alter)


def moved(symbol: ChordSymbol, fifths: int) -> ChordSymbol:
    """The symbol so many fifths higher, as in a part for a transposing instrument."""
    root, bass = (note and _spelled(_place(note) + fifths) for note in (symbol.root, symbol.bass))
    return symbol._replace(root=root, bass=bass)


def higher(symbol: ChordSymbol, semitones: int) -> ChordSymbol:
    """The symbol so many semitones higher, its root with at most one sign."""
    fifths = 7 * semitones - 12 * round(7 * semitones / 12)
    at = _place(symbol.root or "C") + fifths
    return moved(symbol, fifths - 12 * (at > 11) + 12 * (at < -6))


def over(symbols: Iterable[ChordSymbol], staves: Mapping[int, int]) -> tuple[ChordSymbol, ...]:
    """The symbols over the new number of each staff; those of one that is gone over the highest."""
    return tuple(each._replace(staff=staves.get(each.staff, 0)) for each in symbols)


def _place(note: str) -> int:
    return FIFTHS.index(note[0]) + 7 * _alter(note)


def _alter(note: str) -> int:
    return note.count("#") - note[1:].count("b")


def element_of(symbol: ChordSymbol) -> Element:
    """The element of a symbol, without its place."""
    harmony = Element("harmony")
    _add_note(harmony, "root", symbol.root or "C")
    if not symbol.root:  # the format wants one of N.C. too, and programs print it so
        harmony[0][0].set("text", "")
    SubElement(harmony, "kind", {"text": symbol.text} if symbol.text else {}).text = symbol.kind
    if symbol.bass:
        _add_note(harmony, "bass", symbol.bass)
    for value, alter, how in symbol.degrees:
        degree = SubElement(harmony, "degree", {"print-object": "no"} if symbol.prints(value) else {})
        for name, said in (("value", value), ("alter", alter), ("type", how)):
            SubElement(degree, f"degree-{name}").text = str(said)
    return harmony


def _add_note(harmony: Element, name: str, note: str) -> None:
    element = SubElement(harmony, name)
    SubElement(element, f"{name}-step").text = note[0]
    if alter := _alter(note):
        SubElement(element, f"{name}-alter").text = str(alter)
