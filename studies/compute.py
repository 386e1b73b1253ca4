"""Nats a note against compute: which kind of model learns chorales and piano recordings better, from a minute on?

    mkdir -p outputs && cp -r studies/results/compute outputs/   # costs and trainings so far: what is there is kept
    OMP_NUM_THREADS=1 python studies/compute.py --costs          # without them: first, on a quiet machine
    OMP_NUM_THREADS=1 python studies/compute.py --minutes 1 4    # resumes; some eight hours of a core
    OMP_NUM_THREADS=1 python studies/compute.py --minutes 1 4 --test     # once, after all else
    python studies/compute.py --device cuda --minutes 0.2 --seeds 1 --out outputs/compute-gpu  # 25 minutes

A minute is one of the processor that the files of costs name: the seconds of a step of each kind, window and optimizer
there, the fastest of several turns. All else is in steps. So a training may go on anywhere, and the figure can be drawn
for another processor, in ids or in steps.

All kinds have `PARAMETERS`. A training holds its rate. For each budget a branch leaves it after four fifths of the
steps, and its rate falls to zero (Hägele et al. 2024). The next budget goes on from there.

The rule that chooses, for each corpus, kind and budget, by nats a token of validation pieces: begin at `FIRST`, or at
the choice of the budget before. Take a neighbour that is better, until none is: half or twice the rate, next dropout,
another window, the other optimizer at half, the same or twice the rate. Budgets over `WIDE` minutes try half the rate,
more dropout and the next window alone: longer trainings ask for these, and trials cost too much there. Up to `SEEDED`
minutes each choice has `--seeds` random seeds, later one.

Scoring is fair to both: a Transformer hears at least half a window before each token, an LSTM carries its state through
the piece. Recordings count as far as `SCORED` ids. The test split is read with what validation chose, by all random
seeds. Intervals resample pieces and random seeds.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import timed
from compute_pictures import by_compute, kept_of_seeds
from compute_runs import AUGMENT, KINDS, STEP_IDS, WINDOWS, Kind, Music, Way, measure_costs, token_nats
from compute_seed import remembered
from numpy.typing import NDArray
from shared import options

from musictx.analysis.bootstrap import Interval, percentiles
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.terminal import say
from musictx.training.optimizer import OPTIMIZERS
from musictx.viz.figure import save_figure

MINUTES, WIDE, SEEDED = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0), 1.0, 4.0
ROUNDS = 2000  # resamples
DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.5)

FIRST = {kind: Way(windows[1], "muon", 4e-3, 0.1) for kind, windows in WINDOWS.items()}


def neighbours(kind: str, way: Way, wide: bool) -> Iterator[Way]:
    """What the rule tries beside a way."""
    dropout, window = DROPOUTS.index(way.dropout), WINDOWS[kind].index(way.window)
    yield way._replace(rate=way.rate / 2)
    yield from (way._replace(dropout=each) for each in DROPOUTS[dropout + 1 : dropout + 2])
    yield from (way._replace(window=each) for each in WINDOWS[kind][window + 1 : window + 2])
    if wide:
        yield way._replace(rate=way.rate * 2)
        yield from (way._replace(dropout=each) for each in DROPOUTS[:dropout][-1:])
        yield from (way._replace(window=each) for each in WINDOWS[kind][:window][-1:])
        (other,) = set(OPTIMIZERS) - {way.optimizer}
        yield from (way._replace(optimizer=other, rate=way.rate * by) for by in (0.5, 1, 2))


def chosen(kind: str, first: Way, wide: bool, cost: Callable[[Way], float]) -> Way:
    """The best way by the rule; `cost` has the nats a token of a way."""
    best = first
    while True:
        before = best
        for way in neighbours(kind, before, wide):
            best = min(best, way, key=cost)  # of two that are equal the first
        if best == before:
            return best


def row_of(kind: Kind, minutes: float, first: Way, seeds: int, split: str) -> tuple[Way, dict[str, Any]]:
    """The choice for a budget, and what `seeds` trainings have with it."""
    best = chosen(kind.kind, first, minutes <= WIDE, lambda way: token_nats(kind.run(minutes, way)))
    runs = [kind.run(minutes, best, seed, split) for seed in range(seeds)]
    nats = np.array([run["nats"] for run in runs])
    each = {"note": kind.music.scored(split)[1], "token": np.array(runs[0]["tokens"])}
    found = {f"per_{unit}": [round(x, 5) for x in ratio(nats, of + 0 * nats)] for unit, of in each.items()}
    return best, best._asdict() | {"steps": runs[0]["steps"], "ids": runs[0]["steps"] * STEP_IDS} | found


def ratio(top: NDArray[Any], bottom: NDArray[Any]) -> Interval:
    """The ratio of sums of (S, P), random seeds by pieces, with an interval over both."""
    rng = np.random.default_rng(0)
    pieces, seeds = (rng.multinomial(n, np.full(n, 1 / n), ROUNDS) for n in reversed(top.shape))
    tops, bottoms = (np.einsum("rs,sp,rp->r", seeds, of, pieces) for of in (top, bottom))
    return percentiles(float(top.sum() / bottom.sum()), tops / bottoms)


def main() -> None:
    parser = options(__doc__, "out", "test", out=Path("outputs/compute"))
    stores = [Path("outputs/stores") / name for name in ("jsb", "maestro")]
    parser.add_argument("--stores", nargs=2, type=Path, default=stores, help="of chorales and of MAESTRO")
    parser.add_argument("--minutes", nargs="+", type=float, default=MINUTES, help="budgets, in rising order")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="default: all")
    parser.add_argument(
        "--seeds", type=int, default=3, help="random seeds of each choice up to four minutes, later one"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--costs", action="store_true", help="measure the seconds of steps, and end")
    args = parser.parse_args()
    (args.out / "models").mkdir(exist_ok=True)
    musics = [Music(name, Store(path), args.device) for name, path in zip(AUGMENT, args.stores, strict=True)]
    kinds = [Kind(music, kind, args.out) for music in musics for kind in args.kinds]
    measure_costs(kinds)
    if args.costs:
        for kind, optimizer in product(kinds, OPTIMIZERS):
            costs = [f"{window}: {kind.cost(window, optimizer):.3f} s" for window in WINDOWS[kind.kind]]
            say(f"{kind.name} {optimizer} {' '.join(costs)}")
        return
    split, rows, best = "test" if args.test else "validation", {}, {kind: FIRST[kind.kind] for kind in kinds}
    for minutes in args.minutes:
        for kind in kinds:
            best[kind], row = row_of(kind, minutes, best[kind], args.seeds if minutes <= SEEDED else 1, split)
            about = {"corpus": kind.music.name, "kind": kind.kind, "minutes": minutes}
            rows[f"{kind.music.name}, {kind.kind}, {minutes:g}"] = about | row
            if list(args.kinds) == list(KINDS):  # else another process has the rest
                timed.write_rows(args.out / f"compute-{split}.json", rows)
                save_figure(by_compute(rows), args.out / f"compute-{split}.png")
    kept = {
        kind.name: {"corpus": kind.music.name, "kind": kind.kind, "minutes": args.minutes[-1]}
        | remembered(kind, args.minutes[-1], best[kind], split)
        for kind in kinds
    }
    timed.write_rows(args.out / f"seed-{split}.json", kept)
    save_figure(kept_of_seeds(kept), args.out / f"seed-{split}.png")


if __name__ == "__main__":
    with in_one_line():
        main()
