"""Music that is no MIDI file: which notation it is, or how a person makes MIDI of it."""

import re
from collections.abc import Iterable
from pathlib import Path

PROGRAM = "export MusicXML or MIDI from the notation program, as with File > Export in MuseScore"
NOTATION = {  # suffixes of the notation that is read, and music21's names for it
    ".musicxml": "musicxml",
    ".mxl": "musicxml",
    ".krn": "humdrum",
    ".mei": "mei",
    ".abc": "abc",
}
PACKED = b"PK\x03\x04"
SIGNS = {
    rb"\APK\x03\x04.*META-INF/container\.xml": "musicxml",
    rb"<score-(partwise|timewise)": "musicxml",
    rb"(?m)^\*\*(kern|\S+\t(\S+\t)*\*\*kern)": "humdrum",
    rb"<mei[\s>]": "mei",
    rb"(?m)\A%abc|^X: *\d+ *\r?$": "abc",
}
FORMATS = {
    "a score of MuseScore": PROGRAM,
    "a clip of MIDI 2.0": "export a Standard MIDI File (.mid) from the program that made it",
}
SUFFIXES = {".mscz": "a score of MuseScore", ".mscx": "a score of MuseScore", ".midi2": "a clip of MIDI 2.0"}
OTHER_SIGNS = {rb"\ASMF2CLIP": "a clip of MIDI 2.0", rb"(?s)\APK\x03\x04.*\.mscx": "a score of MuseScore"}
LOOKED_AT = 1 << 16


def notation_of(data: bytes, source: object) -> str | None:
    """music21's name of the notation, by the data or its name; None for all else."""
    head = _head(data)
    if any(re.search(sign, head) for sign in OTHER_SIGNS):
        return None
    signs = list(SIGNS.items())[: 1 if head[:4] == PACKED else None]  # an archive may have scores in plain text
    matches = (name for sign, name in signs if re.search(sign, head, re.DOTALL))
    return next(matches, None) or NOTATION.get(Path(str(source)).suffix.lower())


def other_format(data: bytes, source: object) -> str:
    """The format of data that is not read, and a way to MIDI; empty if unknown."""
    matches = (name for sign, name in OTHER_SIGNS.items() if re.search(sign, _head(data)))
    name = next(matches, None) or SUFFIXES.get(Path(str(source)).suffix.lower())
    return f"is {name}, not a MIDI file: {FORMATS[name]}" if name else ""


def _head(data: bytes) -> bytes:
    head = data[:LOOKED_AT].replace(b"\0", b"")  # of UTF-16 too, but for its mark
    return re.sub(rb"\A(\xef\xbb\xbf|\xff\xfe|\xfe\xff)", b"", head)


def ways(names: Iterable[str]) -> str:
    """What to do with music of formats that are not read, by the names of files; empty if there is none."""
    kinds = sorted({kind for name in names if (kind := Path(name).suffix.lower()) in SUFFIXES})
    by_way = dict[str, list[str]]()
    for kind in kinds:
        by_way.setdefault(FORMATS[SUFFIXES[kind]], []).append(kind)
    return "; ".join(f"the {', '.join(kinds)} files are not MIDI files: {way}" for way, kinds in by_way.items())
