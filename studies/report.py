"""Writes docs/results.md: every figure that the pages state, with its interval and the command that measured it.

    python studies/report.py

The figures are the rows of `studies/results.json`, and those of the piano model in the files that `evidence.py` makes.
A row has a section, a claim, the figure, its interval (95 %, resampled pieces, unless the claim says otherwise), the
unit, the command, the commit that holds the raw file, the hash of the model's tensors, and the source.
"""

import json
import statistics
from itertools import groupby
from pathlib import Path
from typing import Any

from musictx.files import replacing

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "studies/results"
PAGE = ROOT / "docs/results.md"
SCORE = "python studies/place_piano.py --score --bundle musictx/bundles/piano.safetensors"
GUIDE = "python studies/guidance.py --store outputs/stores/maestro --models piano --strengths 0.5 1 --draws 2"
GUIDE += " --json studies/results/guidance/piano.json pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
PLAY = "python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop --pieces 6 --draws 1 --copies"
CHOOSE = "python studies/place_piano.py --models musictx/bundles/piano.safetensors outputs/piano/bundles-fill"
CHOOSE += " --choose outputs/piano/store outputs/piano/pop --trained-on outputs/piano/store-asap-pop"
BASELINES = "OMP_NUM_THREADS=1 python studies/baselines.py"
PLANTED = "OMP_NUM_THREADS=1 python studies/planted_motif.py"
TOP = """# Results

`python studies/report.py` writes this page from `studies/results.json`. Intervals: 95 %, over pieces; of speeds: all.
“At” a commit: a removed study, `git show COMMIT:studies/NAME.py`. A commit alone: the log of that commit says it.

| claim | figure | interval | command |
|---|---|---|---|
"""


def row(claim: str, figure: list[float], unit: str, command: str, source: str) -> dict[str, Any]:
    value, low, high = [*figure, None, None][:3]
    found = {"section": "The piano model", "claim": claim, "figure": value, "low": low, "high": high, "unit": unit}
    return found | {"command": command, "commit": None, "source": f"studies/results/{source}"}


def piano(results: Path) -> list[dict[str, Any]]:
    """The rows of the piano model, of the files that are there."""
    rows = []
    for split in ("validation", "test"):
        if (path := results / f"piano-{split}.json").exists():
            found, of = json.loads(path.read_text(encoding="utf-8")), f"piano model, MAESTRO {split}, inputs of 2,048"
            for each in ("token", "note", "second") if split == "validation" else ("token",):
                nats = found[f"per_{each}"]
                rows.append(row(of, nats, f"nats a {each}", f"{SCORE} --test" if split == "test" else SCORE, path.name))
    if (path := results / "guidance/piano.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))["piano"]
        claim = "seed guidance, by the rule of the script"
        rows.append(row(claim, [found["chosen"]], "", GUIDE, "guidance/piano.json"))
        for split in ("validation", "test"):
            for each in found[split]["rows"]:
                draws = [draw["retained"] for draw in each["draws"]]
                kept = [statistics.mean(draw[i] for draw in draws) for i in range(3)]
                how = "without guidance" if each["strength"] is None else f"guidance {each['strength']:g}"
                claim = f"motifs of the seed that return, composers 1, chance 0: {how}, {split}"
                command = f"{GUIDE} --test" if split == "test" else GUIDE
                rows.append(row(claim, kept, "", command, "guidance/piano.json"))
    if (path := results / "alive.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))["piano, default"]["all"]
        for claim, key in (("waits over 3 s", "still 3 s"), ("notes over 8 s", "over 8 s")):
            claimed = f"{claim} in {found['continuations']} continuations; in the composers' music {found['true'][key]}"
            rows.append(row(claimed, [found["drawn"][key]], "", PLAY, path.name))
    if (path := results / "piano-shares.json").exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        (taken,) = [each for each in found["rows"] if each["share"] == found["chosen"]]
        claim = f"{found['chosen']:g} of the tuned piano, the share that the rule takes: 91 pop songs"
        rows.append(row(claim, [taken["pop"]], "nats a token", CHOOSE, path.name))
    return rows


def planted(results: Path) -> list[dict[str, Any]]:
    """The rows of the planted motif: the mean of the random seeds, the lowest and the highest of them."""
    if not (path := results / "planted-motif.json").exists():
        return []
    found, rows = json.loads(path.read_text(encoding="utf-8")), []
    for what in ("as it was", "transposed"):
        for length in ("33", "447", "513", "1023"):
            claim = (
                f"right pitches where a motif returns {what} after {int(length):,} ids (mean, extremes of five seeds)"
            )
            for kind, of in found.items():
                shares = [pitch_and_time[0] for pitch_and_time in of[what][length] if pitch_and_time]
                if shares:
                    figure = [round(x, 2) for x in (statistics.mean(shares), min(shares), max(shares))]
                    made = row(f"{claim}: {kind}", figure, "", PLANTED, path.name)
                    rows.append(made | {"section": "A planted motif"})
    return rows


FAR = "gain against a stranger, part 6"
SHOWN = {
    "validation": ("whole", "fresh", "gain against a stranger, part 1", FAR, "gain against a reset, part 1"),
    "test": ("whole", "fresh", FAR),
}
MEANINGS = {"whole": "whole pieces", "fresh": "inputs as long as the window", "gain": "a seed saves"}


def kinds(results: Path) -> list[dict[str, Any]]:
    """The rows of `baselines.py`: a figure of all kinds and windows; two of them less the table's, with Holm's p."""
    rows = []
    for music, store in (("chorales", "jsb"), ("piano", "maestro")):
        for split, shown in SHOWN.items():
            if not (path := results / f"baselines/{music}-{split}.json").exists():
                continue
            found = json.loads(path.read_text(encoding="utf-8"))
            source = f"baselines/{path.name}"
            command = f"{BASELINES} {music} --store outputs/stores/{store}{' --test' * (split == 'test')}"
            for label in shown:
                first = label.partition(" ")[0]
                claim = f"{music}, {split}, three random seeds, {label.replace(first, MEANINGS[first], 1)}"
                for name, of in found.items():
                    if label in of:
                        rows.append(row(f"{claim}: {name}", of[label], "nats a token", command, source))
                less = f"{label}, less the table"
                for name, of in found.items() if label in ("fresh", FAR) else ():
                    if less in of:
                        *figure, p = of[less]
                        claimed = f"{claim}, less the table (Holm's p): {name} ({p:.3f})"
                        rows.append(row(claimed, figure, "nats a token", command, source))
    return [row | {"section": "Kinds of model, each at its best"} for row in rows]


def all_rows() -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = json.loads((ROOT / "studies/results.json").read_text(encoding="utf-8"))
    return kept + kinds(RESULTS) + planted(RESULTS) + piano(RESULTS)


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


def page() -> str:
    lines, section = [], ""
    for (_, prefix, unit, command), group in groupby(all_rows(), key=together):
        rows = list(group)
        if rows[0]["section"] != section:
            section = rows[0]["section"]
            lines.append(f"| **{section}** | | | |")
        claims = "; ".join(row["claim"].removeprefix(prefix) for row in rows)  # empty for a claim without a colon
        figures = "; ".join(said(row["figure"], unit) for row in rows)
        spans = [f"{said(row['low'], unit)} to {said(row['high'], unit)}" for row in rows if row["low"] is not None]
        lines.append(f"| {prefix}{claims} | {f'{figures} {unit}'.strip()} | {'; '.join(spans)} | {command} |")
    return TOP + "\n".join(lines) + "\n"


def together(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Rows that are alike in these share a line: of one command, whose claims differ after the colon alone."""
    prefix, colon, _ = row["claim"].rpartition(": ")
    return row["section"], prefix + colon or row["claim"], row["unit"], command_of(row)


def main() -> None:
    with replacing(PAGE) as written:
        written.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {len(page().splitlines())} lines")


if __name__ == "__main__":
    main()
