"""Nats a note against compute: which kind of model learns chorales and piano recordings better, from a minute on?

    OMP_NUM_THREADS=1 python studies/compute.py --costs          # first, on a quiet machine
    OMP_NUM_THREADS=1 python studies/compute.py --minutes 1 4    # resumes; some twelve hours of a core
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
more dropout and the next window once, as trials cost too much there.

Scoring is fair to both: a Transformer hears at least half a window before each token, an LSTM carries its state through
the piece. Recordings count as far as `SCORED` ids. The test split is read with what validation chose, by all random
seeds. Intervals resample pieces and random seeds.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import timed
import torch
from numpy.typing import NDArray
from shared import options
from torch import Tensor

from musictx.analysis.bootstrap import Interval, percentiles
from musictx.analysis.likelihood import negative_log_likelihood, notes_and_seconds
from musictx.config.mistakes import in_one_line
from musictx.data.dataset import CarriedWindows, RandomCrops
from musictx.data.store import Split, Store
from musictx.errors import UserError
from musictx.files import replacing
from musictx.model.build import build_model, model_config
from musictx.objectives.next_token import NextToken
from musictx.system import processor
from musictx.training.optimizer import OPTIMIZERS, build_optimizer
from musictx.viz.figure import new_figure, save_figure

MINUTES, WIDE = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0), 4.0
PARAMETERS, STEP_IDS, WARM, FALLS, DECAY = 1_300_000, 2048, 30, 0.2, 0.1
KEPT_S = 60.0  # of the process, between two times that a training is kept
ROUNDS = 2000  # resamples
AUGMENT: dict[str, dict[str, Any]] = {
    "chorales": {"transpose": 5},
    "MAESTRO": {"transpose": 3, "stretch": (0.95, 0.975, 1.0, 1.025, 1.05)},
}
SCORED: dict[str, dict[str, tuple[int | None, int]]] = {  # ids of a piece, and every so many pieces
    "chorales": {"validation": (None, 1), "test": (None, 1)},
    "MAESTRO": {"validation": (4096, 3), "test": (4096, 1)},
}
BLOCK = {"n_layers": 3, "d_model": 192, "n_heads": 4, "mlp": "swiglu", "qk_norm": True, "value_residual": True}
CELLS = {"n_layers": 3, "residual": True}
POSITIONS = {"table": "relative", "Fourier": "relative_fourier", "RoPE": "rope", "sines": "sinusoidal"}
POSITIONS |= {"sines, large tokens": "sinusoidal"}  # new tokens have the paper's size, as large as the sines; else 0.28
KINDS = ("LSTM", *POSITIONS)
WINDOWS = {"LSTM": (128, 512)} | dict.fromkeys(POSITIONS, (256, 1024))
DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.5)


class Way(NamedTuple):
    """How a kind is trained."""

    window: int
    optimizer: str
    rate: float
    dropout: float


FIRST = {kind: Way(windows[0], "muon", 4e-3, 0.1) for kind, windows in WINDOWS.items()}


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
        if best == before or not wide:
            return best


@cache
def config_of(kind: str, window: int, dropout: float, vocab_size: int) -> Any:
    """The config of a model; the width of its cells or of its feed-forward layers comes nearest to `PARAMETERS`."""
    name, free, sizes = "transformer", "d_ff", range(64, 2048, 8)
    fixed: dict[str, Any] = {"dropout": dropout}
    if kind in POSITIONS:
        fixed |= {**BLOCK, "position": POSITIONS[kind]} | (
            {"max_distance": min(window, 512)} if kind == "table" else {}
        )
    else:
        name, free, sizes = "recurrent", "d_model", range(64, 1024, 4)
        fixed |= {**CELLS, "weight_dropout": dropout}

    def config(size: int) -> Any:
        return model_config(name, {**fixed, free: size}, vocab_size=vocab_size)

    def excess(size: int) -> int:
        with torch.device("meta"):
            return sum(p.numel() for p in build_model(config(size)).parameters()) - PARAMETERS

    first = bisect_left(sizes, 0, key=excess)  # of those with at least so many
    return config(min(sizes[max(first - 1, 0) : first + 1], key=lambda size: abs(excess(size))))


class Training:
    """A model that learns, kept in a file again and again; the same steps follow whether or not it was interrupted."""

    def __init__(self, music: "Music", kind: str, way: Way, seed: int, path: Path, begin: Path | None = None) -> None:
        torch.manual_seed(seed)
        self.way, self.path, self.device, self.step = way, path, music.device, 0
        vocab = music.tokenizer.vocab.size
        self.model: Any = build_model(config_of(kind, way.window, way.dropout, vocab))
        if kind == "sines, large tokens":
            torch.nn.init.normal_(self.model.embed.weight, std=self.model.config.d_model**-0.5)
        self.model.to(self.device)
        self.optimizer = build_optimizer(self.model, way.optimizer, way.rate, DECAY)
        crops = RandomCrops(music.train, music.tokenizer, way.window, seed, **AUGMENT[music.name])
        self.rows, self.objective = STEP_IDS // way.window, NextToken(music.tokenizer)
        self.state: Any = None  # of a model that carries one
        self.windows: Any = CarriedWindows(crops, self.rows) if kind not in POSITIONS else crops
        if path.exists() or begin is not None:
            self.load(path if path.exists() else begin)  # type: ignore[arg-type] # one of them is a path

    def load(self, path: Path) -> None:
        kept = torch.load(path, weights_only=True, map_location=self.device)
        self.step = kept["step"]
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        if kept["hidden"] is not None:
            self.state = self.model.init_state(self.rows, self.way.window)
            self.state.hidden = tuple(kept["hidden"])
        torch.set_rng_state(kept["chance"].cpu())
        if self.device == "cuda":
            torch.cuda.set_rng_state(kept["chance on the device"].cpu())

    def keep(self) -> None:
        on_device = torch.cuda.get_rng_state() if self.device == "cuda" else torch.zeros(0)
        kept = {"step": self.step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        kept |= {"hidden": None if self.state is None else list(self.state.hidden)}
        with replacing(self.path) as partial:
            torch.save(kept | {"chance": torch.get_rng_state(), "chance on the device": on_device}, partial)

    def loss(self) -> Tensor:
        """The mean loss of the next step's windows."""
        numbers, asked = range(self.step * self.rows, (self.step + 1) * self.rows), self.model
        if isinstance(self.windows, CarriedWindows):
            rows, fresh = zip(*(self.windows[n] for n in numbers), strict=True)
            flags = torch.stack(fresh).to(self.device)
            state = (
                self.state.detach().reset(flags) if self.state else self.model.init_state(self.rows, self.way.window)
            )
            self.state, asked = state, partial(self.model.carry, state=state)
        else:
            rows = tuple(self.windows[n] for n in numbers)
        ids = torch.stack(rows).to(self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            nats, n = self.objective.loss(asked, self.objective.example(ids, np.random.default_rng()))
        return nats / n

    def learn(self, until: int, falls: int = 0) -> None:
        """Takes steps until there are so many; over the last `falls` the rate falls to zero."""
        self.model.train()
        kept_at = process_time()
        while self.step < until:
            factor = min((self.step + 1) / WARM, (until - self.step) / falls if falls else 1.0, 1.0)
            for group in self.optimizer.param_groups:
                group["lr"] = self.way.rate * factor
            self.optimizer.zero_grad()
            self.loss().backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.step += 1
            if process_time() - kept_at > KEPT_S:
                self.keep()
                kept_at = process_time()
        self.keep()
        self.model.eval()


class Music:
    """A corpus: what is learned, and the pieces that are scored."""

    def __init__(self, name: str, store: Store, device: str) -> None:
        self.name, self.store, self.device, self.tokenizer = name, store, device, store.tokenizer
        self.train = store.split("train")

    @cache  # noqa: B019 # as long as the process
    def scored(self, split: str) -> tuple[Split, NDArray[np.int64]]:
        """The pieces of a split that are scored, and how many notes each has."""
        most, every = SCORED[self.name][split]
        whole = self.store.split(split)
        pieces = [np.asarray(whole[n][:most]) for n in range(0, len(whole), every)]
        offsets = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        part = Split(np.concatenate(pieces), offsets, whole.names[::every])
        return part, notes_and_seconds(part, self.tokenizer)[0]

    def nats(self, model: Any, split: str, window: int) -> dict[str, list[float]]:
        """Nats and tokens of each piece."""
        pieces, _ = self.scored(split)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            found = negative_log_likelihood(
                model, pieces, self.tokenizer, window, 16384, self.device, stride=window // 2
            )
        return {"nats": found.nats.round(3).tolist(), "tokens": found.tokens_of.tolist()}


class Kind:
    """All trainings of a kind on a corpus."""

    def __init__(self, music: Music, kind: str, out: Path) -> None:
        self.music, self.kind, self.out, self.name = music, kind, out, f"{music.name}-{kind}"
        self.costs = timed.Runs(out / f"{self.name}-costs.json")  # a file each: processes can share the kinds
        self.runs = timed.Runs(out / f"{self.name}.json")

    def file(self, key: str) -> Path:
        settings = repr(
            (config_of(self.kind, 256, 0.0, self.music.tokenizer.vocab.size), AUGMENT, STEP_IDS, WARM, FALLS)
        )
        return self.out / "models" / f"{crc32(f'{self.music.name}, {self.kind}, {key}, {settings}'.encode()):08x}.pt"

    def cost(self, window: int, optimizer: str) -> float:
        """CPU seconds of a step, or seconds on a GPU: the fastest of turns."""

        def make() -> Any:
            training = Training(self.music, self.kind, Way(window, optimizer, 1e-3, 0.1), 0, self.file("cost"))
            clock, turns = (process_time if self.music.device == "cpu" else perf_counter), []
            for turn in range(6):
                began = clock()
                training.learn((turn + 1) * 3)
                turns.append((clock() - began) / 3)
            training.path.unlink()
            device = str(processor()) if self.music.device == "cpu" else torch.cuda.get_device_name()
            return {"s": min(turns), "turns": turns, "processor": device}

        return float(self.costs.get(f"{window}, {optimizer}", make)["s"])

    def run(self, minutes: float, way: Way, seed: int = 0, split: str = "validation") -> dict[str, Any]:
        """What a training has after so long: steps, and the nats of each piece."""
        steps = max(round(60 * minutes / self.cost(way.window, way.optimizer)), 5)
        name = f"{way.window}, {way.optimizer}, {way.rate:g}, {way.dropout:g}, {seed}"
        key = f"{name}, {steps} steps"
        path, falls = self.file(key), round(FALLS * steps)

        def learned() -> Any:
            if not path.exists():
                trunk = Training(self.music, self.kind, way, seed, self.file(name))
                if trunk.step > steps - falls:
                    what = f"{self.name}: {name} has learned for longer than {minutes:g} minutes"
                    raise UserError(what, "give budgets in rising order, or another --out")
                trunk.learn(steps - falls)
            training = Training(self.music, self.kind, way, seed, path, self.file(name))
            training.learn(steps, falls)
            return training.model

        def make() -> Any:
            found = self.music.nats(learned(), split, way.window)
            print(f"{self.name}, {minutes:g} min, {key}, {split}: {token_nats(found):.4f}", flush=True)
            return {"steps": steps, "processor": str(processor())} | found

        run: dict[str, Any] = self.runs.get(f"{key}, {split}", make)
        return run

    def row(self, minutes: float, first: Way, seeds: int, split: str) -> tuple[Way, dict[str, Any]]:
        """The choice for a budget, and what `seeds` trainings have with it."""
        best = chosen(self.kind, first, minutes <= WIDE, lambda way: token_nats(self.run(minutes, way)))
        runs = [self.run(minutes, best, seed, split) for seed in range(seeds)]
        nats = np.array([run["nats"] for run in runs])
        each = {"note": self.music.scored(split)[1], "token": np.array(runs[0]["tokens"])}
        found = {f"per_{unit}": [round(x, 5) for x in ratio(nats, of + 0 * nats)] for unit, of in each.items()}
        return best, best._asdict() | {"steps": runs[0]["steps"], "ids": runs[0]["steps"] * STEP_IDS} | found


def token_nats(run: dict[str, Any]) -> float:
    nll = sum(run["nats"]) / sum(run["tokens"])
    return nll if np.isfinite(nll) else float("inf")


def ratio(top: NDArray[Any], bottom: NDArray[Any]) -> Interval:
    """The ratio of sums of (S, P), random seeds by pieces, with an interval over both."""
    rng = np.random.default_rng(0)
    pieces, seeds = (rng.multinomial(n, np.full(n, 1 / n), ROUNDS) for n in reversed(top.shape))
    tops, bottoms = (np.einsum("rs,sp,rp->r", seeds, of, pieces) for of in (top, bottom))
    return percentiles(float(top.sum() / bottom.sum()), tops / bottoms)


def plot(rows: dict[str, dict[str, Any]], path: Path) -> None:
    """Nats a note by minutes, a line for each kind."""
    figure = new_figure(11, 4.5)
    panels = figure.subplots(1, len(AUGMENT))
    for axes, name in zip(panels, AUGMENT, strict=True):
        for kind in KINDS:
            of = [
                (row["minutes"], *row["per_note"])
                for row in rows.values()
                if (row["corpus"], row["kind"]) == (name, kind)
            ]
            if of:
                x, mean, low, high = zip(*of, strict=True)
                (line,) = axes.plot(x, mean, "o-", ms=4, lw=1.2, label=kind)
                axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, lw=0)
        axes.set_xscale("log")
        ticks = sorted({row["minutes"] for row in rows.values()})
        axes.set_xticks(ticks, [f"{n:g}" for n in ticks])
        axes.minorticks_off()
        axes.set(title=name, xlabel="minutes of training")
    panels[0].set_ylabel("nats a note")
    panels[0].legend(frameon=False)
    save_figure(figure, path)


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
    if args.costs:
        for kind, optimizer in product(kinds, OPTIMIZERS):
            costs = [f"{window}: {kind.cost(window, optimizer):.3f} s" for window in WINDOWS[kind.kind]]
            print(kind.name, optimizer, *costs, flush=True)
        return
    split, rows, best = "test" if args.test else "validation", {}, {kind: FIRST[kind.kind] for kind in kinds}
    for minutes in args.minutes:
        for kind in kinds:
            best[kind], row = kind.row(minutes, best[kind], args.seeds if minutes <= WIDE else 1, split)
            about = {"corpus": kind.music.name, "kind": kind.kind, "minutes": minutes}
            rows[f"{kind.music.name}, {kind.kind}, {minutes:g}"] = about | row
            if list(args.kinds) == list(KINDS):  # else another process has the rest
                timed.write_rows(args.out / f"compute-{split}.json", rows)
                plot(rows, args.out / f"compute-{split}.png")


if __name__ == "__main__":
    with in_one_line():
        main()
