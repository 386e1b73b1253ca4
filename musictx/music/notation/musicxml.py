"""MusicXML in the form that music21 reads: ordered by parts, cue notes as rests, full bars, chord symbols as words."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple
from xml.etree import ElementTree

from musictx.music.notation.chord_symbols import ChordSymbol, element_of, symbol_of
from musictx.music.notation.notation import Losses

Element = ElementTree.Element
MARK = "\ue000"  # begins words that stand for a chord symbol: music21 spells the bass anew, and refuses some kinds
AT_RANDOM = re.compile(rb'(<(?:score-|midi-)?(?:part|instrument|device)\b[^<>]* id=")([PI][0-9a-f]{32})(?=")')
MARKED = re.compile(
    rf"<direction\b[^>]*>((?:(?!</direction>).)*?)<words\b[^>]*>{MARK}(\d+)</words>(.*?)</direction>", re.DOTALL
)
TEMPO = re.compile(r"(<per-minute\b[^>]*>)[^<\d]*(\d+(?:\.\d+)?)[^<]*<")  # ca. 60, which music21 takes for words
# as of a metric modulation: its number is that of the sound beside it
UNNUMBERED = re.compile(
    r"<metronome\b(?:(?!</metronome>|<per-minute\b[^>]*>\s*\d).){0,2000}</metronome>"
    r"(?=(?:(?!</direction>).){0,2000}<sound\b[^>]*\btempo=)",
    re.DOTALL,
)
EXTENDER = re.compile(r"</text>\s*<extend\b")  # figures of a bass have some too
PLACE = re.compile(r"<offset\b.*?</offset>|<staff>.*?</staff>", re.DOTALL)
TRANSPOSES = re.compile(r"<transpose[\s>]")


class Transposition(NamedTuple):
    """How much higher notes sound than they are written."""

    semitones: int
    steps: int  # of the staff

    @classmethod
    def usual(cls, semitones: int) -> "Transposition":
        return cls(semitones, round(semitones * 7 / 12))

    @classmethod
    def of(cls, element: Element) -> "Transposition":
        semitones, steps, octaves = (
            round(float(element.findtext(name) or 0)) for name in ("chromatic", "diatonic", "octave-change")
        )
        said = cls(semitones, steps)
        found = said if abs(said.fifths) <= 7 else cls.usual(semitones)  # some programs give semitones alone
        return cls(found.semitones + 12 * octaves, found.steps + 7 * octaves)

    @property
    def fifths(self) -> int:
        """Sharps that a signature has more."""
        return 7 * self.semitones - 12 * self.steps


def for_music21(text: str, losses: Losses) -> tuple[str, dict[str, ChordSymbol]]:
    """The text of a score, its tempi as numbers alone, and the chord symbols that words in it stand for.

    Counts signs and sounds that music21 skips, cue notes, which another part plays, and each symbol until it is found.
    Raises ParseError for text that is no XML."""
    text = UNNUMBERED.sub("<words/>", TEMPO.sub(r"\1\2<", text))
    losses["figures"] += text.count("<figured-bass")
    losses["extenders"] += len(EXTENDER.findall(text))
    if not any(tag in text for tag in ("<cue", "<score-timewise", "<harmony", "<forward", "<instrument ")):
        return text, {}
    score = ElementTree.fromstring(text)  # entities are refused before
    for parent in [*score.iter()]:
        for note in parent.findall("note"):
            if note.find("cue") is not None:
                losses["cue"] += note.find("rest") is None
                _silence(note, parent)
    if score.tag == "score-timewise":
        by_parts(score)
    losses["sounds"] += _other_sounds(score)
    symbols: dict[str, ChordSymbol] = {}
    for part in score.findall("part"):
        _mark(part, symbols, losses)
        for bar in part.findall("measure"):
            _fill(bar)
    return ElementTree.tostring(score, encoding="unicode"), symbols


def _other_sounds(score: Element) -> int:
    """The sounds that notes name beside the first one of their part, which alone is read."""
    others = 0
    for about in score.iterfind("part-list/score-part"):
        sounds = {each.get("id"): each.findtext("midi-program") for each in about.iterfind("midi-instrument")}
        mine = (part for part in score.iterfind("part") if len(sounds) > 1 and part.get("id") == about.get("id"))
        notes = [note for part in mine for note in part.iterfind("measure/note") if note.find("pitch") is not None]
        named = {sounds.get(each.get("id")) for note in notes for each in note.iterfind("instrument")}
        others += len(named - {None, next(iter(sounds.values()), None)})
    return others


def _silence(note: Element, parent: Element) -> None:
    if note.find("chord") is not None or note.find("grace") is not None:  # they take no time of their own
        parent.remove(note)
        return
    for child in [*note]:
        if child.tag in ("cue", "pitch", "unpitched", "rest", "tie", "notations", "lyric"):
            note.remove(child)
    note.insert(0, Element("rest"))


def _fill(bar: Element) -> None:
    """A rest in place of the `forward` that ends a bar, behind all notes: music21 would end the bar before it."""
    end = Fraction(0)
    longest: tuple[Fraction, Element] | None = None
    for _, until, each in timed(bar, Fraction(1)):
        if each.tag == "forward" and (longest is None or until > longest[0]):
            longest = until, each
        end = max(end, until) if each.tag == "note" else end
    if longest is not None and longest[0] > end:
        rest = longest[1]
        rest.tag = "note"
        rest.set("print-object", "no")
        rest.insert(0, Element("rest"))


def timed(bar: Element, divisions: Fraction) -> Iterator[tuple[Fraction, Fraction, Element]]:
    """Each element of a bar, in quarters from when to when: what takes no time ends where it begins, a `backup` before.
    Lengths count `divisions` of a quarter until the bar says others."""
    now = Fraction(0)
    for each in bar:
        divisions = Fraction(float(each.findtext("divisions") or divisions))
        takes = {"note": 1, "forward": 1, "backup": -1}.get(each.tag, 0) * (each.find("chord") is None)
        begin = now + Fraction(float(each.findtext("offset") or 0)) / divisions
        now += takes * Fraction(float(each.findtext("duration") or 0)) / divisions
        yield (begin, now, each) if takes else (begin, begin, each)


def by_parts(score: Element) -> None:
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
            fifths = Transposition.of(transpose).fifths
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


def transpositions(text: str, staves: Sequence[str]) -> list[dict[int, Transposition]]:
    """How each staff sounds from which bar on, counted from 0, where its part says that; `staves` are music21's names
    of them."""
    found = [dict[int, Transposition]() for _ in staves]
    first = 0
    for part in ElementTree.fromstring(text).iterfind("part") if TRANSPOSES.search(text) else ():
        count = max(sum(name.startswith(f"{part.get('id')}-Staff") for name in staves), 1)
        for n, bar in enumerate(part.iterfind("measure")):
            for said in bar.iterfind("attributes/transpose"):
                staff = said.get("number", "")  # without one all
                for k, changes in enumerate(found[first : first + count], 1):
                    if staff in ("", str(k)):
                        changes[n] = Transposition.of(said)
        first += count
    return found


def numbered(text: bytes) -> bytes:
    """A score of music21 with its parts and their sounds counted, P1 and P1-I1: its own names differ each time."""
    names = dict[bytes, bytes]()

    def name(match: re.Match[bytes]) -> bytes:
        if (old := match[2]) not in names:
            part = sum(each.startswith(b"P") for each in names) + old.startswith(b"P")
            sounds = sum(each.startswith(b"P%d-" % part) for each in names.values()) + 1
            names[old] = b"P%d" % part if old.startswith(b"P") else b"P%d-I%d" % (part, sounds)
        return match[1] + names[old]

    return AT_RANDOM.sub(name, text)


def with_symbols(text: bytes, symbols: tuple[ChordSymbol, ...]) -> bytes:
    """A score of music21 with chord symbols in the places of the words that stand for them."""

    def symbol(match: re.Match[str]) -> str:
        harmony = ElementTree.tostring(element_of(symbols[int(match[2])]), encoding="unicode")
        return harmony.replace("</harmony>", "".join(PLACE.findall(match[3])) + "</harmony>")

    return MARKED.sub(symbol, text.decode()).encode() if symbols else text
