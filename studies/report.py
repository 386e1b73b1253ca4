"""Writes docs/results.md: every figure that the pages state, with its interval and the command that measured it.

    python studies/report.py            # after the raw files are committed

The page has the rows of `studies/results.json`, and nothing else. First the rows of the raw files in `studies/results`
take the place of their older ones there. A row has a section, a claim, the figure, its interval (95 %, resampled
pieces, unless the claim says otherwise), the unit, the command, the commit that holds the raw file, the hash of the
model's tensors where the raw file names one, and the source. The rows of a table also have its line and its column.
"""

import json
import re
import statistics
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from musictx.files import replacing

ROOT = Path(__file__).resolve().parent.parent
ROWS, RESULTS = ROOT / "studies/results.json", ROOT / "studies/results"
PAGE = ROOT / "docs/results.md"
SCORE = "python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --only likelihood"
GUIDE = "python studies/guidance.py --store outputs/stores/maestro --models piano --strengths 0.5 1 --draws 2"
GUIDE += " --json studies/results/guidance/piano.json pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
PLAY = "python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop --copies"
CHOOSE = "python studies/piano.py --archive maestro-v3.0.0-midi.zip --asap asap.zip --pop pop909.zip --device cuda"
CHOOSE += " --results studies/results"
TRAIN = "musictx benchmarks/training.py device=cuda batch=8 public_compiled=true workers=[1]"
FOREIGN = "python studies/foreign.py --fakes js-fakes.zip --polish polish-satb.zip trainer.accelerator=cuda"
P = ", Holm's p"
BASELINES = "OMP_NUM_THREADS=1 python studies/baselines.py"
PLANTED = "OMP_NUM_THREADS=1 python studies/planted_motif.py"
TOP = """# Results

`python studies/report.py` writes this page from `studies/results.json`. Intervals: 95 %, over pieces; of speeds: all.
“At” a commit: a removed study, `git show COMMIT:studies/NAME.py`. A commit alone: the log of that commit says it.
In tables of kinds of model, intervals are over works and random seeds. A seed of 9.6 s (piano: 10 s) saves nats of the
music after it, against another piece's seed; a reset: against its last id alone. At once: the first 2.4 s (5 s).
Later: the sixth 2.4 s (5 s). p: Holm's, over all kinds of a column.

| claim | figure | interval | command |
|---|---|---|---|
"""


def row(claim: str, figure: list[float], unit: str, command: str, path: Path) -> dict[str, Any]:
    value, low, high = [*figure, None, None][:3]
    found = {"section": "The piano model", "claim": claim, "figure": value, "low": low, "high": high, "unit": unit}
    tensors = re.search(r'"tensors_sha256": "(\w+)"', path.read_text(encoding="utf-8"))
    found |= {"command": command, "commit": None, "tensors_sha256": tensors and tensors[1]}
    return found | {"source": path.relative_to(ROOT).as_posix()}


def piano(results: Path) -> list[dict[str, Any]]:
    """The rows of the piano model, of the files that are there."""
    rows = []
    for split in ("validation", "test"):
        if (path := results / f"piano-{split}.json").exists():
            found, of = json.loads(path.read_text(encoding="utf-8")), f"piano model, MAESTRO {split}, inputs of 2,048"
            for each in ("token", "note", "second") if split == "validation" else ("token",):
                nats = found[f"per_{each}"]
                rows.append(row(of, nats, f"nats a {each}", f"{SCORE} --test" if split == "test" else SCORE, path))
    if (path := results / "guidance/piano.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))["piano"]
        claim = "seed guidance, by the rule of the script"
        rows.append(row(claim, [found["chosen"]], "", GUIDE, path))
        for split in ("validation", "test"):
            for each in found.get(split, {"rows": []})["rows"]:
                draws = [draw["retained"] for draw in each["draws"]]
                kept = [statistics.mean(draw[i] for draw in draws) for i in range(3)]
                how = "without guidance" if each["strength"] is None else f"guidance {each['strength']:g}"
                claim = f"motifs of the seed that return, composers 1, chance 0: {how}, {split}"
                command = f"{GUIDE} --test" if split == "test" else GUIDE
                rows.append(row(claim, kept, "", command, path))
    if (path := results / "alive.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))["piano, default"]["all"]
        n = found["continuations"]
        for claim, figure in {
            f"waits over 3 s where composers and seeds have none, in {n} continuations": found["stuck"],
            "notes over 8 s": found["drawn"]["over 8 s"],
            "composers' notes over 8 s": found["true"]["over 8 s"],
            "waits that the net ended": found["net, waits"],
            "notes that the net ended": found["net, notes"],
        }.items():
            rows.append(row(f"held-out pieces, continued by the defaults: {claim}", [figure], "", PLAY, path))
    if (path := results / "piano-shares.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        of, nats = "the piano, by the share of its last stage: ", {}
        for each in found["rows"]:
            nats[f"{each['share']:g}, MAESTRO hour"] = each["hour"]
            if each["share"] == found["chosen"]:
                nats[f"{each['share']:g}, which the rule takes, 91 pop songs"] = each["pop"]
        rows += [row(of + which, [figure], "nats a token", CHOOSE, path) for which, figure in nats.items()]
    return rows


COMPARED = "waits over 3 s where composers and seeds have none, notes over 8 s in a thousand, half to twice the pace"
ALONE = {  # of `alive.py`: the raw file, what was given beside the stores, and the names of what was compared
    "alive-remedies.json": (
        "each remedy alone",
        "--ways all",
        {"both": "piano, default", "no net": "piano, no net", "endings kept": "piano, endings kept"}
        | {"neither": "piano, neither"},
    ),
    "alive-filters.json": (
        "filters",
        "--bundles piano minp03.safetensors topp95.safetensors",
        {"min-p 0.01": "piano, default", "min-p 0.03": "minp03.safetensors, default"}
        | {"top-p 0.95": "topp95.safetensors, default"},
    ),
}


def alone(results: Path) -> list[dict[str, Any]]:
    """What continuations are like without a remedy, or with other filters."""
    rows = []
    for file, (what, words, names) in ALONE.items():
        if (path := results / file).exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            for name, key in names.items():
                of = found[key]["all"]
                claim = f"{of['continuations']} continuations, {what} ({COMPARED}): {name}"
                drawn, command = of["drawn"], f"{PLAY.removesuffix(' --copies')} {words} --pieces 6 --draws 1"
                for which, figure in {
                    "waits": of["stuck"],
                    "notes": 1000 * drawn["over 8 s"] / drawn["notes"],
                    "pace": drawn["half to twice the pace"],
                }.items():
                    rows.append(row(f"{claim}, {which}", [figure], "", command, path))
    return rows


def gpu(results: Path) -> list[dict[str, Any]]:
    """The rows of a lent GPU: steps (the median, the slowest, the fastest), the piano's training, checks, folds."""
    rows = []
    if (path := results / "training-h100.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        tokens = found["config"]["batch"] * found["config"]["length"]
        for each in sorted(found["rows"], key=lambda each: each["attention_dropout"]):
            name = each["name"].partition(", attention dropout")[0].removeprefix("musictx, ")
            name = name.replace("relative_fourier", "Fourier").replace("relative", "learned table")
            claim = f"training on one H100: {name}, dropout of {each['attention_dropout']:g} on attention weights"
            rates = [tokens / f(each["seconds"]) for f in (statistics.median, max, min)]
            rows.append(row(claim, rates, "tokens/s", TRAIN, path))
    if (path := results / "piano-training-h100.json").exists():
        stages = json.loads(path.read_text(encoding="utf-8"))["stages"]
        rates = [each["train/tokens_per_s"] for stage in stages for each in stage["rows"]]
        claim = "the piano model, which sees the keyboard, through `trainer.compile`"
        rows.append(row(claim, [statistics.median(rates) / 1e6], "million tokens/s", CHOOSE, path))
    for file, what in (
        ("check-h100.txt", "H100, all but `triton`"),
        ("check-h200.txt", "H200, `parts=[kernels]`, with `triton`"),
    ):
        if (path := results / file).exists():
            text = path.read_text(encoding="utf-8")
            held, failed = (len(re.findall(rf"  {word}\b", text)) for word in ("ok", "FAILED"))
            claim = f"checks that held: {what}, {failed} failed"
            rows.append(row(claim, [held], "", "musictx check device=cuda", path))
    if (path := results / "foreign.json").exists():
        for recipe, found in json.loads(path.read_text(encoding="utf-8")).items():
            form, steps = recipe.split("'")[1], float(recipe.partition("length=")[2].partition(",")[0]) / 3
            claim = f"other music for four voices and Bach, full size, five folds: {form}, {steps:.2f} of all steps"
            rows.append(row(claim, [found["nll"]], "nats a token", FOREIGN, path))
    return [each | {"section": "On a GPU"} for each in rows]


class Column(NamedTuple):
    """Of a table: each figure is a mean, its lowest and highest, and perhaps Holm's p; None where there is none."""

    name: str
    figures: dict[str, list[float] | None]  # by kind of model
    command: str
    path: Path


class Table(NamedTuple):
    """Figures side by side: a line for each kind of model."""

    title: str
    unit: str
    columns: list[Column]


def planted(results: Path) -> list[Table]:
    """The planted motif: the mean of the random seeds, the lowest and the highest of them."""
    if not (path := results / "planted-motif.json").exists():
        return []
    found, columns = json.loads(path.read_text(encoding="utf-8")), []
    for what in ("as it was", "transposed"):
        for n in ("33", "447", "513", "1023"):
            figures: dict[str, list[float] | None] = {}
            for kind, of in found.items():
                shares = [pitch_and_time[0] for pitch_and_time in of[what][n] if pitch_and_time]
                each = [statistics.mean(shares), min(shares), max(shares)] if shares else []
                figures[kind] = [round(x, 2) for x in each] or None
            columns.append(Column(f"{what}, after {int(n):,} ids", figures, PLANTED, path))
    return [
        Table("A planted motif: right pitches where it returns, mean and extremes of five random seeds", "", columns)
    ]


MET = {  # of the figures of `alive.py`
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


def met(results: Path) -> list[Table]:
    """What a person meets, by the piece and the part of it that is the seed."""
    if not (path := results / "alive.json").exists():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))["piano, default"]
    columns = []
    for name, keys in MET.items():
        figures: dict[str, list[float] | None] = {}
        for seeds, of in found.items():
            for key in keys:
                of = of[key]
            figures[seeds] = [of]
        columns.append(Column(name, figures, PLAY, path))
    return [Table("What a person meets: three continuations of 30 s of each held-out piece", "", columns)]


STRANGER, RESET = "gain against a stranger, part", "gain against a reset, part 1"
SHOWN = {  # of the figures of `baselines.py`, by split
    "validation": {
        "whole pieces": "whole",
        "inputs as long as the window": "fresh",
        "a seed saves at once": f"{STRANGER} 1",
        "at once, against a reset": RESET,
        "later": f"{STRANGER} 6",
    },
    "test": {
        "whole pieces": "whole",
        "inputs as long as the window": "fresh",
        "these less the table": "fresh, less the table",
        "a seed saves later": f"{STRANGER} 6",
        "later, less the table": f"{STRANGER} 6, less the table",
    },
}


def kinds(results: Path) -> list[Table]:
    """The figures of all kinds and windows; on test also how they differ from the table's."""
    tables = []
    for music, store in (("chorales", "jsb"), ("piano", "maestro")):
        columns = []
        for split, shown in SHOWN.items():
            if (path := results / f"baselines/{music}-{split}.json").exists():
                found = json.loads(path.read_text(encoding="utf-8"))
                command = f"{BASELINES} {music} --store outputs/stores/{store}{' --test' * (split == 'test')}"
                for name, label in shown.items():
                    figures = {kind: of.get(label) for kind, of in found.items()}
                    columns.append(Column(f"{split}: {name}", figures, command, path))
        if columns:
            title = f"Kinds of model and training windows on {music}: nats a token, three random seeds, test read once"
            tables.append(Table(title, "nats a token", columns))
    return tables


def cells(results: Path) -> list[dict[str, Any]]:
    """The rows of the tables; Holm's p is a row as well."""
    rows = []
    for table in met(results) + planted(results) + kinds(results):
        for name, figures, command, path in table.columns:
            for kind, figure in figures.items():
                for what, values in (("", (figure or [])[:3]), (P, (figure or [])[3:])):
                    if values:
                        made = row(f"{kind}, {name}{what}", values, "" if what else table.unit, command, path)
                        rows.append(made | {"section": table.title, "line": kind, "column": name})
    return rows


def collected() -> list[dict[str, Any]]:
    """The rows of the raw files."""
    return piano(RESULTS) + alone(RESULTS) + gpu(RESULTS) + cells(RESULTS)


def all_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(ROWS.read_text(encoding="utf-8"))
    return rows


def refreshed() -> list[dict[str, Any]]:
    """All rows, those of raw files as these are now, each with the commit of its file. Exits the script if a raw file
    is not committed."""
    made, commits = collected(), {}
    for source in {each["source"] for each in made}:
        git = ["git", "-C", str(ROOT)]
        if subprocess.run([*git, "status", "--porcelain", source], capture_output=True, check=True).stdout:
            raise SystemExit(f"{source} is not committed: commit it, then write the page")
        log = subprocess.run([*git, "log", "-1", "--format=%h", "--", source], capture_output=True, check=True)
        commits[source] = log.stdout.decode().strip()
    kept = [each for each in all_rows() if each["source"] not in commits]
    return kept + [each | {"commit": commits[each["source"]]} for each in made]


def said(value: float | None, unit: str) -> str:
    """The number as the page shows it: nats with three digits, all else with three figures."""
    if value is None:
        return ""
    if unit.startswith("nats a token"):
        return f"{value:.3f}".replace("-0.000", "0.000")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def command_of(row: dict[str, Any]) -> str:
    if row["command"] is None:
        return row["source"] if row["commit"] is None else f"at {row['commit']}"
    script = row["command"].partition("python ")[2].partition(" ")[0]
    gone = script and not (ROOT / script).exists()
    return f"`{row['command']}`" + (f" at {row['commit']}" if gone else "")


def page(rows: list[dict[str, Any]]) -> str:
    lines, section = [], ""
    for (_, prefix, unit, command), group in groupby((each for each in rows if "line" not in each), key=together):
        alike = list(group)
        if alike[0]["section"] != section:
            section = alike[0]["section"]
            lines.append(f"| **{section}** | | | |")
        claims = "; ".join(row["claim"].removeprefix(prefix) for row in alike)  # empty for a claim without a colon
        figures = "; ".join(said(row["figure"], unit) for row in alike)
        spans = [f"{said(row['low'], unit)} to {said(row['high'], unit)}" for row in alike if row["low"] is not None]
        lines.append(f"| {prefix}{claims} | {f'{figures} {unit}'.strip()} | {'; '.join(spans)} | {command} |")
    for title, group in groupby((each for each in rows if "line" in each), key=lambda row: row["section"]):
        lines += table(title, list(group))
    return TOP + "\n".join(lines) + "\n"


def table(title: str, rows: list[dict[str, Any]]) -> list[str]:
    """A line for each kind of model, a column for each measure."""
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(row["command"] for row in rows))
    columns = list(dict.fromkeys(row["column"] for row in rows))
    lines = ["", f"**{title}**: {commands}", "", f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    known = dict.fromkeys(row["line"] for row in rows)
    for kind in sorted(known, key=lambda kind: re.split(r" \d", kind)[0]):  # windows of a kind stay in order
        of = {row["claim"]: row for row in rows if row["line"] == kind}
        spans = [spanned(of.get(f"{kind}, {name}"), of.get(f"{kind}, {name}{P}")) for name in columns]
        lines.append(f"| {kind} | {' | '.join(spans)} |")
    return lines


def spanned(row: dict[str, Any] | None, p: dict[str, Any] | None) -> str:
    """A figure, its interval, and Holm's p if there is one."""
    if row is None:
        return ""
    value, low, high = (said(row[key], row["unit"]) for key in ("figure", "low", "high"))
    if not low:
        return value
    return f"{value} ({low} to {high}" + (f"; p {p['figure']:.3f})" if p else ")")


def together(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Rows that are alike in these share a line: of one command, whose claims differ after the colon alone."""
    prefix, colon, _ = row["claim"].rpartition(": ")
    return row["section"], prefix + colon or row["claim"], row["unit"], command_of(row)


def main() -> None:
    rows = refreshed()
    with replacing(ROWS) as written:
        lines = ",\n".join(f" {json.dumps(each, ensure_ascii=False)}" for each in rows)
        written.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    with replacing(PAGE) as written:
        written.write_text(page(rows), encoding="utf-8")
    print(f"{PAGE}: {len(page(rows).splitlines())} lines of {len(rows)} rows")


if __name__ == "__main__":
    main()
