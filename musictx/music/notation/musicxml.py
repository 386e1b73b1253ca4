"""MusicXML in the form that music21 reads: ordered by parts, and cue notes as rests."""

from xml.etree import ElementTree

from musictx.music.notation.notation import Losses


def for_music21(text: str, losses: Losses) -> str:
    """The text of a score; counts cue notes, which another part plays. Raises ParseError for text that is no XML."""
    if "<cue" not in text and "<score-timewise" not in text:
        return text
    score = ElementTree.fromstring(text)  # entities are refused before
    for parent in [*score.iter()]:
        for note in parent.findall("note"):
            if note.find("cue") is not None:
                losses["cue"] += note.find("rest") is None
                _silence(note, parent)
    if score.tag == "score-timewise":
        _by_parts(score)
    return ElementTree.tostring(score, encoding="unicode")


def _silence(note: ElementTree.Element, parent: ElementTree.Element) -> None:
    if note.find("chord") is not None or note.find("grace") is not None:  # they take no time of their own
        parent.remove(note)
        return
    for child in [*note]:
        if child.tag in ("cue", "pitch", "unpitched", "rest", "tie", "notations", "lyric"):
            note.remove(child)
    note.insert(0, ElementTree.Element("rest"))


def _by_parts(score: ElementTree.Element) -> None:
    """Measures of parts, in place of parts of measures."""
    score.tag = "score-partwise"
    parts: dict[str, ElementTree.Element] = {}
    for measure in score.findall("measure"):
        score.remove(measure)
        for part in measure.findall("part"):
            name = part.get("id", "")
            mine = parts.setdefault(name, ElementTree.Element("part", {"id": name}))
            part.tag, part.attrib = "measure", dict(measure.attrib)
            mine.append(part)
    score.extend(parts.values())
