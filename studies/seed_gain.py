"""What each kind of model remembers about a seed: the curves of seed gain over time, without drawing a note.

    python studies/jsb.py --store outputs/stores/jsb --out outputs/jsb-table --steps 1500
    python studies/seed_gain.py chorales --store outputs/stores/jsb --table outputs/jsb-table
    python studies/seed_gain.py chorales --store outputs/stores/jsb --table outputs/jsb-table --stranger
    python studies/maestro.py --archive maestro-v3.0.0-midi.zip --size small --steps 2000 --out outputs/maestro
    python studies/seed_gain.py piano --store outputs/maestro/store --table outputs/maestro --every 3 --fit 2048

It reads the runs of all random seeds of a kind in the table; a line is their mean. The interval comes from resampling
pieces and random seeds. A line is dashed from the first part on in which any piece goes beyond the training window;
`--fit 2048` leaves such pieces out. With `--stranger` another piece's beginning stands where the seed's is missing:
absolute positions mean something else when music begins later, and this keeps them. Writes JSON and a picture beside
it.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, draw, percentiles
from musictx.analysis.seed_gain import Place, gains, places
from musictx.config.app import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import replacing
from musictx.generate.open_bundle import open_bundle

PARTS = 6


class Table(NamedTuple):
    """A table of models, and how its music is cut."""

    title: str
    seed_s: float
    part_s: float
    split: str  # by default: where the table itself was reported
    runs: str  # pattern of a model's folders
    looks: dict[str, tuple[str, str, str]]
    json: Path


RESULTS = Path("studies/results")
CHORALES = {  # name for people, colour, marker: recurrent grey, absolute positions warm, relative ones cold
    "rnn": ("RNN", "#999999", "v"),
    "lstm": ("LSTM", "#555555", "v"),
    "lstm_attention": ("LSTM, additive attention", "#000000", "v"),
    "sinusoidal": ("sinusoidal", "#E69F00", "s"),
    "learned": ("learned positions", "#D55E00", "s"),
    "relative": ("relative table, windows of 256", "#56B4E9", "o"),
    "relative_long": ("relative table, windows of 1,024", "#0072B2", "o"),
    "rope": ("RoPE", "#009E73", "o"),
    "fourier": ("relative Fourier", "#CC79A7", "o"),
}
PIANO = {
    "lstm": ("LSTM (Performance RNN)", *CHORALES["lstm"][1:]),
    "sinusoidal": CHORALES["sinusoidal"],
    "relative": ("relative table, 512 distances", *CHORALES["relative_long"][1:]),
    "rope": CHORALES["rope"],
    "fourier": CHORALES["fourier"],
}
TABLES = {
    "chorales": Table(
        "JSB chorales", 9.6, 2.4, "validation", "{name}-*-{steps}", CHORALES, RESULTS / "jsb/seed-gain.json"
    ),
    "piano": Table("MAESTRO", 10.0, 5.0, "test", "{name}-whole", PIANO, RESULTS / "maestro-small/seed-gain.json"),
}


def over_seeds(
    saved: NDArray[np.float64], tokens: NDArray[np.int64], resamples: int = 2000, random_seed: int = 0
) -> list[Interval]:
    """Nats a token of each part, from nats saved (S, P, W) and tokens (P, W): the mean over S random seeds, with its
    interval over resamples of random seeds and of pieces."""
    rng = np.random.default_rng(random_seed)
    seeds, pieces = (draw(n, resamples, rng) for n in saved.shape[:2])  # (R, S), (R, P)
    figures = np.einsum("rs,rp,spw->rw", seeds / len(saved), pieces, saved, optimize=True) / (pieces @ tokens)
    means = saved.mean(0).sum(0) / tokens.sum(0)
    return [percentiles(float(mean), figures[:, w], 0.95) for w, mean in enumerate(means)]


class Measured(NamedTuple):
    """The figures of one kind of model, and what they come from: nats saved (S, P, W) of so many tokens (P, W)."""

    figures: dict[str, Any]
    saved: NDArray[np.float64]
    tokens: NDArray[np.int64]


def measured(bundles: list[Path], found: list[Place], stranger: bool) -> Measured:
    """One kind of model, over all its random seeds."""
    saved, windows, nll = [], [], []
    for bundle in bundles:
        opened = open_bundle(bundle, "cpu", "auto")
        nats, tokens = gains(opened.model, opened.tokenizer, found, stranger=stranger)
        saved.append(nats)
        windows.append(opened.model.window)
        nll.append(opened.header.val_nll)
    curve = over_seeds(np.array(saved), tokens)
    figures = {"window": windows[0], "nll": nll, "gain": [part._asdict() for part in curve]}
    return Measured(figures, np.array(saved), tokens)


def less_than_most(kinds: dict[str, Measured]) -> dict[str, Interval]:
    """How much less each kind gains over all parts than the kind that gains most, nats a token. The pieces are the
    same, so what pieces differ in does not widen these intervals."""
    whole = {name: kind.saved.sum(2, keepdims=True).mean(0, keepdims=True) for name, kind in kinds.items()}  # (1, P, 1)
    most = max(whole.values(), key=lambda saved: float(saved.sum()))
    return {
        name: over_seeds(most - saved, kinds[name].tokens.sum(1, keepdims=True))[0] for name, saved in whole.items()
    }


def picture(table: Table, kinds: dict[str, Any], reach: list[int], path: Path, stranger: bool = False) -> None:
    """Draws gain over time, one line for each kind with its name at the end; `reach`: tokens from the seed's beginning
    to the end of each part, in the piece that has most."""
    figure = Figure(figsize=(9, 5), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    axes, order = figure.subplots(), sorted(kinds, key=lambda name: -kinds[name]["gain"][-1]["mean"])
    axes.axhline(0, color="#777777", lw=1)
    means = [part["mean"] for kind in kinds.values() for part in kind["gain"]]
    low, high = min(0.0, *means), max(means)
    room = (high - low or 1.0) / 20  # the JSON has the intervals that leave the picture
    axes.set_ylim(low - 2 * room, high + 5 * room)
    ends = apart([kinds[name]["gain"][-1]["mean"] for name in order], 1.2 * room)
    for k, (name, end) in enumerate(zip(order, ends, strict=True)):
        gain = np.array([list(part.values()) for part in kinds[name]["gain"]]).T  # mean, low, high
        at = table.part_s * (np.arange(1, PARTS + 1) + 0.0125 * (k - len(order) / 2))  # beside each other
        label, colour, marker = table.looks[name]
        near = within(reach, kinds[name]["window"])
        axes.plot(at[:near], gain[0][:near], color=colour, marker=marker, ms=5, lw=2, zorder=3)
        far = slice(max(near - 1, 0), None)  # from the last point that a solid line reaches
        axes.plot(at[far], gain[0][far], color=colour, marker=marker, ms=5, lw=2, ls="--", zorder=3)
        axes.vlines(at, gain[1], gain[2], color=colour, lw=1, alpha=0.6)
        axes.annotate(
            label, (at[-1], gain[0][-1]), (table.part_s * (PARTS + 0.15), end), color=colour, va="center", fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 3, "relpos": (0, 0.5)},
        )  # fmt: skip
    ends_s = table.part_s * np.arange(1, PARTS + 1)
    axes.set(xlabel=f"seconds after the seed, in parts of {table.part_s:g}", xticks=ends_s)
    axes.set(ylabel="nats a token that the seed saves")
    axes.set_xlim(table.part_s * 0.875, table.part_s * (PARTS + 1.85))
    title = f"What a seed still saves{' against a strange one' * stranger}: {table.title}, seeds of {table.seed_s:g} s"
    dashed = "; dashed: farther than in training" * any(
        within(reach, kind["window"]) < PARTS for kind in kinds.values()
    )
    axes.set_title(title + dashed, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#ececec", lw=0.8)
    axes.set_axisbelow(True)
    with replacing(path) as partial:
        figure.savefig(partial, format="png")


def within(reach: list[int], window: int | None) -> int:
    """How many parts, from the first on, end within the window; None is a state without an end."""
    return sum(tokens <= (window or np.inf) for tokens in reach)


def apart(heights: list[float], least: float) -> list[float]:
    """Heights from the top down, moved so that neighbours are at least `least` apart."""
    out: list[float] = []
    for height in heights:
        out.append(min(height, out[-1] - least) if out else height)
    return [height + (sum(heights) - sum(out)) / len(out) for height in out]


def study(args: argparse.Namespace) -> None:
    store, table = Store(args.store), TABLES[args.kind]
    split, out = args.split or table.split, args.json or table.json
    if args.stranger and args.json is None:
        out = out.with_stem(f"{out.stem}-stranger")
    pieces = list(store.split(split))[:: args.every]
    found = places(pieces, store.tokenizer, table.seed_s, PARTS, table.part_s, store.tokenizer.group)
    found = [place for place in found if args.fit is None or place.cuts[-1] <= args.fit]
    if len(found) < 2:
        raise UserError(f"--fit {args.fit}: {len(found)} pieces end within so many tokens; give more")
    reach = np.max([place.cuts[1:] for place in found], axis=0).tolist()
    found_kinds: dict[str, Measured] = {}
    for name in table.looks:
        folders = sorted(
            path for place in args.table for path in place.glob(table.runs.format(name=name, steps=args.steps))
        )
        if bundles := [path for folder in folders if (path := folder / "model.safetensors").exists()]:
            found_kinds[name] = measured(bundles, found, args.stranger)
            gain = found_kinds[name].figures["gain"]
            words = ", ".join("{mean:.3f} ({low:.3f} to {high:.3f})".format(**part) for part in gain)
            print(f"{name:<14} {len(bundles)} random seeds: {words}", flush=True)
    if not found_kinds:
        script = {"chorales": "jsb.py", "piano": "maestro.py"}[args.kind]
        raise UserError(f"no model of {args.kind} in {', '.join(map(str, args.table))}: run studies/{script}")
    less = less_than_most(found_kinds)
    for name, part in less.items():
        print(
            f"{name:<14} gains {part.mean:.3f} ({part.low:.3f} to {part.high:.3f}) less than the most, all parts as one"
        )
    kinds = {name: kind.figures | {"less_than_most": less[name]._asdict()} for name, kind in found_kinds.items()}
    facts = {"stranger": args.stranger, "split": split, "every": args.every, "fit": args.fit, "pieces": len(found)}
    facts |= {"seed_s": table.seed_s, "part_s": table.part_s, "tokens": reach, "kinds": kinds}
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as partial:
        partial.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    picture(table, kinds, reach, out.with_suffix(".png"), args.stranger)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(TABLES), help="whose table")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--table", type=Path, nargs="+", required=True, help="the folders of the table's script")
    parser.add_argument("--steps", type=int, default=1500, help="chorales: the steps of the runs to read")
    parser.add_argument("--split", help="default: validation for chorales, test for the piano")
    parser.add_argument("--every", type=int, default=1, help="only every n-th piece of the split")
    parser.add_argument("--fit", type=int, help="only pieces that end within so many tokens, seed included")
    parser.add_argument("--stranger", action="store_true", help="against the beginning of another piece, not nothing")
    parser.add_argument("--json", type=Path, help="default: in studies/results")
    args = parser.parse_args()
    if args.every < 1:
        parser.error(f"--every {args.every}: give 1 or more")
    study(args)


if __name__ == "__main__":
    in_one_line(main)
