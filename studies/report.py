"""Makes all pages that state figures, from `studies/results.json`: docs/results.md, docs/results/, the others' figures.

    python studies/report.py            # after the raw files are committed

First the rows of the raw files of `RAW` take the place of their older ones in `studies/results.json`; all others stay
as they are. A row has a page, a claim, the figure, its interval (95 %, resampled pieces, unless the claim says
otherwise), the unit, the command, the commit that holds the raw file, the hash of the model's tensors where the raw
file names one, and the source. The rows of a table also have its title, line and column. `older` says that the command
is of the script of that commit, where the script of today has other options. `pages.py` says what a page makes of them.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pages import ROOT, Row, pages_of
from raw_compute import by_compute, kept_by_kind
from raw_motif import found_again
from raw_music import (
    AS_BEFORE,
    GUIDE,
    GUIDE_ALONE,
    GUIDE_CHORALE,
    GUIDE_SCORE,
    NAMES,
    Make,
    guided,
    led,
    like_composers,
    likelihood,
    met,
    with_context,
)
from raw_scores import harmonised, in_bars, ordered, played, round_trips, scored, sung_on
from raw_speed import SAMPLE, SAMPLE_BEFORE, TRAIN, beside, prepared
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.files import replacing
from musictx.terminal import say

ROWS, RESULTS = ROOT / "studies/results.json", ROOT / "studies/results"
WRITTEN = ("key", "says", "digits")  # of a row, by hand


def row(source: Path, command: str, page: str, claim: str, figure: list[float], unit: str = "", **cell: Any) -> Row:
    value, low, high = [*figure, None, None][:3]
    tensors = re.search(r'"tensors_sha256": (?:\{\s*"score": )?"(\w+)"', source.read_text(encoding="utf-8"))
    found = {"page": page, "claim": claim, "figure": value, "low": low, "high": high, "unit": unit}
    found |= {"command": command, "commit": None, "tensors_sha256": tensors and tensors[1]}
    return found | {"source": source.relative_to(ROOT).as_posix(), **cell}


RAW: dict[str, Callable[[Any, Make], Iterator[Row]]] = {
    "piano-test.json": lambda found, make: likelihood(found, make, "test", "token"),
    "piano-validation.json": lambda found, make: likelihood(found, make, "validation", "token", "note", "second"),
    **{f"{name}-validation-stride.json": with_context for name in ("chorale", "piano")},
    "guidance/piano.json": partial(guided, name="piano", command=GUIDE_ALONE, older=True),
    "guidance/three.json": partial(guided, name="piano", command=GUIDE, label="piano model, held to its seed"),
    "guidance/chosen.json": partial(guided, name="chorale", command=GUIDE_CHORALE),
    "guidance/score.json": partial(guided, name="score", command=GUIDE_SCORE),
    **{f"control-{name}.json": partial(led, store=name) for name in NAMES},
    "alive.json": met,
    "kinds.json": like_composers,
    "kinds-as-before.json": partial(
        like_composers,
        words=f" --forms 'last 4 bars'{AS_BEFORE}",
        how="without grid, guard and bar lines, guidance 0.5",
    ),
    **{f"training-{kind}.json": TRAIN for kind in ("avx512", "avx2")},
    **{f"neighbours-{kind}.json": beside for kind in ("avx512", "avx2")},
    "prepare.json": prepared,
    "notation.json": round_trips,
    "humanize.json": played,
    "score-validation.json": scored,
    "score-before-validation.json": partial(
        scored,
        label="the score model before, which had learned most of these works",
        begin="git show e988d7e:musictx/bundles/score.safetensors > before.safetensors; ",
    ),
    "score-measures.json": in_bars,
    "tune-chords.json": harmonised,
    "score-choirs.json": sung_on,
    "score-orders/orders.json": ordered,
    "planted/motif.json": found_again,
    "compute/compute-validation.json": by_compute,
    "compute/seed-validation.json": kept_by_kind,
    "sampling.json": SAMPLE,
    **{f"sampling-{kind}.json": SAMPLE_BEFORE for kind in ("avx512", "avx2")},
}


def collected() -> list[Row]:
    """The rows of the raw files."""
    rows: list[Row] = []
    for path, rows_of in ((RESULTS / name, rows_of) for name, rows_of in RAW.items()):
        if path.exists():
            rows += rows_of(json.loads(path.read_text(encoding="utf-8")), partial(row, path))
    return rows


def all_rows() -> list[Row]:
    rows: list[Row] = json.loads(ROWS.read_text(encoding="utf-8"))
    return rows


def commit_of(source: str) -> str:
    """The commit of a raw file. Exits the script if it is not committed."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "status", "--porcelain", source], capture_output=True, check=True).stdout:
        raise SystemExit(f"{source} is not committed: commit it, then write the page")
    log = [*git, "log", "-1", "--abbrev=7", "--format=%h", "--", source]
    return subprocess.run(log, capture_output=True, check=True).stdout.decode().strip()


def refreshed() -> list[Row]:
    """All rows; those of raw files as these are now, each with the commit of its file. No row goes."""
    new = {(each["source"], each["claim"], each["unit"]): each for each in collected()}
    commits = {source: commit_of(source) for source in {source for source, *_ in new}}
    rows = []
    for each in all_rows():
        by_hand = {name: each[name] for name in WRITTEN if name in each}
        rows.append(new.pop((each["source"], each["claim"], each["unit"]), each) | by_hand)
    return [each | {"commit": commits.get(each["source"], each["commit"])} for each in [*rows, *new.values()]]


def main() -> None:
    options(__doc__).parse_args()
    rows = refreshed()
    pages = pages_of(rows)  # first, so that a link to no row leaves all files alone
    with replacing(ROWS) as written:
        lines = ",\n".join(f" {json.dumps(each, ensure_ascii=False)}" for each in rows)
        written.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    changed = {path: text for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in changed.items():
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as written:
            written.write_text(text, encoding="utf-8")
    names = ", ".join(path.relative_to(ROOT).as_posix() for path in changed)
    say(f"{len(rows)} rows; changed: {names or 'no page'}")


if __name__ == "__main__":
    with in_one_line():
        main()
