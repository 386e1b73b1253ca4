"""Writes docs/results.md: every figure that the pages state, with its interval and the command that measured it.

    python studies/report.py            # after the raw files are committed

The page has the rows of `studies/results.json`, and nothing else. First the rows of the raw files of `RAW` take the
place of their older ones there; all others stay as they are. A row has a section, a claim, the figure, its interval
(95 %, resampled pieces, unless the claim says otherwise), the unit, the command, the commit that holds the raw file,
the hash of the model's tensors where the raw file names one, and the source. The rows of a table also have its line and
its column. `older` says that the command is of the script of that commit, where the script of today has other options.
"""

import json
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

from shared import options

from musictx.files import replacing

Row = dict[str, Any]
Make = Callable[..., Row]  # `row` of a raw file
ROOT = Path(__file__).resolve().parent.parent
ROWS, RESULTS = ROOT / "studies/results.json", ROOT / "studies/results"
PAGE = ROOT / "docs/results.md"
PIANO, P, TEST = "The piano model", ", Holm's p", " --test"
SCORE = "python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --only likelihood"
GUIDE = "python studies/guidance.py --store outputs/stores/maestro --models piano --strengths 0.5 1 --draws 2"
GUIDE += " --json studies/results/guidance/piano.json pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
PLAY = "python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop --copies"
TOP = """# Results
`python studies/report.py` writes this page from `studies/results.json`. Intervals: 95 %, over pieces; of speeds: all; \
“–”: none. “At” a commit: a study as it was then, `git show COMMIT:studies/NAME.py`. A commit alone: the log of that \
commit says it. “Read once”: once for this model. Other models have been read on the same split. \
In tables of kinds of model, intervals are over works and random seeds. A seed of 9.6 s (piano: 10 s) saves nats of \
the music after it, against another piece's seed; a reset: against its last id alone. At once: the first 2.4 s (5 s). \
Later: the sixth 2.4 s (5 s). p: Holm's, over all kinds of a column.

| claim | figure | interval | command |
|---|---|---|---|
"""


def row(source: Path, command: str, section: str, claim: str, figure: list[float], unit: str = "", **cell: str) -> Row:
    value, low, high = [*figure, None, None][:3]
    tensors = re.search(r'"tensors_sha256": "(\w+)"', source.read_text(encoding="utf-8"))
    found = {"section": section, "claim": claim, "figure": value, "low": low, "high": high, "unit": unit}
    found |= {"command": command, "commit": None, "tensors_sha256": tensors and tensors[1]}
    return found | {"source": source.relative_to(ROOT).as_posix(), **cell}


def likelihood(found: Any, make: Make, split: str, *units: str) -> Iterator[Row]:
    for each in units:
        claim = f"piano model, MAESTRO, inputs of 2,048: {split}"
        yield make(SCORE + TEST * (split == "test"), PIANO, claim, found[f"per_{each}"], f"nats a {each}")


def guided(found: Any, make: Make) -> Iterator[Row]:
    yield make(GUIDE, PIANO, "seed guidance, by the rule of the script", [found["piano"]["chosen"]])
    for split in ("validation", "test"):
        for each in found["piano"].get(split, {"rows": []})["rows"]:
            kept = [statistics.mean(draw["retained"][i] for draw in each["draws"]) for i in range(3)]
            how = "without guidance" if each["strength"] is None else f"guidance {each['strength']:g}"
            claim = f"motifs of the seed that return, composers 1, chance 0: {how}, {split}"
            yield make(GUIDE + TEST * (split == "test"), PIANO, claim, kept)


MET: dict[str, tuple[str, ...]] = {  # of the figures of `alive.py`
    "continuations that wait over 3 s, where composers and seeds do not": ("stuck",),
    "notes": ("drawn", "notes"),
    "over 8 s": ("drawn", "over 8 s"),
    "composers' notes": ("true", "notes"),
    "composers' over 8 s": ("true", "over 8 s"),
    "half to twice the seed's pace": ("drawn", "half to twice the pace"),
    "composers' pace": ("true", "half to twice the pace"),
    "notes in the seed's scale": ("drawn", "in scale"),
    "composers' scale": ("true", "in scale"),
    "most copied of training, notes": ("drawn", "most copied of training"),
    "composers' most copied": ("true", "most copied of training"),
}


def met(found: Any, make: Make) -> Iterator[Row]:
    """What a person meets: of all continuations, then by the piece and the part of it that is the seed."""
    found = found["piano, default"]
    of = found["all"]
    for claim, figure in {
        f"waits over 3 s where composers and seeds have none, in {of['continuations']} continuations": of["stuck"],
        "notes over 8 s": of["drawn"]["over 8 s"],
        "composers' notes over 8 s": of["true"]["over 8 s"],
        "waits that the net ended": of["net, waits"],
        "notes that the net ended": of["net, notes"],
    }.items():
        yield make(PLAY, PIANO, f"held-out pieces, continued by the defaults: {claim}", [figure])
    title = "What a person meets: three continuations of 30 s of each held-out piece"
    for (name, keys), (seeds, figure) in product(MET.items(), found.items()):
        for key in keys:
            figure = figure[key]
        yield make(PLAY, title, f"{seeds}, {name}", [figure], line=seeds, column=name)


def kinds(found: Any, make: Make, split: str) -> Iterator[Row]:
    """All kinds and windows."""
    title = "Kinds of model and training windows on chorales: nats a token, three random seeds, test read once"
    command = "OMP_NUM_THREADS=1 python studies/baselines.py --store outputs/stores/jsb" + TEST * (split == "test")
    shown = {"whole pieces": "whole", "inputs as long as the window": "fresh"}
    for (name, label), (kind, of) in product(shown.items(), found.items()):
        column = f"{split}: {name}"
        if label in of:
            yield make(command, title, f"{kind}, {column}", of[label], "nats a token", line=kind, column=column)


def speeds(found: Any, make: Make, command: str) -> Iterator[Row]:
    """Of every contestant on one processor, the median and the extremes of its turns."""
    place = re.sub(r", torch .*", "", found["where"])
    bench = command.split("/")[1].partition(".")[0]
    for each in found["rows"]:
        if seconds := each["seconds"]:
            rates = [each["tokens"] / x for x in (statistics.median(seconds), max(seconds), min(seconds))]
            claim = f"{bench}, {place}: {each['name']}"
            yield make(lesser(found) + command, "Speed by processor", claim, rates, "tokens/s")


def lesser(found: Any) -> str:
    """The variables by which the processor of a raw file did less than it could, as they come before a command."""
    said = re.search(r"ONEDNN_MAX_CPU_ISA=\S+ ATEN_CPU_CAPABILITY=\S+", found["where"])
    return f"{said[0]} " if said else ""


SAMPLE = partial(speeds, command="musictx benchmarks/sampling.py threads=1 length=128 repeats=3 batches=[16]")
SMALL = "threads=2 length=512 batch=1 repeats=3 warm_up=1 loader_steps=1 workers=[0] positions=[relative]"
TRAIN = partial(speeds, command=f"musictx benchmarks/training.py {SMALL}")


def beside(found: Any, make: Make) -> Iterator[Row]:
    """How much longer whole commands take beside busy processes than a fair share of the cores would let them."""
    place = found["where"].partition(", 2 cores")[0]
    command = f"{lesser(found)}musictx benchmarks/beside.py"
    title = (
        "Beside one and four busy processes on two cores: the time that each command takes, where what a fair share "
    )
    title += f"of the cores would let it take is 1, median of {found['config']['repeats']} runs"
    for each in (row for row in found["rows"] if row["busy"]):
        name, column = each["command"].split()[1].strip(","), f"{place}, beside {each['busy']}"
        yield make(command, title, f"{name}, {column}", [each["lost"]], "times as long", line=name, column=column)


RAW: dict[str, Callable[[Any, Make], Iterator[Row]]] = {
    "piano-test.json": lambda found, make: likelihood(found, make, "test", "token"),
    "piano-validation.json": lambda found, make: likelihood(found, make, "validation", "token", "note", "second"),
    "guidance/piano.json": guided,
    "alive.json": met,
    "baselines/chorales-validation.json": lambda found, make: kinds(found, make, "validation"),
    "baselines/chorales-test.json": lambda found, make: kinds(found, make, "test"),
    **{f"training-{kind}.json": TRAIN for kind in ("avx512", "avx2")},
    **{f"neighbours-{kind}.json": beside for kind in ("avx512", "avx2")},
    **{f"sampling-{kind}.json": SAMPLE for kind in ("avx512", "avx2")},
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
    rows = [new.pop((each["source"], each["claim"], each["unit"]), each) for each in all_rows()]
    return [each | {"commit": commits.get(each["source"], each["commit"])} for each in [*rows, *new.values()]]


def said(value: float, unit: str) -> str:
    """The number as the page shows it: nats with three digits, all else with three figures."""
    if unit.startswith("nats a token"):
        return f"{value:.3f}".replace("-0.000", "0.000")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def interval_of(row: Row) -> str:
    return "" if row["low"] is None else f"{said(row['low'], row['unit'])} to {said(row['high'], row['unit'])}"


def is_older(row: Row) -> bool:
    """Whether the command is one of a study that is no longer there, or had other options then."""
    script = (row["command"] or "").partition("python ")[2].partition(" ")[0]
    return bool(row.get("older") or (script and not (ROOT / script).exists()))


def command_of(row: Row) -> str:
    if row["command"] is None:
        return row["source"] if row["commit"] is None else f"at {row['commit']}"
    return f"`{row['command']}`" + (f" at {row['commit']}" if is_older(row) else "")


def commands_of(rows: list[Row]) -> str:
    """What the rows are from, each once; of two commands that differ by `--test`, the one with it."""
    found = list(dict.fromkeys(map(command_of, rows)))
    tested = {command.replace(TEST, "") for command in found if TEST in command}
    return "; ".join(command for command in found if command not in tested)


def together(row: Row) -> tuple[str, str, str]:
    """Rows that are alike in these share a line: of one command, whose claims differ after the colon alone. A command
    with `--test` makes what it makes without; rows without a command may have several sources."""
    prefix, colon, _ = row["claim"].rpartition(": ")
    command = command_of(row).replace(TEST, "") if row["command"] else ""
    return prefix + colon or row["claim"], row["unit"], command


def lines_of(section: str, rows: list[Row]) -> Iterator[str]:
    yield f"| **{section}** | | | |"
    for (prefix, unit, _), group in groupby(rows, key=together):
        alike = list(group)
        claims = "; ".join(row["claim"].removeprefix(prefix) for row in alike)  # empty for a claim without a colon
        figures = "; ".join(said(row["figure"], unit) for row in alike)
        spans = [interval_of(row) for row in alike]
        intervals = "; ".join(span or "–" for span in spans) if any(spans) else ""
        yield f"| {prefix}{claims} | {f'{figures} {unit}'.strip()} | {intervals} | {commands_of(alike)} |"


def table(title: str, rows: list[Row]) -> Iterator[str]:
    """A line for each kind of model, a column for each measure, in a cell the figure, its interval and Holm's p."""
    columns = list(dict.fromkeys(row["column"] for row in rows))
    yield from ("", f"**{title}**: {commands_of(rows)}", "", f"| | {' | '.join(columns)} |")
    yield "|---" * (len(columns) + 1) + "|"
    known = dict.fromkeys(row["line"] for row in rows)
    for kind in sorted(known, key=lambda kind: re.split(r" \d", kind)[0]):  # windows of a kind stay in order
        cells = dict.fromkeys(columns, "")
        for each in (row for row in rows if row["line"] == kind):
            name, figure = each["column"], said(each["figure"], each["unit"])
            if each["claim"].endswith(P):
                cells[name] = cells[name].removesuffix(")") + f"; p {each['figure']:.3f})"
            else:
                cells[name] = f"{figure} ({span})" if (span := interval_of(each)) else figure
        yield f"| {kind} | {' | '.join(cells.values())} |"


def page(rows: list[Row]) -> str:
    """Sections in the order of their first rows, tables last."""
    sections: dict[str, list[Row]] = {}
    for each in rows:
        sections.setdefault(each["section"], []).append(each)
    lines: list[str] = []
    for is_table, of in ((False, lines_of), (True, table)):
        for section, group in sections.items():
            if ("line" in group[0]) == is_table:
                lines += of(section, group)
    return TOP + "\n".join(lines) + "\n"


def main() -> None:
    options(__doc__).parse_args()
    rows = refreshed()
    with replacing(ROWS) as written:
        lines = ",\n".join(f" {json.dumps(each, ensure_ascii=False)}" for each in rows)
        written.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    with replacing(PAGE) as written:
        written.write_text(page(rows), encoding="utf-8")
    print(f"{PAGE}: {len(page(rows).splitlines())} lines of {len(rows)} rows")


if __name__ == "__main__":
    main()
