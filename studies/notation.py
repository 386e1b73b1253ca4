"""Counts what a round trip keeps of scores: read, written as MusicXML or as MIDI, and read again.

    python studies/notation.py --archives lieder.zip open-hymnal.zip --every 6 --out outputs/notation

Of each archive every so many scores in order of their names. A note is kept where its staff, onset, length and pitch
come back exactly; a bar where its line does; a staff where its place and its name, if it has one, do; a syllable of
lyrics where its staff, onset, verse and text do; a chord symbol where all of it does. What a score
loses when it is first read is counted apart, by kinds of `REPAIRS`. So are scores that cannot be read, with the reason.
What was counted is not counted again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from shared import options

from musictx.config.mistakes import in_one_line
from musictx.errors import MidiError
from musictx.files import write_json
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.music.other_formats import NOTATION, notation_of
from musictx.system import processor
from musictx.terminal import say
from musictx.waiting import estimated


def notes(notation: Notation) -> Counter[Any]:
    """The notes of each staff that has some."""
    staves = [staff for staff in notation.parts if staff.notes]
    return Counter((n, note) for n, staff in enumerate(staves) for note in staff.notes)


def syllables(notation: Notation) -> Counter[Any]:
    """The lyrics of each staff that has notes, whichever of its voices sings them."""
    staves = [staff for staff in notation.parts if staff.notes]
    return Counter((n, each._replace(voice=0)) for n, staff in enumerate(staves) for each in staff.lyrics)


def kept(before: Notation, after: Notation) -> dict[str, int]:
    """How much of a score came back."""
    names = [[staff.name for staff in each.parts if staff.notes] for each in (before, after)]
    lines = [{bar.onset for bar in each.bars} for each in (before, after)]
    return {
        "notes": (notes(before) & notes(after)).total(),
        "bars": len(lines[0] & lines[1]),
        "staves": sum(a in ("", b) for a, b in zip(*names, strict=False)),
        "syllables": (syllables(before) & syllables(after)).total(),
        "symbols": len({*before.symbols} & {*after.symbols}),
    }


def trip(data: bytes, name: str) -> dict[str, Any]:
    """One score: what it has, what it lost, and what came back; or why it cannot be read."""
    try:
        score, losses = read_notation(data, notation_of(data, name) or "", name)
    except MidiError as error:
        return {"unread": re.sub(r"\d+", "N", error.reason)[:80]}
    has = kept(score, score)
    text, _ = read_notation(to_musicxml(score)[0], "musicxml", name)
    midi, _ = from_midi(to_midi(score), name)
    return {"has": has, "losses": dict(losses), "musicxml": kept(score, text), "midi": kept(score, midi)}


def scores(archive: ZipFile, every: int) -> Iterator[str]:
    names = sorted(name for name in archive.namelist() if name.lower().endswith(tuple(NOTATION)))
    yield from names[::every]


def total(trips: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over scores."""
    read = [each for each in trips if "has" in each]
    sums = {what: {x: sum(each[what][x] for each in read) for x in COUNTED} for what in FORMS}
    whole = {form: sum(each[form] == each["has"] for each in read) for form in FORMS[1:]}
    losses, unread = Counter[str](), Counter(each["unread"] for each in trips if "unread" in each)
    for each in read:
        losses.update(each["losses"])
    return {"scores": len(trips), "read": len(read), "whole": whole, "losses": losses, "unread": unread} | sums


COUNTED = ("notes", "bars", "staves", "syllables", "symbols")
FORMS = ("has", "musicxml", "midi")


def main() -> None:
    parser = options(__doc__, "out", out=Path("outputs/notation"))
    parser.add_argument("--archives", nargs="+", type=Path, required=True, help="zips of scores")
    parser.add_argument("--every", type=int, default=1, help="every so many scores")
    args = parser.parse_args()
    runs = args.out / "scores.json"
    known: dict[str, Any] = json.loads(runs.read_text(encoding="utf-8")) if runs.exists() else {}
    found: dict[str, Any] = {"processor": str(processor()), "every": args.every}
    for path in args.archives:
        with ZipFile(path) as archive:
            names = [*scores(archive, args.every)]
            for n, name in enumerate(estimated(names, f"{len(names)} scores of {path.name}")):
                if f"{path.stem}: {name}" not in known:
                    known[f"{path.stem}: {name}"] = trip(archive.read(name), name)
                    if n % 20 == 19:
                        write_json(runs, known)
        write_json(runs, known)
        found[path.stem] = total([known[f"{path.stem}: {name}"] for name in names])
        say(f"{path.stem}: {found[path.stem]}")
    write_json(args.out / "notation.json", found)


if __name__ == "__main__":
    with in_one_line():
        main()
