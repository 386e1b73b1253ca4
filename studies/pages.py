"""How the rows of `studies/results.json` look on pages: docs/results.md, docs/results/NAME.md, and figures elsewhere.

A row belongs to the page that it names. One with a `key` can be linked: `[1.790](docs/results.md#piano-validation)` has
the figure of that row, `[1.790 (1.770 to 1.813)](…)` its interval too, both as this file writes them. One that `says` a
sentence is a claim of docs/results.md. `digits` are those after the point, where the unit does not say how many. A row
is history if its command no longer runs, or if its raw file is kept by git alone.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from about_pages import ABOUT

from musictx.errors import UserError

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
P, TEST = ", Holm's p", " --test"
CONF_INSIDE = ("531e1c4", "637e186")  # these find their settings in an installed package alone
PROGRAM = re.compile(r"(?<![\w/])(?=(?:python|musictx) )")
SPLIT = " split=test"  # of `musictx evaluate`
SHARED = re.compile(r"^.*: (?![^(]*\))")  # of claims that differ after their last colon, not one in brackets
TITLES = {
    "likelihood": "Likelihood of the models inside",
    "kinds": "Kinds of model, and what they keep of a seed",
    "motif": "A planted motif",
    "guidance": "How close music stays to its seed",
    "met": "What a person meets",
    "fills": "Filled gaps",
    "harmoniser": "Voices around voices",
    "labels": "Labels and likeness",
    "scores": "Scores, written and read again",
    "loudness": "Loudness for scores",
    "score-model": "The score model on held-out works",
    "speed": "Speed on processors",
    "gpu": "On a GPU",
    "training": "Training",
    "history": "Tried and left",
}
FIGURE = re.compile(
    r"\[(-?\d[\d,.]*(?:e[+-]\d+)?)( \(-?\d[^()\]]*\))?\]"
    rf"\(([^()\s#]*(?:results(?:/[\w-]+)?|\b(?:{'|'.join(TITLES)}))\.md)#([\w-]+)\)"
)
TOP = """# Results

What musictx claims, and where each figure is from. `python studies/report.py` makes this page from
`studies/results.json`, and the figures of all other pages. A figure links to the table of its subject.
Intervals are 95 %, over pieces; of speeds, all turns; “–” is none. *History* needs the code of that commit. The
command, given in a clone of this repository, puts it into a folder beside; give the paths of your data from there.

Where commands name stores: `musictx prepare jsb`, `prepare maestro` and `prepare pop909` with `out=outputs/stores/jsb`,
`…/maestro` and `…/pop`. `studies/score_music.py` makes `outputs/score_music/store`, `studies/quantised.py` makes
`outputs/quantised` and `outputs/apart`, and `musictx prepare folder outputs/quantised` makes `…/stores/quantised`.

| claim | figure | interval | measured by |
|---|---|---|---|
"""


def said(row: Row, name: str = "figure") -> str:
    """A number as pages show it: with the row's own digits, nats with three, all else with three figures."""
    value, unit = row[name], row["unit"]
    if (digits := row.get("digits")) is None and unit.startswith("nats a token"):
        digits = 3
    if digits is not None:
        text = f"{value:,.{digits}f}"
        return text.removeprefix("-") if not float(text.replace(",", "")) else text
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def interval_of(row: Row) -> str:
    return "" if row["low"] is None else f"{said(row, 'low')} to {said(row, 'high')}"


def with_unit(row: Row) -> str:
    return f"{said(row)} {row['unit']}".strip()


def filled(text: str, rows: Iterable[Row]) -> str:
    """A page with the figures of today. Raises UserError for a link to a row that is not there."""
    known = {row["key"]: row for row in rows if "key" in row}

    def link(found: re.Match[str]) -> str:
        _, interval, page, key = found.groups()
        if key not in known:
            raise UserError(f"[…]({page}#{key}): studies/results.json has no row with this key")
        row = known[key]
        name = page.rpartition("/")[2].removesuffix(".md")
        if name != row["page"] and not (name == "results" and "says" in row):
            raise UserError(f"[…]({page}#{key}): this row is on results/{row['page']}.md")
        if interval and row["low"] is None:
            raise UserError(f"[…]({page}#{key}): this row has no interval")
        return f"[{said(row)}{f' ({interval_of(row)})' if interval else ''}]({page}#{key})"

    return FIGURE.sub(link, text)


def is_history(row: Row) -> bool:
    """Whether the command is gone or had other options, or the raw file is kept by git alone. Papers have neither."""
    source, script = row["source"], (row["command"] or "").partition("python ")[2].partition(" ")[0]
    gone = bool(script) and not (ROOT / script).exists()
    by_git = "of that commit" in source
    return bool(row.get("older") or gone or by_git or not (row["command"] or "arXiv" in source))


def command_of(row: Row) -> str:
    """What a person types, also for history."""
    if row["command"] is None:
        return "" if row["commit"] is None else f"`git log -1 {row['commit']}` says it"
    if not is_history(row) or row["commit"] is None:
        return f"`{row['command']}`"
    there, more = f"../at-{row['commit']}", "cp -r conf musictx && " if row["commit"] in CONF_INSIDE else ""
    command = PROGRAM.sub("PYTHONPATH=. ", row["command"])
    return f"`git worktree add {there} {row['commit']} && cd {there} && {more}{command}`"


def raw_of(row: Row, up: str) -> str:
    """Where the raw figure is."""
    source, commit = row["source"], row["commit"]
    if (ROOT / source).is_file():
        return f"[{Path(source).name}]({up}{source})"
    if kept := re.match(r"(studies/\S+) of ", source):
        return f"`git show {commit}:{kept[1]}`"
    return "no raw file" if "which git keeps" in source or "which states" in source else source


def anchor(row: Row) -> str:
    return f'<a id="{row["key"]}"></a>' if "key" in row else ""


def claims_page(rows: list[Row]) -> str:
    """docs/results.md: a claim a line, by subject."""
    lines = []
    for name, title in TITLES.items():
        lines += [f"| **[{title}](results/{name}.md)** | | | |"]
        for row in (row for row in rows if row["page"] == name and "says" in row):
            how = command_of(row) or row["source"]
            how = f"*History*: {how}" if is_history(row) and row["commit"] else how
            figure = f"[{said(row)}](results/{name}.md#{row['key']}) {row['unit']}".strip()
            how += "; no raw file" if raw_of(row, "") == "no raw file" else ""
            lines += [f"| {anchor(row)}{row['says']} | {figure} | {interval_of(row) or '–'} | {how} |"]
    return TOP + "\n".join(lines) + "\n"


def subject_page(name: str, rows: list[Row]) -> str:
    """docs/results/NAME.md: all rows of a subject, what runs today first."""
    lines = [f"# {TITLES[name]}", "", "`python studies/report.py` writes this page. [All claims](../results.md)."]
    lines += ["", ABOUT[name]] if name in ABOUT else []
    for title, of in (
        ("", [row for row in rows if not is_history(row)]),
        ("## History", list(filter(is_history, rows))),
    ):
        if title and of:
            lines += ["", title]
        for table, group in _grouped(of, lambda row: row.get("table", "")):
            lines += wide(table, group) if table else [line for each in _by_command(group) for line in plain(each)]
    return "\n".join(lines) + "\n"


def _grouped(rows: list[Row], key: Any) -> Iterator[tuple[str, list[Row]]]:
    """Groups in the order of their first rows."""
    for name in dict.fromkeys(map(key, rows)):
        yield name, [row for row in rows if key(row) == name]


def _by_command(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows of one command, with the test split or without."""

    def validation(row: Row) -> str:
        return command_of(row).replace(TEST, "").replace(SPLIT, "") or row["source"]

    yield from (group for _, group in _grouped(rows, validation))


def heading(rows: list[Row]) -> str:
    """What the rows are from, each once; of two commands that differ by `--test`, the one with it, which does both."""
    found = list(dict.fromkeys(filter(None, map(command_of, rows))))
    tested = {command.replace(TEST, "") for command in found if TEST in command}
    raw = dict.fromkeys(raw_of(row, "../../") for row in rows)
    return "; ".join([*(command for command in found if command not in tested), *raw])


def plain(rows: list[Row]) -> Iterator[str]:
    """A line a row. Claims that are alike up to a colon have it once."""
    yield from ("", f"{heading(rows)}:", "", "| | figure | interval |", "|---|---|---|")
    for prefix, group in groupby(rows, key=lambda row: "".join(SHARED.findall(row["claim"]))):
        alike = list(group)
        together = prefix if len(alike) > 1 else ""
        if together:
            yield f"| **{together.removesuffix(': ')}** | | |"
        for row in alike:
            yield f"| {anchor(row)}{row['claim'].removeprefix(together)} | {with_unit(row)} | {interval_of(row)} |"


def wide(title: str, rows: list[Row]) -> Iterator[str]:
    """A line for each kind of model, a column for each measure, in a cell the figure, its interval and Holm's p."""
    columns = list(dict.fromkeys(row["column"] for row in rows))
    yield from ("", f"**{title}**: {heading(rows)}", "", f"| | {' | '.join(columns)} |")
    yield "|---" * (len(columns) + 1) + "|"
    known = dict.fromkeys(row["line"] for row in rows)
    for kind in sorted(known, key=lambda kind: re.split(r" \d", kind)[0]):  # windows of a kind stay in order
        cells = dict.fromkeys(columns, "")
        for each in (row for row in rows if row["line"] == kind):
            name = each["column"]
            if each["claim"].endswith(P):
                cells[name] = cells[name].removesuffix(")") + f"; p {each['figure']:.3f})"
            else:
                cells[name] = anchor(each) + (f"{said(each)} ({span})" if (span := interval_of(each)) else said(each))
        yield f"| {kind} | {' | '.join(cells.values())} |"


def pages_of(rows: list[Row]) -> dict[Path, str]:
    """Every page that has figures, as it shall be: results, their subjects, and the figures of README and guides."""
    found = {ROOT / "docs/results.md": claims_page(rows)}
    for name in TITLES:
        found[ROOT / f"docs/results/{name}.md"] = subject_page(name, [row for row in rows if row["page"] == name])
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path not in found:
            found[path] = filled(path.read_text(encoding="utf-8"), rows)
    return found
