"""MusicXML in the form that music21 reads: ordered by parts, cue notes as rests, chord symbols as words, and back."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from musictx.music.notation.chord_symbols import ChordSymbol, element_of, symbol_of
from musictx.music.notation.notation import Losses

Element = ElementTree.Element
MARK = "\ue000"  # begins words that stand for a chord symbol: music21 spells the bass anew, and refuses some kinds
MARKED = re.compile(
    rf"<direction\b[^>]*>((?:(?!</direction>).)*?)<words\b[^>]*>{MARK}(\d+)</words>(.*?)</direction>", re.DOTALL
)
TEMPO = re.compile(r"(<per-minute\b[^>]*>)[^<\d]*(\d+(?:\.\d+)?)[^<]*<")  # ca. 60, which music21 takes for words
EXTENDER = re.compile(r"</text>\s*<extend\b")  # figures of a bass have some too
PLACE = re.compile(r"<offset\b.*?</offset>|<staff>.*?</staff>", re.DOTALL)


def for_music21(text: str, losses: Losses) -> tuple[str, dict[str, ChordSymbol]]:
    """The text of a score, its tempi as numbers alone, and the chord symbols that words in it stand for.

    Counts signs that music21 skips, cue notes, which another part plays, and each symbol until it is found. Raises
    ParseError for text that is no XML."""
    text = TEMPO.sub(r"\1\2<", text)
    losses["figures"] += text.count("<figured-bass")
    losses["extenders"] += len(EXTENDER.findall(text))
    if not any(tag in text for tag in ("<cue", "<score-timewise", "<harmony")):
        return text, {}
    score = ElementTree.fromstring(text)  # entities are refused before
    for parent in [*score.iter()]:
        for note in parent.findall("note"):
            if note.find("cue") is not None:
                losses["cue"] += note.find("rest") is None
                _silence(note, parent)
    if score.tag == "score-timewise":
        _by_parts(score)
    symbols: dict[str, ChordSymbol] = {}
    for part in score.findall("part"):
        _mark(part, symbols, losses)
    return ElementTree.tostring(score, encoding="unicode"), symbols


def _silence(note: Element, parent: Element) -> None:
    if note.find("chord") is not None or note.find("grace") is not None:  # they take no time of their own
        parent.remove(note)
        return
    for child in [*note]:
        if child.tag in ("cue", "pitch", "unpitched", "rest", "tie", "notations", "lyric"):
            note.remove(child)
    note.insert(0, Element("rest"))


def _by_parts(score: Element) -> None:
    """Measures of parts, in place of parts of measures."""
    score.tag = "score-partwise"
    parts: dict[str, Element] = {}
    for measure in score.findall("measure"):
        score.remove(measure)
        for part in measure.findall("part"):
            name = part.get("id", "")
            mine = parts.setdefault(name, Element("part", {"id": name}))
            part.tag, part.attrib = "measure", dict(measure.attrib)
            mine.append(part)
    score.extend(parts.values())


def _mark(part: Element, symbols: dict[str, ChordSymbol], losses: Losses) -> None:
    """Words in the places of chord symbols, and these as they sound."""
    fifths = 0
    for element in part.iterfind("measure/*"):
        if (transpose := element.find("transpose")) is not None:
            fifths = _fifths(transpose)
        if element.tag == "harmony":
            symbol, place = symbol_of(element, fifths), [*element.findall("offset"), *element.findall("staff")]
            element.clear()
            element.tag = "direction"
            losses["symbols"] += 1
            if symbol is not None:
                mark = f"{MARK}{len(symbols)}"
                symbols[mark] = symbol
                ElementTree.SubElement(ElementTree.SubElement(element, "direction-type"), "words").text = mark
                element.extend(place)


TRANSPOSES = re.compile(r"<transpose[\s>]")


def transpositions(text: str, staves: Sequence[str]) -> list[int]:
    """How many semitones above its written notes each staff sounds, as its part says at its beginning; `staves` are
    music21's names of them."""
    found = [0] * len(staves)
    n = 0
    for part in ElementTree.fromstring(text).iterfind("part") if TRANSPOSES.search(text) else ():
        count = max(sum(name.startswith(f"{part.get('id')}-Staff") for name in staves), 1)
        if (transpose := part.find("measure[1]/attributes/transpose")) is not None:
            octaves = round(float(transpose.findtext("octave-change") or 0))
            found[n : n + count] = [round(float(transpose.findtext("chromatic") or 0)) + 12 * octaves] * count
        n += count
    return found[: len(staves)]


def _fifths(transpose: Element) -> int:
    """How many fifths higher the notes of an instrument are than they are written."""
    semitones = round(float(transpose.findtext("chromatic") or 0))
    steps = transpose.findtext("diatonic")
    return fifths_of(semitones, int(steps) if steps else None)


def fifths_of(semitones: int, steps: int | None = None) -> int:
    """The same of so many semitones, and of steps of the staff."""
    return 7 * semitones - 12 * (round(semitones * 7 / 12) if steps is None else steps)


def with_symbols(text: bytes, symbols: tuple[ChordSymbol, ...]) -> bytes:
    """A score of music21 with chord symbols in the places of the words that stand for them."""

    def symbol(match: re.Match[str]) -> str:
        harmony = ElementTree.tostring(element_of(symbols[int(match[2])]), encoding="unicode")
        return harmony.replace("</harmony>", "".join(PLACE.findall(match[3])) + "</harmony>")

    return MARKED.sub(symbol, text.decode()).encode() if symbols else text
