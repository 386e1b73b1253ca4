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

from musictx.files import replacing

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
ROWS, RESULTS = ROOT / "studies/results.json", ROOT / "studies/results"
PAGE = ROOT / "docs/results.md"
SCORE = "python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --only likelihood"
GUIDE = "python studies/guidance.py --store outputs/stores/maestro --models piano --strengths 0.5 1 --draws 2"
GUIDE += " --json studies/results/guidance/piano.json pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
PLAY = "python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop --copies"
CHOOSE = "python studies/piano.py --archive maestro-v3.0.0-midi.zip --asap asap.zip --pop pop909.zip --device cuda"
CHOOSE += " --results studies/results"
FOREIGN = "python studies/foreign.py --fakes js-fakes.zip --polish polish-satb.zip --test"
BASELINES = "OMP_NUM_THREADS=1 python studies/baselines.py"
LABELS = "OMP_NUM_THREADS=1 python studies/labels.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip"
PLANTED = "OMP_NUM_THREADS=1 python studies/planted_motif.py"
LENGTHS = "OMP_NUM_THREADS=1 python studies/lengths.py --results studies/results"
PIANO, P = "The piano model", ", Holm's p"
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


def row(path: Path, command: str, section: str, claim: str, figure: list[float], unit: str = "", **cell: str) -> Row:
    value, low, high = [*figure, None, None][:3]
    tensors = re.search(r'"tensors_sha256": "(\w+)"', path.read_text(encoding="utf-8"))
    found = {"section": section, "claim": claim, "figure": value, "low": low, "high": high, "unit": unit}
    found |= {"command": command, "commit": None, "tensors_sha256": tensors and tensors[1]}
    return found | {"source": path.relative_to(ROOT).as_posix(), **cell}


Make = Callable[..., Row]  # `row` of a raw file


def likelihood(found: Any, make: Make, split: str, *units: str) -> Iterator[Row]:
    for each in units:
        claim = f"piano model, MAESTRO, inputs of 2,048: {split}"
        yield make(SCORE + " --test" * (split == "test"), PIANO, claim, found[f"per_{each}"], f"nats a {each}")


def guided(found: Any, make: Make) -> Iterator[Row]:
    yield make(GUIDE, PIANO, "seed guidance, by the rule of the script", [found["piano"]["chosen"]])
    for split in ("validation", "test"):
        for each in found["piano"].get(split, {"rows": []})["rows"]:
            kept = [statistics.mean(draw["retained"][i] for draw in each["draws"]) for i in range(3)]
            how = "without guidance" if each["strength"] is None else f"guidance {each['strength']:g}"
            claim = f"motifs of the seed that return, composers 1, chance 0: {how}, {split}"
            yield make(GUIDE + " --test" * (split == "test"), PIANO, claim, kept)


def shares(found: Any, make: Make) -> Iterator[Row]:
    for each in found["rows"]:
        nats = {f"{each['share']:g}, MAESTRO hour": each["hour"]}
        if each["share"] == found["chosen"]:
            nats[f"{each['share']:g}, which the rule takes, 91 pop songs"] = each["pop"]
        for which, figure in nats.items():
            claim = f"the piano, by the share of its last stage: {which}"
            yield make(CHOOSE, PIANO, claim, [figure], "nats a token")


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


def foreign(found: Any, make: Make) -> Iterator[Row]:
    for recipe, of in found.items():
        what, nats, music = recipe, of.get("per_token"), "other music for four voices and Bach, full size"
        if nats is None:  # of the folds
            form, steps = recipe.split("'")[1], float(recipe.partition("length=")[2].partition(",")[0]) / 3
            what = f"five folds, {steps:.2f} of the bundle's steps, {form}" + ", again" * recipe.endswith("again")
            what, nats = what + ", mean of three last stages" * ("averaged=True" in recipe), [of["nll"]]
        command = f"{FOREIGN} --form-only" if "on a CPU" in recipe else f"{FOREIGN} trainer.accelerator=cuda"
        yield make(command, "The chorale model", f"{music}: {what}", nats, "nats a token")


def planted(found: Any, make: Make) -> Iterator[Row]:
    title = "A planted motif: right pitches where it returns, mean and extremes of five random seeds"
    for what, n, (kind, of) in product(("as it was", "transposed"), ("33", "447", "513", "1023"), found.items()):
        if right := [pitch_and_time[0] for pitch_and_time in of[what][n] if pitch_and_time]:
            figure = [round(x, 2) for x in (statistics.mean(right), min(right), max(right))]
            name = f"{what}, after {int(n):,} ids"
            yield make(PLANTED, title, f"{kind}, {name}", figure, line=kind, column=name)


def by_length(found: Any, make: Make) -> Iterator[Row]:
    place = LENGTHS, "Tried and left"
    for name, of in ((name, of) for name, of in found.items() if "nats" in of):
        claim = f"recurrent encoder-decoder, {of['steps']} steps of windows of 16 quarters, mean of two random seeds"
        claim += f", true lower voices, validation: {name}"
        if paired := " less " in name:
            claim += ", paired"
        for n, nats in of["nats"].items():
            yield make(*place, f"{claim}, {n} quarters", nats, "nats a token")
        for n, seeds in of["seeds"].items() if paired else ():
            for k, seed in enumerate(seeds):
                yield make(*place, f"{claim}, {n} quarters, random seed {k}", [seed], "nats a token")
    claim = "a window forward and backward, one core, median of five, 0.8 to 1.6 million parameters"
    for (name, of), n in product(found.items(), ("64", "512", "4096")):
        if "s" in of:
            yield make(*place, f"{claim}: {name}, {int(n):,} ids", [1000 * s for s in of["s"][n]], "ms")


OF = {"1": "13 performances", "10": "130", "100": "100 songs", "notes": "700 songs", "composers": "all 788"}


def labelled(found: Any, make: Make) -> Iterator[Row]:
    """From so many songs or performances: accuracy and macro F1, of clips, and of whole pieces."""
    title = (
        "What pre-training is worth for labels: 80 CPU s each or as said, own rate, one random seed; by song or work"
    )
    for name, runs in found.items():
        task, _, steps = name.partition("-")
        command = f"{LABELS} --steps {steps} --pairs outputs/masked" if steps else LABELS
        for run, of in ((run, of) for run, of in runs.items() if "test" in of):  # the others chose a rate
            kind, size = run.rsplit(", ", 1)
            line = f"{kind}, {steps} steps on a GPU" if steps else kind
            n = "10 songs" if (task, size) == ("notes", "10") else OF[task if size == "all" else size]
            for split, measure in product(("test", "whole"), ("accuracy", "macro F1")):
                column = f"{task}, {n}{', whole pieces' * (split == 'whole')}, {measure}"
                if split in of:
                    yield make(command, title, f"{line}, {column}", of[split][measure], line=line, column=column)


def by_hand(found: Any, make: Make) -> Iterator[Row]:
    """Of notes both those that the models of 80 s read, and those of whole songs."""
    command, claim = "OMP_NUM_THREADS=1 python studies/hand_made.py", "the same labels, pieces and measures"
    for (name, of), split, measure in product(found.items(), ("test", "whole"), ("accuracy", "macro F1")):
        if split in of:
            what = name.replace("the most frequent label of the training", of.get("always", ""))
            what += ", whole songs" * (split == "whole") + f", {measure}"
            yield make(command, "Tried and left", f"{claim}, without a model: {what}", of[split][measure])


def transposed(found: Any, make: Make) -> Iterator[Row]:
    claim = "the chorale recipe, chosen with transposition, before filling, three random seeds (held out: one)"
    for name, of in found.items():
        nats = {"": of["nll"]}
        if "seeds" in of:
            seeds = [seed["nll"] for seed in of["seeds"]]
            nats |= {", lowest": [min(seeds)], ", highest": [max(seeds)]}
        else:
            nats = {f", temperature {of['temperature']:g}": [min(of["nll"])]}
        for which, nll in nats.items():
            command = "python studies/transposition.py --test trainer.accelerator=cuda"
            yield make(command, "The chorale model", f"{claim}: {name}{which}", nll, "nats a token")


STRANGER = "gain against a stranger, part"
SHOWN: dict[str, dict[str, str]] = {  # of the figures of `baselines.py`, by split
    "validation": {
        "whole pieces": "whole",
        "inputs as long as the window": "fresh",
        "a seed saves at once": f"{STRANGER} 1",
        "at once, against a reset": "gain against a reset, part 1",
        "later": f"{STRANGER} 6",
    },
    "test": {
        "whole pieces": "whole",
        "inputs as long as the window": "fresh",
        "these less the table": "fresh, less the table",
        "a seed saves later": f"{STRANGER} 6",
        "later, less the table": f"{STRANGER} 6, less the table",
        "at once, against a reset": "gain against a reset, part 1",
        "later, against a reset": "gain against a reset, part 6",
    },
}


def kinds(found: Any, make: Make, music: str, split: str) -> Iterator[Row]:
    """All kinds and windows; on test also how they differ from the table. Holm's p is a row as well."""
    title = f"Kinds of model and training windows on {music}: nats a token, three random seeds, test read once"
    store = {"chorales": "jsb", "piano": "maestro --archive maestro-v3.0.0-midi.zip"}[music]
    command = f"{BASELINES} {music} --store outputs/stores/{store}" + " --test" * (split == "test")
    for (shown, label), (kind, of) in product(SHOWN[split].items(), found.items()):
        name, figure = f"{split}: {shown}", of.get(label) or []
        for what, values, unit in (("", figure[:3], "nats a token"), (P, figure[3:], "")):
            if values:
                yield make(command, title, f"{kind}, {name}{what}", values, unit, line=kind, column=name)


RAW: dict[str, Callable[[Any, Make], Iterator[Row]]] = {
    "piano-test.json": lambda found, make: likelihood(found, make, "test", "token"),
    "piano-validation.json": lambda found, make: likelihood(found, make, "validation", "token", "note", "second"),
    "guidance/piano.json": guided,
    "alive.json": met,
    "piano-shares.json": shares,
    "foreign.json": foreign,
    "planted-motif.json": planted,
    "labels.json": labelled,
    "hand-made.json": by_hand,
    "transposition.json": transposed,
    "lengths.json": by_length,
    **{
        f"baselines/{music}-{split}.json": partial(kinds, music=music, split=split)
        for music, split in product(("chorales", "piano"), SHOWN)
    },
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
    log = subprocess.run([*git, "log", "-1", "--format=%h", "--", source], capture_output=True, check=True)
    return log.stdout.decode().strip()


def refreshed() -> list[Row]:
    """All rows; those of raw files as these are now, where their older ones were, each with the commit of its file."""

    def place(row: Row) -> tuple[str, str]:
        return row["source"], row["section"]

    new: dict[tuple[str, str], list[Row]] = {}
    for each in collected():
        new.setdefault(place(each), []).append(each)
    commits = {source: commit_of(source) for source, _ in new}
    rows: list[Row] = []
    left = dict(new)
    for each in all_rows():
        rows += left.pop(place(each), []) if each["source"] in commits else [each]
    rows += [each for found in left.values() for each in found]
    return [each | {"commit": commits.get(each["source"], each["commit"])} for each in rows]


def said(value: float | None, unit: str) -> str:
    """The number as the page shows it: nats with three digits, all else with three figures."""
    if value is None:
        return ""
    if unit.startswith("nats a token"):
        return f"{value:.3f}".replace("-0.000", "0.000")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def is_older(row: Row) -> bool:
    """Whether the command is one of a study that is no longer there, or had other options then."""
    script = (row["command"] or "").partition("python ")[2].partition(" ")[0]
    return bool(row.get("older") or (script and not (ROOT / script).exists()))


def command_of(row: Row) -> str:
    if row["command"] is None:
        return row["source"] if row["commit"] is None else f"at {row['commit']}"
    return f"`{row['command']}`" + (f" at {row['commit']}" if is_older(row) else "")


def interval_of(row: Row) -> str:
    return "" if row["low"] is None else f"{said(row['low'], row['unit'])} to {said(row['high'], row['unit'])}"


def page(rows: list[Row]) -> str:
    lines, section = [], ""
    for (_, prefix, unit, _), group in groupby((each for each in rows if "line" not in each), key=together):
        alike = list(group)
        if alike[0]["section"] != section:
            section = alike[0]["section"]
            lines.append(f"| **{section}** | | | |")
        claims = "; ".join(row["claim"].removeprefix(prefix) for row in alike)  # empty for a claim without a colon
        figures = "; ".join(said(row["figure"], unit) for row in alike)
        spans = [interval_of(row) for row in alike]
        intervals = "; ".join(span or "–" for span in spans) if any(spans) else ""
        lines.append(f"| {prefix}{claims} | {f'{figures} {unit}'.strip()} | {intervals} | {commands_of(alike)} |")
    for title, group in groupby((each for each in rows if "line" in each), key=lambda row: row["section"]):
        lines += table(title, list(group))
    return TOP + "\n".join(lines) + "\n"


def table(title: str, rows: list[Row]) -> list[str]:
    """A line for each kind of model, a column for each measure."""
    columns = list(dict.fromkeys(row["column"] for row in rows))
    lines = ["", f"**{title}**: {commands_of(rows)}", "", f"| | {' | '.join(columns)} |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    known = dict.fromkeys(row["line"] for row in rows)
    for kind in sorted(known, key=lambda kind: re.split(r" \d", kind)[0]):  # windows of a kind stay in order
        of = {row["claim"]: row for row in rows if row["line"] == kind}
        spans = [spanned(of.get(f"{kind}, {name}"), of.get(f"{kind}, {name}{P}")) for name in columns]
        lines.append(f"| {kind} | {' | '.join(spans)} |")
    return lines


def spanned(row: Row | None, p: Row | None) -> str:
    """A figure, its interval, and Holm's p if there is one."""
    if row is None:
        return ""
    value, low, high = (said(row[key], row["unit"]) for key in ("figure", "low", "high"))
    if not low:
        return value
    return f"{value} ({low} to {high}" + (f"; p {p['figure']:.3f})" if p else ")")


def together(row: Row) -> tuple[str, str, str, str]:
    """Rows that are alike in these share a line: of one command, whose claims differ after the colon alone. A command
    with `--test` makes what it makes without; rows without a command may have several sources."""
    prefix, colon, _ = row["claim"].rpartition(": ")
    command = command_of(row).replace(" --test", "") if row["command"] else ""
    return row["section"], prefix + colon or row["claim"], row["unit"], command


def commands_of(rows: list[Row]) -> str:
    """What the rows are from, each once; of two commands that differ by `--test`, the one with it."""
    found = list(dict.fromkeys(map(command_of, rows)))
    tested = {command.replace(" --test", "") for command in found if " --test" in command}
    return "; ".join(command for command in found if command not in tested)


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
