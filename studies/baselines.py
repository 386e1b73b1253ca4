"""Kinds of model side by side; each gets the same parameters, blocks, optimizer and CPU time, and its own best rate.

    OMP_NUM_THREADS=1 python studies/baselines.py --store outputs/stores/jsb            # resumes; hours of a core
    OMP_NUM_THREADS=1 python studies/baselines.py --store outputs/stores/jsb --test     # once, after all else

A cell is a kind and a training window. Its sizes give it as many parameters as the others. Rules, in this order: some
training pieces are held out, unlike all others. Their likelihood (in inputs as long as the window; for recurrent models
of whole pieces) chooses the learning rate (`timed.bracketed`), then one of `DROPOUTS` or 0.1. For recurrent models the
choice is also whether a window continues the one before or begins anywhere. These trials take a quarter of the time.
Then `SEEDS` learn all training pieces. Recurrent models also learn as many ids as the table of the same window, in the
time that this takes.

A run is scored twice. First come whole pieces (a carried state, or positions beyond the window), then inputs as long as
the window, each from a fresh state. Intervals resample pieces and random seeds.

Piano, what a seed saves, and differences from the table were measured by `git show b07c1d7:studies/baselines.py`.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import timed
import torch
from bundles import chorales
from numpy.typing import NDArray
from shared import options, selection_store
from torch import Tensor

from musictx.analysis.bootstrap import Interval, percentiles
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.mistakes import in_one_line
from musictx.data.dataset import CarriedWindows, RandomCrops
from musictx.data.store import Split, Store
from musictx.model.build import build_model, model_config
from musictx.objectives.next_token import NextToken
from musictx.system import processor

RATES, DROPOUTS, SEEDS = (2e-3, 4e-3, 8e-3), (0.0, 0.3), (1, 2, 3)
SECONDS, PARAMETERS, STEP_IDS = 240.0, 1_300_000, 2048  # of a training, a model, a step
TRANSPOSE, DECAY, ROUNDS = 5, 0.1, 2000
WIDTH = {"d_model": 192, "n_layers": 3, "mlp": "swiglu", "qk_norm": True, "value_residual": True, "n_heads": 4}
POSITIONS = {"table": "relative", "Fourier": "relative_fourier", "RoPE": "rope", "sines": "sinusoidal"}
POSITIONS |= {"learned": "learned"}
BOTH = (256, 1024)
WINDOWS = dict.fromkeys(POSITIONS, BOTH) | {"LSTM": (128, 256, 512, 1024), "LSTM, attention": BOTH}  # the table first


class Cell(NamedTuple):
    """A kind of model and a training window."""

    kind: str
    window: int

    @property
    def recurrent(self) -> bool:
        return self.kind.startswith("LSTM")


@cache
def config_of(cell: Cell, vocab_size: int) -> Any:
    """The config of a model; the width of its cells or of its feed-forward layers comes nearest to `PARAMETERS`."""
    if cell.recurrent:
        attention = {"additive": True, "d_attention": 32, "window": 1024} if "attention" in cell.kind else {}
        name, free, sizes = "recurrent", "d_model", range(64, 1024, 4)
        fixed: dict[str, Any] = {"n_layers": 3, **attention}
    else:
        ends = {"learned": {"max_positions": cell.window}, "table": {"max_distance": min(cell.window, 512)}}
        name, free, sizes = "transformer", "d_ff", range(64, 2048, 8)
        fixed = {**WIDTH, "position": POSITIONS[cell.kind], **ends.get(cell.kind, {})}

    def config(size: int) -> Any:
        return model_config(name, {**fixed, free: size}, vocab_size=vocab_size)

    def excess(size: int) -> int:
        with torch.device("meta"):
            return sum(p.numel() for p in build_model(config(size)).parameters()) - PARAMETERS

    first = bisect_left(sizes, 0, key=excess)  # of those with at least so many
    return config(min(sizes[max(first - 1, 0) : first + 1], key=lambda size: abs(excess(size))))


def batches(crops: RandomCrops, carried: bool, rows: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Windows (B, T + 1), and which rows begin fresh, if they continue."""
    windows = CarriedWindows(crops, rows) if carried else None
    for step in count():
        numbers = range(step * rows, (step + 1) * rows)
        if windows is None:
            yield torch.stack([crops[n] for n in numbers]), None
        else:
            ids, fresh = zip(*(windows[n] for n in numbers), strict=True)
            yield torch.stack(ids), torch.stack(fresh)


class Study:
    def __init__(self, store: Store, out: Path, seconds: float) -> None:
        self.store, self.tokenizer, self.out, self.seconds = store, store.tokenizer, out, seconds
        self.selection, self.runs = selection_store(store, out / "selection"), timed.Runs(out / "runs.json")

    def learned(self, cell: Cell, split: Split, how: dict[str, Any], share: Iterator[float]) -> tuple[Any, int]:
        """A model of the cell, and its steps; `how` has rate, dropout, carried and random seed."""
        torch.manual_seed(how["seed"])
        config = config_of(cell, self.tokenizer.vocab.size)
        model: Any = build_model(replace(config, dropout=how["dropout"]))
        crops = RandomCrops(split, self.tokenizer, cell.window, how["seed"], transpose=TRANSPOSE)
        windows = batches(crops, how["carried"], STEP_IDS // cell.window)
        objective, state = NextToken(self.tokenizer), None

        def loss() -> Tensor:
            nonlocal state
            ids, fresh = next(windows)
            asked = model
            if fresh is not None:
                state = model.init_state(len(ids), cell.window) if state is None else state.detach().reset(fresh)
                asked = lambda ids: model.carry(ids, state)  # noqa: E731
            with torch.autocast("cpu", torch.bfloat16, enabled=processor().bfloat16):
                nats, n = objective.loss(asked, objective.example(ids, np.random.default_rng()))
            return nats / n

        return model, timed.learn(model, loss, how["rate"], share, DECAY)

    def nats(self, model: Any, split: Split, window: int | None) -> dict[str, list[float]] | None:
        """Nats and tokens of each piece; None where the model has too few positions."""
        with torch.autocast("cpu", torch.bfloat16, enabled=processor().bfloat16):
            found = timed.within_positions(lambda: negative_log_likelihood(model, split, self.tokenizer, window, 16384))
        return None if found is None else {"nats": found.nats.tolist(), "tokens": found.tokens_of.tolist()}

    def trial(self, cell: Cell, how: dict[str, Any]) -> float:
        """Nats a token of held-out training pieces after a quarter of the time."""

        def make() -> Any:
            train, held_out = (self.selection.split(name) for name in ("train", "validation"))
            model, steps = self.learned(cell, train, how | {"seed": 0}, timed.shares(self.seconds / 4))
            found = self.nats(model, held_out, None if cell.recurrent else cell.window)
            return {"steps": steps, "processor": str(processor())} | (found or {})

        key = f"{cell}, {how}, {self.seconds:g} s, trial"
        run = self.runs.get(key, make)
        nll = sum(run["nats"]) / sum(run["tokens"])
        print(f"{key}: {nll:.4f} after {run['steps']} steps", flush=True)
        return nll if np.isfinite(nll) else float("inf")

    def choice(self, cell: Cell) -> dict[str, Any]:
        """The rate, dropout and way of windows, by the rules above."""
        how: dict[str, Any] = {"rate": 0.0, "dropout": 0.1, "carried": cell.recurrent}
        how["rate"] = timed.bracketed(RATES, lambda rate: self.trial(cell, how | {"rate": rate}))
        for name, values in {"dropout": DROPOUTS, "carried": (False,) if cell.recurrent else ()}.items():
            how[name] = min((how[name], *values), key=lambda value: self.trial(cell, how | {name: value}))
        return how

    def final(self, cell: Cell, how: dict[str, Any], split: str, steps: int | None = None) -> dict[str, Any]:
        """A run on all training pieces, kept with its weights, and its nats of a split; with `steps`, of so many in
        place of the seconds."""
        key = f"{cell}, {how}, {f'{steps} steps' if steps else f'{self.seconds:g} s'}"
        weights = self.out / f"{cell.kind}-{cell.window}-{crc32(key.encode()):08x}.pt"

        def make() -> Any:
            share = iter(np.arange(steps) / steps) if steps else timed.shares(self.seconds)
            model, taken = self.learned(cell, self.store.split("train"), how, share)
            torch.save(model.state_dict(), weights)
            return {
                "steps": taken,
                "processor": str(processor()),
                "parameters": sum(p.numel() for p in model.parameters()),
            }

        def read() -> Any:
            model: Any = build_model(config_of(cell, self.tokenizer.vocab.size)).eval()
            model.load_state_dict(torch.load(weights, weights_only=True))
            inputs = {"whole": None, "fresh": cell.window}
            return {name: self.nats(model, self.store.split(split), window) for name, window in inputs.items()}

        print(key, flush=True)
        run: dict[str, Any] = self.runs.get(key, make)
        scored: dict[str, Any] = self.runs.get(f"{key}, {split}", read)
        return run | scored

    def table(self, split: str) -> None:
        """Makes all runs; after each cell the file has all so far."""
        rows: dict[str, dict[str, Any]] = {}
        for cell in [Cell(kind, window) for kind, windows in WINDOWS.items() for window in windows]:
            how, title = self.choice(cell), f"{cell.kind} {cell.window}"
            each = {title: [self.final(cell, how | {"seed": seed}, split) for seed in SEEDS]}
            if cell.recurrent and (like := rows.get(f"table {cell.window}")):
                steps = round(np.mean(like["steps"]))
                each[f"{title}, as many ids"] = [self.final(cell, how | {"seed": n}, split, steps) for n in SEEDS]
            rows |= {name: how | figures(runs) for name, runs in each.items()}
            timed.write_rows(self.out / f"chorales-{split}.json", rows)


def figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all random seeds: steps, parameters, and nats a token with their intervals, where all models can read them."""
    found: dict[str, Any] = {"steps": [run["steps"] for run in runs], "parameters": runs[0]["parameters"]}
    for name in ("whole", "fresh"):
        if None not in (each := [run[name] for run in runs]):
            nats, tokens = (np.array([of[unit] for of in each]) for unit in ("nats", "tokens"))
            found[name] = [round(x, 5) for x in ratio(nats, tokens)]
    return found


def ratio(top: NDArray[Any], bottom: NDArray[Any]) -> Interval:
    """The ratio of sums of (S, P), random seeds by pieces, with an interval over both."""
    rng = np.random.default_rng(0)
    pieces, seeds = (rng.multinomial(n, np.full(n, 1 / n), ROUNDS) for n in reversed(top.shape))
    tops, bottoms = (np.einsum("rs,sp,rp->r", seeds, of, pieces) for of in (top, bottom))
    return percentiles(float(top.sum() / bottom.sum()), tops / bottoms)


def main() -> None:
    defaults = {"out": Path("outputs/baselines"), "seconds": SECONDS}
    args = options(__doc__, "store", "out", "seconds", "test", **defaults).parse_args()
    Study(chorales(args.store), args.out, args.seconds).table("test" if args.test else "validation")


if __name__ == "__main__":
    with in_one_line():
        main()
