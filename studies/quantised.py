"""A set of quantised pieces as people have them in a DAW: MIDI files of six kinds whose notes lie exactly on ticks.

    python studies/quantised.py --hymns hymns.zip --tunes openewld.zip --keyboard polish-keyboard.zip --songs lieder.zip
    python studies/alive.py --midi outputs/quantised

| kind | what | tracks |
|---|---|---|
| loop | pop loops of our own, drawn from a random seed (`quantised_loops.py`) | drums, bass, keys, tune |
| hymn | Open Hymnal (public domain) | a voice each |
| waltz | songs in 3/4 or 6/8 with an upbeat, OpenScore Lieder (CC0) | voice, two of the piano |
| sixteenth | keyboard pieces on a grid of sixteenths, Polish scores (CC BY 4.0) | a staff each |
| tune | one melody, OpenEWLD (public-domain songs) | one |
| swung | half: swung loops of our own; half: songs with triplets, OpenScore Lieder | as above |

Works are taken in the order of their names: the first ones that are of the kind, one of each composer (of hymns: of
each text), of whom at most `TRIES` works are tried. They last `LENGTHS_S`. Left out is what music21 cannot read, what
has times between ticks, and what changes its meter; `sources.json` counts them. Times are those of the score, at its
tempos, without grace notes and repeats. Every second upbeat is a short first bar, as notation programs write it, and
every other one the end of a bar that begins with silence, as sequencers do. The same archives give the same files.

The set is for continuations beside the composers' own music. No packaged model has learned from these archives, so
there is no split. No file of it belongs to the project. The same words with `--apart-from outputs/quantised
--out outputs/apart` make a second set: works in the reverse order of their names, without those of the first. What was
tuned on the first is measured on the second.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from quantised_loops import loop
from quantised_scores import Piece, Unfit, midi_of, read
from shared import asked, options

from musictx.config.mistakes import in_one_line
from musictx.errors import UserError
from musictx.files import replacing, write_json
from musictx.music.beat_grid import find_grid
from musictx.music.read import read_tracks
from musictx.music.ticks import Tracks
from musictx.terminal import say

LENGTHS_S = 28.0, 150.0
TRIES = 3
TRIPLETS = ("1/8t", "1/16t", "1/16+1/8t")


class Heard(NamedTuple):
    """A piece, its file, and what a reader makes of it."""

    piece: Piece
    data: bytes
    grid: str  # "": none
    tracks: Tracks


class Kind(NamedTuple):
    """Pieces of an archive: those of a suffix, below a folder; who wrote them; which are of the kind."""

    archive: str
    suffix: str
    group: str  # a pattern: of works that it names alike, one is taken
    fits: Callable[[Heard], bool]


KINDS = {
    "hymn": Kind("hymns", ".abc", r"[^/]+/[^/]+/([^/]+)/", lambda heard: len(heard.piece.parts) == 4),
    "waltz": Kind(
        "songs",
        ".mxl",
        r"[^/]+/scores/([^/]+)/",
        lambda heard: heard.piece.upbeat > 0 and heard.piece.signature in ((3, 4), (6, 8)),
    ),
    "sixteenth": Kind("keyboard", ".krn", r"[^/]+/solo/.*_([^/]+?)--", lambda heard: heard.grid == "1/16"),
    "tune": Kind("tunes", ".mxl", r"[^/]+/([^/]+)/", lambda heard: len(heard.piece.parts) == 1),
    "swung": Kind("songs", ".mxl", r"[^/]+/scores/([^/]+)/", lambda heard: heard.grid in TRIPLETS),
}


def heard_as(piece: Piece) -> Heard:
    """A piece as a file, read again. Raises Unfit for one that has no notes."""
    if not any(part.notes for part in piece.parts):
        raise Unfit("without notes")
    midi_of(piece).save(file=(file := BytesIO()))
    tracks = read_tracks(file.getvalue(), "a piece of the set")
    grid = find_grid(tracks.merge(), tracks.meter())
    return Heard(piece, file.getvalue(), grid.name if grid else "", tracks)


def works(archive: Path, kind: Kind, others: set[str]) -> Iterator[tuple[str, str, bytes]]:
    """The works of an archive in the order of their names: name, group, and file. Where a set has others, in reverse
    order without these."""
    with zipfile.ZipFile(archive) as packed:
        for name in sorted(packed.namelist(), reverse=bool(others)):
            if name not in others and name.endswith(kind.suffix) and (found := re.match(kind.group, name)):
                yield name, found[1], packed.read(name)


def choose(archive: Path, kind: Kind, most: int, others: set[str]) -> tuple[list[tuple[str, Heard]], Counter[str]]:
    """The first works of a kind, and how many were left out, by what they lack."""
    taken, tried, left_out = list[tuple[str, Heard]](), Counter[str](), Counter[str]()
    groups = set[str]()
    for name, group, data in works(archive, kind, others):
        if len(taken) == most:
            break
        if group in groups or tried[group] == TRIES:
            continue
        tried[group] += 1
        try:
            heard = heard_as(read(data, kind.suffix))
        except Unfit as unfit:
            left_out[str(unfit)] += 1
            continue
        if not LENGTHS_S[0] <= heard.tracks.merge().duration_s <= LENGTHS_S[1]:
            left_out["shorter or longer"] += 1
        elif not heard.grid or not kind.fits(heard):
            left_out["of another kind"] += 1
        else:
            taken.append((name, heard))
            groups.add(group)
    return taken, left_out


def with_upbeat(piece: Piece, at: int) -> Piece:
    """Every second piece with an upbeat begins with the silence of a whole bar before it."""
    if not piece.upbeat or at % 2 == 0:
        return piece
    return piece.later(piece.bar - piece.upbeat)._replace(upbeat=0)


def pieces(name: str, args: Any, others: set[str]) -> tuple[list[tuple[str, Heard]], dict[str, int]]:
    """The pieces of a kind, each with its source, and how many works were left out, by why. `others`: the sources of
    another set."""
    own = args.count if name == "loop" else args.count // 2 if name == "swung" else 0
    names = (f"our own, {k}" for k in count())
    loops = list(islice((k for k, each in enumerate(names) if each not in others), own))
    found = [(f"our own, {k}", heard_as(loop(k, name == "swung"))) for k in loops]
    if name not in KINDS:
        return found, {}
    kind = KINDS[name]
    taken = {source.partition(": ")[2] for source in others}
    chosen, left_out = choose(getattr(args, kind.archive), kind, args.count - own, taken)
    return found + [(f"{kind.archive}: {work}", heard) for work, heard in chosen], dict(sorted(left_out.items()))


def known(path: Path) -> dict[str, Any]:
    """What an earlier run has made."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def main() -> None:
    parser = options(__doc__, "hymns", "tunes", "keyboard", "songs", "out", out=Path("outputs/quantised"))
    parser.add_argument("--count", type=int, default=12, help="pieces of each kind")
    parser.add_argument("--apart-from", type=Path, help="a set of this script: other works than it has")
    args, words = asked(parser)
    if words:
        raise UserError(f"{words[0]}: this script has no settings", "leave it out")
    sources, apart = known(args.out / "sources.json"), args.apart_from
    if apart and not (apart / "sources.json").exists():
        raise UserError(f"--apart-from {apart} has no sources.json", "give a folder that this script made")
    others = (
        {work for kind in known(apart / "sources.json").values() for work in kind["files"].values()} if apart else set()
    )
    for name in ("loop", *KINDS):
        if len(sources.get(name, {}).get("files", [])) == args.count:
            continue
        found, left_out = pieces(name, args, others)
        files = {f"{name}-{k:02}.mid": work for k, (work, _) in enumerate(found, 1)}
        for k, (file, (_, heard)) in enumerate(zip(files, found, strict=True)):
            with replacing(args.out / file) as partial:
                partial.write_bytes(heard_as(with_upbeat(heard.piece, k)).data)
        sources[name] = {"files": files, "left out": left_out}
        said = ", ".join(f"{count} {why}" for why, count in left_out.items())
        say(f"{name}: {len(found)} pieces; left out: {said or 'none'}", flush=True)
        write_json(args.out / "sources.json", sources)
    say(f"{args.out}: {sum(len(each['files']) for each in sources.values())} pieces; sources.json says of what")


if __name__ == "__main__":
    with in_one_line():
        main()
