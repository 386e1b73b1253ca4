"""Pictures of docs/results/, from figures that are kept: nothing is trained and no music is drawn.

    python studies/pictures.py --out outputs/pictures      # copy what it makes to docs/results/

`kinds.png` has the likelihood of each kind of model and training window, from the rows of `results.json`, with the
figures of papers and the models inside the package. `waits-and-copies.png` has what `alive.json` counts in
continuations and in the composers' own music. `seed-gain.png` has what a seed saves, by the time since its end, from
`baselines/`. `sampling.png` has tokens a second by the ids before them, from `sampling.json`. `compute.png` and
`seed-by-kind.png` have what `compute.py` measured, from `compute/`.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from compute_pictures import by_compute, kept_of_seeds
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages import Row, said
from report import RESULTS, all_rows
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.errors import UserError
from musictx.terminal import say
from musictx.viz.figure import GREY, INK, new_figure, save_figure

WIDTH_IN = 8.0  # 880 pixels: read at 800 without a loss
COLUMN = "validation: inputs as long as the window"
SAME_STEPS = ", as many ids"  # a second budget, which this picture leaves out
KINDS = {  # that the package has
    "LSTM": "LSTM",
    "Fourier": "relative: Fourier",
    "table": "relative: table",
    "RoPE": "relative: RoPE",
    "sines": "absolute: sines",
    "learned": "absolute: learned",
}
SEED_GAIN = {"chorales": (1024, 2.4), "piano": (2048, 5.0)}  # the window, ids; how long a part is, s
CORPORA_OF = {"chorales": "JSB chorales", "piano": "Piano, MAESTRO"}
PARTS = range(1, 7)
WINDOWS = {128: ("#999999", "v"), 256: ("#0072b2", "o"), 512: ("#009e73", "^"), 1024: ("#d55e00", "s")}
WINDOWS |= {2048: ("#aa3377", "D")}  # ids: colour and shape
INSIDE = "model in the package"
MUSIC = {  # of the tables: the panel's title, the key of our model's row, the keys and names of the papers'
    "chorales": (
        "JSB chorales: four minutes of CPU time for each kind, 1.3 million parameters",
        "chorale-validation",
        {
            "paper-chorales": "Huang et al., best",
            "paper-chorales-relative": "Huang et al., relative",
            "paper-chorales-absolute": "Huang et al., absolute",
            "paper-chorales-lstm": "Huang et al., LSTM",
        },
    ),
    "piano": (
        "Piano, MAESTRO: five minutes of CPU time for each kind, 1.5 million parameters",
        "piano-validation",
        {"paper-piano-v3": "Perceiver AR, MAESTRO v3, second hand"},
    ),
}
CORPORA = {"maestro": "MAESTRO", "pop": "POP909"}
OURS, COMPOSERS = "#d55e00", "#0072b2"


class Point(NamedTuple):
    """A likelihood with its interval, in nats a token."""

    kind: str
    window: int
    mean: float
    low: float
    high: float


def points(rows: Iterable[Row], music: str) -> list[Point]:
    """A table's cells on validation, one for each kind and window. Raises UserError where there are none."""
    found = []
    for row in rows:
        of = row.get("table", "").startswith(f"Kinds of model and training windows on {music}:")
        if of and row["column"] == COLUMN and not row["line"].endswith(SAME_STEPS):
            kind, window = re.fullmatch(r"(.+) (\d+)", row["line"]).groups()  # type: ignore[union-attr] # the line's form
            if kind in KINDS:
                found.append(Point(kind, int(window), row["figure"], row["low"], row["high"]))
    if not found:
        raise UserError(f"studies/results.json has no table of kinds on {music}")
    return found


def keyed(rows: Iterable[Row], key: str) -> Row:
    """The row with this key. Raises UserError if there is none."""
    for row in rows:
        if row.get("key") == key:
            return row
    raise UserError(f"studies/results.json has no row with the key {key}")


def draw_point(axes: Axes, y: float, at: Point, colour: str, shape: str) -> None:
    axes.plot([at.low, at.high], [y, y], color=colour, lw=1.6, solid_capstyle="butt")
    axes.plot([at.mean], [y], shape, color=colour, ms=5.5)


def draw_papers(axes: Axes, papers: dict[str, str], rows: list[Row]) -> None:
    """A dotted line for each figure of a paper, its name above; several names lean, since the lines are close."""
    for key, name in papers.items():
        row = keyed(rows, key)
        axes.axvline(row["figure"], color=INK, lw=1, ls=":", zorder=0)
        at: dict[str, Any] = {"xy": (row["figure"], 1), "xycoords": ("data", "axes fraction"), "xytext": (-2, 4)}
        lean: dict[str, Any] = {
            "rotation": 30 if len(papers) > 1 else 0,
            "rotation_mode": "anchor",
            "textcoords": "offset points",
        }
        axes.annotate(f"{name}, {said(row)}", **at, **lean, fontsize=8.5, color=INK)


def kinds(rows: list[Row]) -> Figure:
    """The likelihood of each kind, a panel for each music."""
    found = {music: points(rows, music) for music in MUSIC}
    there = {music: [kind for kind in KINDS if kind in {p.kind for p in each}] for music, each in found.items()}
    figure = new_figure(WIDTH_IN, 7.4)
    figure.get_layout_engine().set(h_pad=0.1)  # type: ignore[union-attr, call-arg] # new_figure's is constrained
    panels = figure.subplots(len(MUSIC), 1, height_ratios=[len(each) + 1 for each in there.values()])
    used = dict[int, tuple[str, str]]()
    for axes, (music, (title, ours, papers)) in zip(panels, MUSIC.items(), strict=True):
        for y, kind in enumerate(there[music], 1):
            of = sorted((p for p in found[music] if p.kind == kind), key=lambda p: p.window)
            for i, point in enumerate(of):
                used[point.window] = WINDOWS[point.window]
                draw_point(axes, y + 0.2 * (i - (len(of) - 1) / 2), point, *WINDOWS[point.window])
        row = keyed(rows, ours)
        draw_point(axes, 0, Point(INSIDE, 0, row["figure"], row["low"], row["high"]), "black", "*")
        draw_papers(axes, papers, rows)
        names = [INSIDE, *(KINDS[kind] for kind in there[music])]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_title(title, loc="left", pad=80 if len(papers) > 1 else 22, fontsize=10.5)
        axes.set_xlabel("nats a token of validation music (to the left: predicted better)")
        axes.grid(axis="y", color=GREY, alpha=0.25)
    marks = [panels[0].plot([], [], shape, color=colour, ms=5.5)[0] for _, (colour, shape) in sorted(used.items())]
    marks += panels[0].plot([], [], ":", color=INK, lw=1)
    words = [*(f"trained on windows of {window:,} ids" for window in sorted(used)), "papers, after long trainings"]
    figure.legend(marks, words, loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
    return figure


def waits_and_copies(found: dict[str, Any]) -> Figure:
    """By the piece and the part of it that is the seed: continuations beside the composers' own music."""
    draws = found["draws"]
    of = {seeds: each for seeds, each in found["piano, default"].items() if seeds != "all" and "drawn" in each}
    figure = new_figure(WIDTH_IN, 4.2)
    waits, copies = figure.subplots(1, 2, sharey=True)
    for y, each in enumerate(of.values()):
        for who, colour, shape, share, dy in (
            ("drawn", OURS, "o", each["continuations"], -0.13),
            ("true", COMPOSERS, "s", each["continuations"] / draws, 0.13),
        ):
            waits.plot(100 * each[who]["still 3 s"] / share, y + dy, shape, color=colour, ms=6)
            middle, most = each[who]["copied of training"], each[who]["most copied of training"]
            copies.plot([middle, most], [y + dy, y + dy], color=colour, lw=0.8)
            copies.plot(middle, y + dy, shape, color=colour, ms=6)
            copies.plot(most, y + dy, shape, color=colour, ms=6, mfc="white")
    names = [
        f"{CORPORA.get(name, name)}, {form}{' piece' * (form == 'whole')}"
        for name, form in (seeds.split(", ", 1) for seeds in of)
    ]
    waits.set_yticks(range(len(names)), names)
    waits.set_ylim(len(names) - 0.5, -0.5)
    waits.set_ylabel("what is continued")
    waits.set(xlim=(-1, None), xlabel=f"% of passages of {found['seconds']:g} s")
    waits.set_title("A wait of more than 3 s", fontsize=10.5)
    copies.set(xlim=(0, None), xlabel="notes in a row")
    copies.set_title("Longest copy of a training piece", fontsize=10.5)
    for axes in (waits, copies):
        axes.grid(axis="y", color=GREY, alpha=0.25)
    looks = ((OURS, "o", OURS), (COMPOSERS, "s", COMPOSERS), (OURS, "o", "white"), (COMPOSERS, "s", "white"))
    marks = [copies.plot([], [], shape, color=colour, mfc=face, ms=6)[0] for colour, shape, face in looks]
    words = [f"the piano model, {draws} passages of each (right: median)", "the composers, one of each (right: median)"]
    words += ["the piano model, the longest of all", "the composers, the longest of all"]
    figure.legend(marks, words, loc="outside lower center", ncols=2, fontsize=8.5, frameon=False)
    return figure


def seed_gain(found: dict[str, dict[str, Any]]) -> Figure:
    """What a seed saves against another piece's seed, by the time since its end: a line for each kind of model."""
    figure = new_figure(WIDTH_IN, 4.2)
    used = dict[str, Any]()
    for axes, (music, (window, part_s)) in zip(figure.subplots(1, 2), SEED_GAIN.items(), strict=True):
        for i, (kind, name) in enumerate(KINDS.items()):
            gains = [found[music].get(f"{kind} {window}", {}).get(f"gain against a stranger, part {n}") for n in PARTS]
            if None not in gains:
                mean, low, high = zip(*gains, strict=True)
                at_s = [(n - 0.5) * part_s for n in PARTS]
                (used[name],) = axes.plot(at_s, mean, color=f"C{i}", lw=1.4, marker="o", ms=3.5)
                axes.fill_between(at_s, low, high, color=f"C{i}", alpha=0.12, lw=0)
        axes.axhline(0, color=GREY, lw=0.8)
        axes.set(xlim=(0, None), xlabel="seconds since the end of the seed")
        axes.set_title(f"{CORPORA_OF[music]}, windows of {window:,} ids", fontsize=10.5)
    figure.axes[0].set_ylabel("nats a token that the seed saves")
    figure.legend(used.values(), used, loc="outside lower center", ncols=4, fontsize=8.5, frameon=False)
    return figure


def sampling(found: dict[str, Any]) -> Figure:
    """Tokens a second of one row by the ids before them: the median of the turns, and all turns."""
    rates: dict[str, dict[int, list[float]]] = {}
    for row in found["rows"]:
        if (said_of := re.fullmatch(r"(.+), 1 row after ([\d,]+) ids", row["name"])) and not row["failed"]:
            ids = int(said_of[2].replace(",", ""))
            rates.setdefault(said_of[1], {})[ids] = [row["tokens"] / s for s in row["seconds"]]
    figure = new_figure(WIDTH_IN, 4.2)
    axes = figure.subplots()
    for i, (name, by_ids) in enumerate(rates.items()):
        at = sorted(by_ids)
        look: dict[str, Any] = {"color": INK, "ls": ":"} if name == "limit" else {"color": f"C{i}"}
        words = "limit: weights and keys read once" if name == "limit" else name.partition(" (")[0]
        axes.plot(at, [median(by_ids[ids]) for ids in at], marker="o", ms=4, lw=1.4, label=words, **look)
        for ids in at:
            axes.plot([ids, ids], [min(by_ids[ids]), max(by_ids[ids])], color=look["color"], lw=3, alpha=0.35)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks := sorted({ids for each in rates.values() for ids in each}), [f"{ids:,}" for ids in ticks])
    axes.set(xlabel="ids before the new ones", ylabel="tokens a second", yscale="log")
    axes.set_yticks(seconds := (25, 50, 100, 200, 400, 800), [str(each) for each in seconds])
    axes.minorticks_off()
    axes.grid(axis="y", color=GREY, alpha=0.25)
    axes.set_title(found["where"].partition(", torch")[0], fontsize=10.5)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8.5, frameon=False)
    return figure


def pictures() -> dict[str, Callable[[], Figure]]:
    """What draws each file."""
    gains = {music: _read(f"baselines/{music}-validation.json") for music in SEED_GAIN}
    return {
        "kinds.png": partial(kinds, all_rows()),
        "waits-and-copies.png": partial(waits_and_copies, _read("alive.json")),
        "seed-gain.png": partial(seed_gain, gains),
        "sampling.png": partial(sampling, _read("sampling.json")),
        "compute.png": partial(by_compute, _read("compute/compute-validation.json")),
        "seed-by-kind.png": partial(kept_of_seeds, _read("compute/seed-validation.json")),
    }


def _read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def main() -> None:
    args = options(__doc__, "out", out=Path("outputs/pictures")).parse_args()
    for name, draw in pictures().items():
        if not (path := args.out / name).exists():
            save_figure(draw(), path)
            say(path)


if __name__ == "__main__":
    with in_one_line():
        main()
