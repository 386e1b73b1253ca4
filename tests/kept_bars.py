"""MusicXML of a few bars, and these with new music beside them."""

from dataclasses import replace
from xml.etree import ElementTree

from musictx.music.notation.kept import with_kept
from musictx.music.notation.parts import Note
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml

NOTE = "<note>{}<pitch><step>{}</step><octave>{}</octave></pitch><duration>{}</duration><voice>1</voice>{}</note>"
SIGNS = "<direction><direction-type>{}</direction-type></direction>"


def note(step="C", octave=5, length=4, more="", before=""):
    return NOTE.format(before, step, octave, length, more)


def score(*parts, head=""):
    """A score of bars, each part a list of what its bars have."""
    names = "".join(f'<score-part id="P{n}"><part-name>Part {n}</part-name></score-part>' for n, _ in enumerate(parts))
    bars = (
        "".join(f'<measure number="{n}">{bar}</measure>' for n, bar in enumerate(part, 1 if not head else 17))
        for part in parts
    )
    body = "".join(f'<part id="P{n}">{each}</part>' for n, each in enumerate(bars))
    return f"<score-partwise>{head}<part-list>{names}</part-list>{body}</score-partwise>"


def attributes(divisions=1, sharps=0, beats=4, clef="G2", semitones=0):
    transpose = f"<transpose><chromatic>{semitones}</chromatic></transpose>" * bool(semitones)
    return (
        f"<attributes><divisions>{divisions}</divisions><key><fifths>{sharps}</fifths></key><time><beats>{beats}</beats>"
        f"<beat-type>4</beat-type></time><clef><sign>{clef[0]}</sign><line>{clef[1]}</line></clef>{transpose}</attributes>"
    )


def read(text):
    return read_notation(text.encode(), "musicxml")[0]


def bars_of(text, part=0):
    """The bars of a part without spaces, as text."""
    bars = ElementTree.fromstring(text).findall("part")[part].findall("measure")
    return ["".join(line.strip() for line in ElementTree.tostring(bar, encoding="unicode").split("\n")) for bar in bars]


def continued(notation, count=1):
    last = notation.bars[-1]
    bars = [last._replace(onset=notation.end + n * last.full) for n in range(count)]
    more = [Note(bar.onset, last.full, 60) for bar in bars]
    parts = tuple(replace(part, notes=(*part.notes, *more)) for part in notation.parts)
    return replace(notation, parts=parts, bars=(*notation.bars, *bars), end=notation.end + count * last.full)


def filled(notation, *bars, parts=(0,)):
    """With another note in place of those that begin in some bars; those that sound in from before end there."""
    spans = [notation.spans_in_units[n] for n in bars]

    def changed(part):
        notes = [each for each in part.notes if not any(begin <= each.onset < end for begin, end in spans)]
        for begin, _ in spans:
            notes = [
                each._replace(length=begin - each.onset) if each.onset < begin < each.offset else each for each in notes
            ]
        return replace(part, notes=tuple(sorted([*notes, *(Note(begin, 24, 61) for begin, _ in spans)])))

    return replace(notation, parts=tuple(changed(p) if n in parts else p for n, p in enumerate(notation.parts)))


def whole(notation):
    return with_kept(to_musicxml(notation, "new")[0], notation).decode()
