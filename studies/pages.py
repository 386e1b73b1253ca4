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

from musictx.errors import UserError

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
P, TEST = ", Holm's p", " --test"
CONF_INSIDE = ("531e1c4", "637e186")  # these find their settings in an installed package alone
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
ABOUT = {
    "likelihood": "The stores are of `musictx prepare jsb Jsb16thSeparated.json` and "
    "`musictx prepare maestro maestro-v3.0.0-midi.zip`. “Read once”: once for this model; other models have been read "
    "on the same split.",
    "kinds": "In tables, intervals are over works and random seeds. A seed of 9.6 s (piano: 10 s) saves nats of the "
    "music after it, against another piece's seed; a reset: against its last id alone. At once: the first 2.4 s (5 s). "
    "Later: the sixth 2.4 s (5 s). p: Holm's, over all kinds of a column.\n\n"
    "![Nats a token by kind of model and training window: chorales above, piano below, papers' figures as dotted lines]"
    "(kinds.png)\n\n"
    "*Nats a token of validation, inputs as long as the window, with 95 % intervals; coloured points are history, from "
    "the two tables below.*\n\n"
    "![Nats a token that a seed saves, by the seconds since its end: a line for each kind of model](seed-gain.png)\n\n"
    "*Against another piece's seed, by 95 % intervals: history too. A model that predicts badly has more to save, as "
    "sines of 2,048 do, so this is no ranking of kinds.*\n\n"
    "By compute: every kind has as many parameters and as many minutes of one core, an AMD EPYC with AVX2, "
    "and the window, rate, dropout and optimizer that validation chose for it, by the rule in `studies/compute.py`. "
    "Three random seeds; intervals over pieces and seeds. A Transformer hears at least half a window before each "
    "token, an LSTM carries its state. One minute is measured for all kinds; four and more are not, so these tables "
    "say how fast a kind begins, and not where it ends. Set-up alone could make a difference in three ways:\n\n"
    "- The processor: a minute is 145 to 211 steps, by the kind and window; on another processor it is other numbers "
    "of steps. The tables have the steps.\n"
    "- The bracket: windows begin at 32 ids for the LSTM and at 64 for the others. After a minute the LSTM, the table "
    "and sines are best with their shortest; each best rate lies between two that are worse.\n"
    "- The choice: ways were chosen on the pieces that the tables show, by one random seed, so each figure is a little "
    "low, more so for kinds with more trials.\n\n"
    "The comparison by compute has no row for these:\n\n"
    "- `model=vaswani`: its block has other norms too, but Transformers shall differ there in position alone. The row "
    "of sines has its position. No run of it was kept.\n"
    "- LSTM, attention, in the history below: it is no kind of model now. `musictx lesson alignment` shows recurrent "
    "nets with attention.\n"
    "- scheduled sampling, which no training has now: `musictx lesson teacher_forcing` shows it.\n"
    "- tanh cells, which are no kind of model now: [an old row](#rnn-steps) has them far behind "
    "[the LSTM](#lstm-steps), after as many steps. `musictx lesson rnn` shows why.",
    "motif": "Eight notes return after other notes, all drawn at random, so only memory names them again. "
    "Every kind has "
    "the same curriculum and time, and its own best optimizer and rate. Each step counts seconds that were "
    "measured once for its kind. The runs of the LSTMs and the table, those of RoPE as it was and of no position "
    "transposed are older: they counted CPU seconds of a machine with other work. The table had some 1.5 times the "
    "steps of today's count. [disturbed.json](../../studies/results/planted/disturbed.json) has runs that were "
    "replaced.\n\n![Right pitches by the ids between motif and return: as it was on the left, "
    "transposed on the right](motif.png)\n\n*Mean, lowest and highest of five random seeds, as far as all were "
    "measured; grey: the range of training; hollow: distances that no training had.*\n\nThree ways in which set-up "
    "alone could make a difference, and what shows it:\n\n- Time: a second is more steps for an LSTM. Weak kinds "
    "have a column for four times the time, one random seed.\n- The range of training: distances between and "
    "beyond it, and a later beginning, are columns.\n- The rate: each best rate lies between two that are worse. "
    "All trials are in the raw files.",
    "fills": "![What the music after a gap saves, by the distance to it: chorales](../../studies/results/fill.png)\n\n"
    "![What the music after a gap saves, by the distance to it: piano](../../studies/results/fill-piano.png)\n\n"
    "*Both are history, as all of this page is: their scripts are in the commits below. "
    "`outputs/plain.safetensors` was the model before it had learned gaps.*",
    "guidance": "Figures of alive.py, and the history, were measured before `sampler.guard=true` kept new music "
    "near its seed. What `control.` asks for is drawn without a look at the seed, so it often leads away from its key. "
    "Fewer nats a token make no better music: of led music fewer motifs of the seed return.",
    "harmoniser": "![Harmonising by the length of the melody; time of a window by its length](../img/lengths.png)\n\n"
    "*History: recurrent encoder-decoders of an earlier musictx.*",
    "labels": "Rows of a GPU have equal steps, not equal time. Of whole pieces eight windows are read. Cells without a "
    "figure: the GPU's time was over.\n\n"
    "`vit` and `se_resnet` read a piano roll of the ids. They are no kinds of model now; commit 133f931 has "
    "their code. Encoders of hidden notes, and whole models that learn labels, are gone too; commit 038e6f2 has "
    "theirs. `probe` and `similar` are here.",
    "met": "![Waits and copies of training music, by what is continued: the piano model beside the composers]"
    "(waits-and-copies.png)\n\n"
    "*The piano model seldom waits, since rules end its waits; its median copy is about as long as the composers', its "
    "longest is longer.*\n\n"
    "All but the tables of files of eight kinds are from before the guard kept new music near its seed. All but the "
    "first 15 s of MAESTRO's pieces are from before two rules, for ten notes at one moment and for broken chords as "
    "endings. `minp03.safetensors` and `topp95.safetensors` were copies of the piano's bundle with `min_p` 0.03 and "
    "`top_p` 0.95 in their headers.",
    "scores": "A note is back where its staff, onset, length and pitch are the same. In MIDI a note ends where the "
    "next of its pitch begins on the same staff, so notes that two voices hold together get shorter. "
    "The same reader reads a score both times, so a mistake that it makes twice does not show here. "
    "All is written anew here: `musictx generate` and `render` give bars of MusicXML that have no new notes as they "
    "are.",
    "loudness": "Velocities count from 1 to 127. Intervals are over songs. The first seed's network is in musictx. "
    "Given volumes: each part's median error in a song was added, as a person turns up a volume. Onsets of POP909 "
    "lie on the beats, so no timing was learned. Written lengths come from the played ones, so some of the held share "
    "follows from how they were made.",
    "score-model": "Works are of the validation split, taken evenly from the corpora; intervals are over works. The "
    "script's first lines say the rule of each figure, and three ways in which set-up alone could make it. Copies "
    "count notes in any key. The piano hears the same files, and its beat rule keeps it to the seed's grid. "
    "Hands below a tune alone follow chords that are found for it (`studies/tune_chords.py`), so they clash less with "
    "it by their making. So the chords that editors wrote over held-out lead sheets judge, too. Chords that are merely "
    "near the notes of each bar reach much of the gain. Four draws each, first 16 bars; the table of chords is from "
    "other lead sheets.\n\n"
    "Four voices on a grid go to the chorale model by the rule of `score_choirs.py`: over all works it is nearer to "
    "the composers in parallel fifths, and the score model in nothing. On chorales of Bach it is nearer in polyphony; "
    "on hymns and others each is nearer in one, the score model in density.",
    "speed": "Intervals are all that was measured, over turns.\n\n"
    "![Tokens a second of one row by the ids before it: musictx, Hugging Face's GPT-2, and the limit](sampling.png)\n\n"
    "*One row from the piano model's size, medians and all turns.*",
    "gpu": "Intervals are all that was measured, over turns.",
    "history": "No claim of this version rests on this page.",
}
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
    return f"`git worktree add {there} {row['commit']} && cd {there} && {more}PYTHONPATH=. {row['command']}`"


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
