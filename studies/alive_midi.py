"""Files as musicians have them, continued as `musictx generate` does: whole, after their last four bars, and after
their first. What is measured is what is written: the new notes of the person's file with new music in it, read again.

Beside each figure is the composers' own: of as much music after bar lines of the same files, and as many bars before
them, or all of the piece.

A file's kind is its name before the last hyphen. A continuation is like the composers' where it lies between the 5th
and the 95th percentile of what they did in files of its kind; of loops and the like, less is like them too. The same
share of the composers' own music, each piece beside the others of its kind, says how much that is.
"""

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timed
from alive_measures import CLOSE_S, Row, Setting, measure

from musictx.commands.generate_settings import continue_request
from musictx.config.app import settings
from musictx.files import replacing
from musictx.generate.continuing import continue_all, read_beginning
from musictx.generate.open_player import Playing
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue
from musictx.generate.result import Music
from musictx.generate.seed_files import find_seeds
from musictx.music.beat_grid import BeatGrid, find_grid
from musictx.music.ending import ending_s
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Meter, Score
from musictx.music.ticks import Tracks
from musictx.system import processor
from musictx.terminal import say

BARS = 4
FORMS = {
    "whole": [],
    f"last {BARS} bars": [f"seed_bars={BARS}", "seed_from=end"],
    f"first {BARS} bars": [f"seed_bars={BARS}"],
}
PLACES = 6  # bar lines of a file after which the composer's own music is measured
LIKE, CLOSE = (5, 95), 1e-9  # percentiles
LESS = "looped", "one key", "beyond range", "wait", "hanging"  # less of it is as good
FEWEST = 20  # music of composers after so many bar lines says what they do
STILL_S = 3.0


class File(NamedTuple):
    """A file, its notes without drums, its bars, and the places that its notes keep to."""

    path: Path
    tracks: Tracks
    score: Score
    meter: Meter
    grid: BeatGrid | None


def read_file(path: Path) -> File:
    tracks = read_tracks(read_bytes(path), path)
    score, meter = tracks.merge(), tracks.meter()
    return File(path, tracks, score, meter, find_grid(score, meter))


def between(score: Score, from_s: float, to_s: float) -> Score:
    """The notes that begin in a span and end in it, on the clock of the score."""
    part = score.select((score.onset_s >= from_s - CLOSE_S) & (score.onset_s < to_s - CLOSE_S))
    return replace(part, offset_s=np.minimum(part.offset_s, np.maximum(to_s, part.onset_s)))


def drawn_row(file: File, primer: Primer, music: Music, length_s: float) -> Row:
    """The figures of a continuation, as it is written."""
    assert music.place is not None
    from_s = music.new_from_s + music.place.later_s
    written = read_tracks(music.midi(), file.path)
    clocks = written.tempo_map, file.tracks.tempo_map
    kept = all(np.array_equal(getattr(clocks[0], name), getattr(clocks[1], name)) for name in ("tempo", "tick_s"))
    setting = Setting(file.meter, file.grid, from_s, from_s + length_s)
    seed, new = between(file.score, primer.start_s, from_s), between(written.merge(), from_s, setting.to_s)
    held = min(music.held / len(new), 1.0) if len(new) else None  # notes after the end count too
    return measure(seed, new, setting) | {"tempo kept": float(kept), "held back": held}


def own_rows(file: File, form: str, length_s: float) -> list[Row]:
    """The figures of the composer's own music, after at most `PLACES` bar lines; none where the piece is too short."""
    lines = file.meter.bars_s(file.score.duration_s)
    end_s = ending_s(file.score) or file.score.duration_s
    first = int(np.searchsorted(lines, end_s / 2)) if form == "whole" else BARS
    at = [k for k in range(max(first, 1), len(lines)) if lines[k] + length_s <= end_s]
    found = []
    for k in {at[i] for i in np.linspace(0, len(at) - 1, min(PLACES, len(at))).round().astype(int)}:
        setting = Setting(file.meter, file.grid, float(lines[k]), float(lines[k]) + length_s)
        begin_s = 0.0 if form == "whole" else float(lines[k - BARS])
        seed, new = between(file.score, begin_s, setting.from_s), between(file.score, setting.from_s, setting.to_s)
        if len(seed):
            found.append(measure(seed, new, setting) | {"tempo kept": 1.0, "held back": None})
    return found


def cell(form: str, paths: Sequence[Path], opened: Playing, request: Continue, length_s: float, folder: Path) -> Any:
    """One form of seeds and one kind of files, file by file; the first continuation of each lies in the folder."""
    with contextlib.redirect_stdout(io.StringIO()):  # what each file's line says
        beginnings = [read_beginning(path, opened.tokenizer, request) for path in paths]
        made = continue_all(beginnings, opened.player, opened.tokenizer, request, own=opened.header.sampling)
    found = []
    for path, beginning, musics in zip(paths, beginnings, made, strict=True):
        assert isinstance(beginning.primer, Primer)
        file = read_file(path)
        drawn = [drawn_row(file, beginning.primer, music, length_s) for music in musics]
        found.append({"file": path.name, "drawn": drawn, "true": own_rows(file, form, length_s)})
        musics[0].write(folder / path.name)
    return {"files": found, "processor": str(processor())}


def summary(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of one kind. Of each figure its mean and that of the composers, their 5th to 95th percentile, and the share of
    continuations that are like them; of the composers, each file beside the others."""
    drawn, true = ([row for each in files for row in each[who]] for who in ("drawn", "true"))
    found: dict[str, Any] = {"continuations": len(drawn), "composers": len(true)}
    for name in drawn[0] if drawn else ():
        ours = [row[name] for row in drawn if row[name] is not None]
        of_file = [[row[name] for row in each["true"] if row[name] is not None] for each in files]
        theirs = list(chain(*of_file))
        inside, own = alike(name, ours, theirs), list[bool]()
        for k, values in enumerate(of_file):
            own += alike(name, values, list(chain(*of_file[:k], *of_file[k + 1 :])))
        span = [rounded(float(x)) for x in np.percentile(theirs, LIKE)] if theirs else [None, None]
        found[name] = {"drawn": mean(ours), "true": mean(theirs), "like": span}
        found[name] |= {"inside": mean(inside), "of": len(inside), "own inside": mean(own), "own of": len(own)}
    for who, rows in (("drawn", drawn), ("true", true)):
        found[f"{who}, waits"] = sum(row["wait"] > STILL_S for row in rows)
    return found


def alike(name: str, values: Sequence[float], theirs: Sequence[float]) -> list[bool]:
    """Whether each is like the composers'; nothing where there is little of these."""
    if len(theirs) < FEWEST:
        return []
    low, high = np.percentile(theirs, LIKE)
    low = min(low, 0.0) if name in LESS else low
    return [bool(low - CLOSE <= value <= high + CLOSE) for value in values]


def listed(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """Each figure of all rows."""
    names = list(rows[0]) if rows else []
    return {name: [None if (x := row[name]) is None else round(x, 3) for row in rows] for name in names}


def together(kinds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all kinds, by continuations and by bar lines; each is compared with composers of its own kind."""
    counts = "continuations", "composers", "drawn, waits", "true, waits"
    found: dict[str, Any] = {name: sum(each[name] for each in kinds) for name in counts}
    weights = {"drawn": "continuations", "true": "composers"}
    for name in dict.fromkeys(name for each in kinds for name, value in each.items() if isinstance(value, dict)):
        rows = [each | each[name] for each in kinds if name in each]
        found[name] = {who: weighted(rows, who, of) for who, of in weights.items()}
        found[name] |= {who: weighted(rows, who, of) for who, of in (("inside", "of"), ("own inside", "own of"))}
    return found


def weighted(rows: Sequence[dict[str, Any]], name: str, weight: str) -> float | None:
    some = [row for row in rows if row[name] is not None and row[weight]]
    return (
        rounded(float(np.average([row[name] for row in some], weights=[row[weight] for row in some]))) if some else None
    )


def rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def mean(values: Sequence[float]) -> float | None:
    return rounded(float(np.mean(values))) if values else None


def table(form: str, found: dict[str, Any]) -> str:
    """A summary, to read, and the means of each kind: drawn, and after a slash the composers' own."""
    kinds = found["kinds"]
    head = f"{form}: {found['continuations']} continuations"
    rows = [[head, "drawn", "true", "inside", "own inside", *kinds]]
    for name, row in found.items():
        if isinstance(row, dict) and name != "kinds":
            each = [f"{said(k[name]['drawn'])}/{said(k[name]['true'])}" for k in kinds.values()]
            rows.append([name, *(said(row[who]) for who in ("drawn", "true", "inside", "own inside")), *each])
    waits = [f"{each['drawn, waits']}/{each['true, waits']}" for each in (found, *kinds.values())]
    rows.append(["waits over 3 s", waits[0], "", "", "", *waits[1:]])
    rows.append(
        ["composers' bar lines", "", str(found["composers"]), "", "", *(str(k["composers"]) for k in kinds.values())]
    )
    return "\n".join(f"{row[0]:<38}" + "".join(f"{cell:>15}" for cell in row[1:]) for row in rows)


def said(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def by_kind(paths: Sequence[Path], most: int) -> dict[str, list[Path]]:
    """At most so many files of each kind, spread over them."""
    kinds = dict[str, list[Path]]()
    for path in paths:
        kinds.setdefault(path.stem.rpartition("-")[0] or "all", []).append(path)
    return {
        kind: [each[k] for k in np.unique(np.linspace(0, len(each) - 1, min(most, len(each))).round().astype(int))]
        for kind, each in kinds.items()
    }


def study_files(
    folders: Sequence[Path], opened: Playing, tensors: str, at: Path, args: Any, words: Sequence[str]
) -> dict[str, Any]:
    """All forms and kinds; the cells lie in `at`. Prints a table of each form."""
    facts: dict[str, Any] = {"seconds": args.length, "tensors_sha256": tensors}
    trials = dict[str, Any]()
    kinds = by_kind([path for folder in folders for path in find_seeds(str(folder))], args.pieces)
    for form in args.forms or FORMS:
        own = [f"length_seconds={args.length}", f"variations={args.draws}", *FORMS[form], *words]
        request, by = continue_request(settings("generate", "seed_midi=null", "out=x", *own)), dict[str, Any]()
        of_form = dict[str, Any]()
        for kind, paths in kinds.items():
            place = at / f"{folders[0].name}-{form.replace(' ', '-')}-{kind}"
            how = [(path.name, digest(path)) for path in paths], args.length, opened.header.sampling, request
            draw = partial(cell, form, paths, opened, request, args.length, place)
            kept = timed.Runs(place.with_suffix(".json")).get(f"{tensors} {how}", draw)
            by[kind] = summary(kept["files"]) | {"processor": kept["processor"]}
            of_form |= {each["file"]: {who: listed(each[who]) for who in ("drawn", "true")} for each in kept["files"]}
        facts[form], trials[form] = together(list(by.values())) | {"kinds": by}, of_form
        say(table(form, facts[form]), flush=True)
    with replacing(at.with_name(f"{at.name}-trials.json")) as whole:
        whole.write_text(json.dumps(trials, separators=(",", ":")), encoding="utf-8")
    return facts
