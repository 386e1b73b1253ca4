"""Makes the music of the lessons of the ABC files of the Open Hymnal Project, which is in the public domain.

    python tools/hymns.py open-hymnal.zip musictx/lessons/hymns.npz

A hymn stays where it has four voices of one length on a grid of sixteenths; of several with one tune, the first. Two
have one tune where its name is the same, or their sopranos share a run of `RUN` intervals, in any key and rhythm.
"""

import re
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from music21 import converter, note
from music21.exceptions21 import Music21Exception
from numpy.typing import NDArray

VOICE = re.compile(r"^\[V: *(\S+?)\](.*)")
SATB = ("S1V1", "S1V2", "S2V1", "S2V2")
NO_NOTE = re.compile(r'![^!]*!|"[^"]*"|\{[^}]*\}|\[[PQr]:[^\]]*\]|%.*|y\d*')  # decorations, chords by name, graces
STEPS = 4  # of a quarter
RUN = 12  # intervals between notes of other pitch


def grid(text: str) -> NDArray[np.uint8]:
    """(T, 4), uint8 pitches at each sixteenth; 0 is a rest. Raises ValueError."""
    head = {key: field(key, text) for key in "MLK"}
    voices: dict[str, list[str]] = {voice: [] for voice in SATB}
    for line in text.splitlines():
        if sung := VOICE.match(line):
            if sung[1] not in voices:
                raise ValueError(f"a voice {sung[1]}")
            voices[sung[1]].append(NO_NOTE.sub("", sung[2]))
    columns = [pitches(head, "\n".join(music)) for music in voices.values()]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or lengths.pop() < 64:
        raise ValueError("voices of several lengths, or short ones")
    found = np.stack(columns, 1)
    four = found[(found > 0).all(1)].astype(int)
    if (found == 0).mean() > 0.1 or (np.diff(four, axis=1) > 0).mean() > 0.05:
        raise ValueError("voices that rest or cross")
    return found


def runs(found: NDArray[np.uint8]) -> set[bytes]:
    """All runs of intervals in the soprano."""
    line = found[found[:, 0] > 0, 0].astype(np.int8)
    steps = np.diff(line)
    steps = steps[steps != 0]
    return {steps[n : n + RUN].tobytes() for n in range(len(steps) - RUN + 1)}


def field(key: str, text: str) -> str:
    found = re.search(rf"^{key}:\s*([^%\n]+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no field {key}")
    return found[1].strip()


def pitches(head: dict[str, str], music: str) -> NDArray[np.uint8]:
    part = converter.parse("X:1\n" + "".join(f"{key}:{head[key]}\n" for key in "MLK") + music, format="abc")
    steps: list[int] = []
    for each in part.flatten().notesAndRests:
        length = each.quarterLength * STEPS
        if length != int(length) or not isinstance(each, note.Note | note.Rest):
            raise ValueError("a chord, or a note off the grid")
        steps += [each.pitch.midi if isinstance(each, note.Note) else 0] * int(length)
    return np.array(steps, np.uint8)


def main(source: str, out: str) -> None:
    hymns: dict[str, tuple[NDArray[np.uint8], str]] = {}
    heard: set[bytes] = set()
    with ZipFile(source) as archive:
        files = [name for name in sorted(archive.namelist()) if re.search(r"/Complete/.*\.abc$", name)]
        for name in files:
            text = archive.read(name).decode(errors="replace")
            text, title = text[text.index("\nX:") :], Path(name).stem
            try:
                found = grid(text)
            except (ValueError, TypeError, Music21Exception) as problem:
                print(f"left out: {title}: {problem}")
                continue
            tune = {re.sub(r"[\d_]", "", title.rpartition("-")[2]).casefold().encode(), *runs(found)}
            if not tune & heard:
                heard |= tune
                hymns[title] = found, field("K", text).split()[0]
    grids, keys = zip(*hymns.values(), strict=True)
    ends = np.cumsum([len(each) for each in grids])
    np.savez_compressed(out, pitch=np.concatenate(grids), ends=ends, name=np.array([*hymns]), key=np.array(keys))
    print(f"{len(hymns)} of {len(files)} hymns, {ends[-1]} sixteenths")


if __name__ == "__main__":
    main(*sys.argv[1:])
