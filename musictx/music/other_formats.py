"""Music that is no MIDI file: which format it is, and how a person makes MIDI of it."""

import re
from collections.abc import Iterable
from pathlib import Path

PROGRAM = "export MIDI from the notation program, as with File > Export in MuseScore"
FORMATS = {
    "MusicXML": PROGRAM,
    "a score of a notation program": PROGRAM,
    "ABC": "make MIDI with abc2midi, or export it from a notation program",
    "Humdrum": "make MIDI with hum2mid, or export it from a notation program",
    "a clip of MIDI 2.0": "export a Standard MIDI File (.mid) from the program that made it",
}
SUFFIXES = {
    ".musicxml": "MusicXML",
    ".xml": "MusicXML",
    ".mxl": "a score of a notation program",
    ".mscz": "a score of a notation program",
    ".abc": "ABC",
    ".krn": "Humdrum",
    ".midi2": "a clip of MIDI 2.0",
}
SIGNS = {
    rb"\ASMF2CLIP": "a clip of MIDI 2.0",
    rb"(?s)\APK\x03\x04.*META-INF/container\.xml": "a score of a notation program",
    rb"<score-(partwise|timewise)": "MusicXML",
    rb"(?m)^\*\*kern": "Humdrum",
    rb"(?m)\A%abc|^X: *\d+ *\r?$": "ABC",
}
LOOKED_AT = 1 << 16


def other_format(data: bytes, source: object) -> str:
    """Which format data that is no MIDI file has, and what to do, by what it says or by its name; empty if unknown."""
    head = data[:LOOKED_AT].replace(b"\0", b"").removeprefix(b"\xef\xbb\xbf")  # also of UTF-16
    said = (name for sign, name in SIGNS.items() if re.search(sign, head))
    name = next(said, None) or SUFFIXES.get(Path(str(source)).suffix.lower())
    return f"is {name}, not a MIDI file: {FORMATS[name]}" if name else ""


def ways(names: Iterable[str]) -> str:
    """What to do with music of other formats, by the names of files; empty if there is none."""
    kinds = sorted({kind for name in names if (kind := Path(name).suffix.lower()) in SUFFIXES})
    found = dict[str, list[str]]()
    for kind in kinds:
        found.setdefault(FORMATS[SUFFIXES[kind]], []).append(kind)
    return "; ".join(f"the {', '.join(kinds)} files are not MIDI files: {way}" for way, kinds in found.items())
