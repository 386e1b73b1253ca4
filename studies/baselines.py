"""Kinds of model side by side; each gets the same parameters, blocks, optimizer and CPU time, and its own best rate.

    OMP_NUM_THREADS=1 python studies/baselines.py chorales --store outputs/stores/jsb        # resumes; hours of a core
    python studies/baselines.py piano --store outputs/stores/maestro --archive maestro-v3.0.0-midi.zip --device cuda
    python studies/baselines.py chorales --store outputs/stores/jsb --test                   # once, after all else

A cell is a kind and a training window. Its sizes give it as many parameters as the others. Rules, in this order: some
training pieces are held out, unlike all others or of works that no other piece plays. Their likelihood (in inputs as
long as the window; for recurrent models of whole pieces) chooses the learning rate (`timed.bracketed`), then one of
`DROPOUTS` or 0.1. For recurrent models the choice is also whether a window continues the one before or begins anywhere.
These trials take a quarter of the time. Then `SEEDS` learn all training pieces. Recurrent models also learn as many ids
as the table of the same window, in the time that this takes.

A run is scored twice. First come whole pieces (a carried state, or positions beyond the window), then inputs as long as
the window, each from a fresh state. On piano these are the first 8,192 ids of every third piece. Seed gain compares the
true continuation after the whole seed with three others. These are after its last beat, after another piece's seed and
its last beat, and after its last id (the KV reset of arXiv 2602.19816). Intervals resample works and random seeds. The
p of a difference from the table of the same window is Holm's, over all rows of a figure.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import timed
import torch
from baseline_report import report
from baseline_runs import MUSIC, Cell, Data, config_of, n_parameters, remembered, scores, seeds_of, train
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.files import replacing
from musictx.model.build import build_model

RATES, DROPOUTS, SEEDS = (2e-3, 4e-3, 8e-3), (0.0, 0.3), (1, 2, 3)


class Study:
    def __init__(self, name: str, data: Data, out: Path, seconds: float, device: str) -> None:
        self.name, self.data, self.out, self.seconds, self.device = name, data, out, seconds, device

    def runs(self, cell: Cell) -> timed.Runs:
        """In a file for each cell, so that two processes can share the kinds."""
        return timed.Runs(self.out / "runs" / f"{cell.kind}-{cell.window}.json")

    def key(self, cell: Cell, how: dict[str, Any], what: str) -> str:
        return f"{cell.kind} {cell.window}, {json.dumps(how)}, {self.seconds:g} s of {self.device}, {what}"

    def trial(self, cell: Cell, how: dict[str, Any]) -> float:
        """Nats a token of held-out training pieces after a quarter of the time."""

        def make() -> dict[str, Any]:
            share = timed.shares(self.seconds / 4, self.device)
            model = train(cell, self.data, self.data.rest, how | {"seed": 0}, share, self.device)
            window = None if cell.recurrent else cell.window
            return {"steps": model.steps, "held out": scores(model, self.data, self.data.held_out, window, self.device)}

        key = self.key(cell, how, "trial")
        of = self.runs(cell).get(key, make)
        nll = sum(of["held out"]["nats"]) / sum(of["held out"]["tokens"])
        print(f"{key}: {nll:.4f} after {of['steps']} steps", flush=True)
        return nll if np.isfinite(nll) else float("inf")

    def choice(self, cell: Cell) -> dict[str, Any]:
        """The rate, dropout and way of windows, by the rules above."""
        how: dict[str, Any] = {"rate": 0.0, "dropout": 0.1, "carried": cell.recurrent}
        how["rate"] = timed.bracketed(RATES, lambda rate: self.trial(cell, how | {"rate": rate}))
        for name, values in {"dropout": DROPOUTS, "carried": (False,) if cell.recurrent else ()}.items():
            how[name] = min((how[name], *values), key=lambda value: self.trial(cell, how | {name: value}))
        return how

    def final(self, cell: Cell, how: dict[str, Any], seed: int, steps: int | None = None) -> dict[str, Any]:
        """A run on all training pieces, kept with its weights; with `steps`, of so many in place of the seconds."""
        key = self.key(cell, how | {"seed": seed}, f"{steps} steps" if steps else "final")
        weights = self.out / "weights" / f"{cell.kind}-{cell.window}-{crc32(key.encode()):08x}.pt"

        def make() -> dict[str, Any]:
            share = iter(np.arange(steps) / steps) if steps else timed.shares(self.seconds, self.device)
            model = train(cell, self.data, self.data.train, how | {"seed": seed}, share, self.device)
            weights.parent.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), weights)
            counts = {"steps": model.steps, "parameters": n_parameters(model), "weights": weights.name}
            return counts | self.read(cell, model, "validation")

        print(key, flush=True)
        return self.runs(cell).get(key, make)

    def read(self, cell: Cell, model: Any, split: str) -> dict[str, Any]:
        music, of = self.data, self.data.scored(split)
        found, _ = seeds_of(music, of)
        whole, fresh = (scores(model, music, of, window, self.device) for window in (None, cell.window))
        return {"whole": whole, "fresh": fresh, "gains": remembered(model, music, found, self.device)}

    def table(self, kinds: Sequence[str], test: bool) -> None:
        """Makes all runs of these kinds, and writes the report of all cells so far."""
        cells = [Cell(self.name, kind, n) for kind in kinds for n in self.data.music.windows[kind]]
        rows: dict[str, Any] = {}
        for cell in sorted(cells, key=lambda cell: (cell.kind != "table", cell.window)):
            how = self.choice(cell)
            kept = {"time": [self.final(cell, how, seed) for seed in SEEDS]}
            like = rows.get(f"table {cell.window}")
            if cell.recurrent and like:
                steps = round(np.mean([run["steps"] for run in like["runs"]]))
                kept["ids"] = [self.final(cell, how, seed, steps) for seed in SEEDS]
            for column, runs in kept.items():
                name = f"{cell.kind} {cell.window}" + ("" if column == "time" else ", as many ids")
                if test:
                    runs = [self.tested(cell, run) for run in runs]
                rows[name] = {"cell": cell, "how": how, "runs": runs}
            self.write(rows, test)

    def tested(self, cell: Cell, run: dict[str, Any]) -> dict[str, Any]:
        def make() -> dict[str, Any]:
            model: Any = build_model(config_of(cell, self.data.tokenizer.vocab.size)).to(self.device)
            model.load_state_dict(torch.load(self.out / "weights" / run["weights"], weights_only=True))
            return self.read(cell, model.eval(), "test")

        return run | self.runs(cell).get(f"{run['weights']}, test", make)

    def write(self, rows: dict[str, Any], test: bool) -> None:
        split = "test" if test else "validation"
        of = self.data.scored(split)
        made = report(rows, [self.data.work(name) for name in of.names], seeds_of(self.data, of)[1])
        with replacing(self.out / f"{self.name}-{split}.json") as partial:
            lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in made.items())
            partial.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def asked() -> argparse.Namespace:
    """What a person gave. Exits the script if it is impossible."""
    parser = options(__doc__, "out", "test")
    parser.add_argument("music", choices=list(MUSIC))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--archive", type=Path, help="MAESTRO's zip, whose table has the works")
    parser.add_argument("--kinds", nargs="+", help="default: all; the LSTM needs the table of its windows")
    parser.add_argument("--seconds", type=float, help="of a training; default: chorales 240, piano 300")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    args = parser.parse_args()
    windows = MUSIC[args.music].windows
    if unknown := set(args.kinds or ()) - set(windows):
        parser.error(f"--kinds {' '.join(unknown)}: give some of {', '.join(windows)}")
    if args.music == "piano" and not args.archive:
        parser.error("piano: give --archive, intervals are by work")
    return args


def run() -> None:
    args = asked()
    music = MUSIC[args.music]
    data = Data(music, Store(args.store), args.archive)
    out = args.out or Path(f"outputs/baselines-{args.music}")
    out.mkdir(parents=True, exist_ok=True)
    study = Study(args.music, data, out, args.seconds or music.seconds, args.device)
    study.table(args.kinds or list(music.windows), args.test)


if __name__ == "__main__":
    with in_one_line():
        run()
