"""The trainings of `compute.py`: models of one size, steps that go on after an interruption, and pieces to score."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
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
from torch import Tensor

from musictx.analysis.likelihood import negative_log_likelihood, notes_and_seconds
from musictx.data.dataset import CarriedWindows, RandomCrops
from musictx.data.store import Split, Store
from musictx.errors import UserError
from musictx.files import replacing
from musictx.model.build import build_model, model_config
from musictx.objectives.next_token import NextToken
from musictx.system import processor
from musictx.terminal import say
from musictx.training.optimizer import OPTIMIZERS, build_optimizer

PARAMETERS, STEP_IDS, WARM, FALLS, DECAY = 1_300_000, 2048, 30, 0.2, 0.1
TURNS, STEPS = 10, 3  # of which costs are the fastest
KEPT_S = 60.0  # of the process, between two times that a training is kept
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
WINDOWS = {"LSTM": (32, 64, 128, 512)} | dict.fromkeys(POSITIONS, (64, 128, 256, 1024))


class Way(NamedTuple):
    """How a kind is trained."""

    window: int
    optimizer: str
    rate: float
    dropout: float


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

    def take(self, rate: float) -> None:
        """One step."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        self.loss().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1

    def learn(self, until: int, falls: int = 0) -> None:
        """Takes steps until there are so many; over the last `falls` the rate falls to zero."""
        self.model.train()
        kept_at = process_time()
        while self.step < until:
            self.take(self.way.rate * min((self.step + 1) / WARM, (until - self.step) / falls if falls else 1.0, 1.0))
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


def name_of(way: Way, seed: int) -> str:
    return f"{way.window}, {way.optimizer}, {way.rate:g}, {way.dropout:g}, {seed}"


def token_nats(run: dict[str, Any]) -> float:
    nll = sum(run["nats"]) / sum(run["tokens"])
    return nll if np.isfinite(nll) else float("inf")


class Kind:
    """All trainings of a kind on a corpus."""

    def __init__(self, music: Music, kind: str, out: Path) -> None:
        self.music, self.kind, self.out, self.name = music, kind, out, f"{music.name}-{kind}"
        self.costs = timed.Runs(out / f"{self.name}-costs.json")  # a file each: processes can share the kinds
        self.runs = timed.Runs(out / f"{self.name}.json")

    @property
    def settings(self) -> str:
        """What is the same for each training: figures of others are not taken for these."""
        model = config_of(self.kind, 256, 0.0, self.music.tokenizer.vocab.size)
        return repr((model, AUGMENT, STEP_IDS, WARM, FALLS))

    def file(self, key: str) -> Path:
        name = f"{self.music.name}, {self.kind}, {key}, {self.settings}"
        return self.out / "models" / f"{crc32(name.encode()):08x}.pt"

    def clocked(self, window: int, optimizer: str) -> Iterator[float]:
        """CPU seconds of a step, or seconds on a GPU: a mean of `STEPS`, again and again."""
        training = Training(self.music, self.kind, Way(window, optimizer, 1e-3, 0.1), 0, self.file("cost"))
        clock = process_time if self.music.device == "cpu" else perf_counter
        while True:
            began = clock()
            for _ in range(STEPS):
                training.take(1e-3)
            if self.music.device == "cuda":
                torch.cuda.synchronize()
            yield (clock() - began) / STEPS

    def cost(self, window: int, optimizer: str) -> float:
        return float(self.costs.known[f"{window}, {optimizer}"]["s"])

    def steps(self, minutes: float, way: Way) -> int:
        return max(round(60 * minutes / self.cost(way.window, way.optimizer)), 5)

    def model(self, minutes: float, way: Way, seed: int = 0) -> Any:
        """A model that has learned for so long, trained as far as it is not there. Raises UserError."""
        steps, name = self.steps(minutes, way), name_of(way, seed)
        path, falls = self.file(f"{name}, {steps} steps"), round(FALLS * steps)
        if not path.exists():
            trunk = Training(self.music, self.kind, way, seed, self.file(name))
            if trunk.step > steps - falls:
                what = f"{self.name}: {name} has learned for longer than {minutes:g} minutes"
                raise UserError(what, "give budgets in rising order, or another --out")
            trunk.learn(steps - falls)
        training = Training(self.music, self.kind, way, seed, path, self.file(name))
        training.learn(steps, falls)
        return training.model

    def run(self, minutes: float, way: Way, seed: int = 0, split: str = "validation") -> dict[str, Any]:
        """What a training has after so long: steps, and the nats of each piece."""
        steps = self.steps(minutes, way)
        scored = f"{self.settings}, {SCORED[self.music.name][split]}"
        key = f"{name_of(way, seed)}, {steps} steps, {split}, {crc32(scored.encode()):08x}"

        def make() -> Any:
            found = self.music.nats(self.model(minutes, way, seed), split, way.window)
            say(f"{self.name}, {minutes:g} min, {key}: {token_nats(found):.4f}", flush=True)
            return {"steps": steps, "processor": str(processor())} | found

        run: dict[str, Any] = self.runs.get(key, make)
        return run


def measure_costs(kinds: Iterable[Kind]) -> None:
    """Gives each kind the seconds of its steps that it lacks: the fastest of `TURNS`. All take turns, so that none has
    the quiet minutes of a machine alone."""
    cells = [
        (kind, f"{window}, {optimizer}", window, optimizer)
        for kind in kinds
        for window, optimizer in product(WINDOWS[kind.kind], OPTIMIZERS)
    ]
    lacking = [cell for cell in cells if cell[1] not in cell[0].costs.known]
    clocks = [kind.clocked(window, optimizer) for kind, _, window, optimizer in lacking]
    turns = [[next(clock) for clock in clocks] for _ in range(TURNS)]
    for (kind, key, *_), times in zip(lacking, zip(*turns, strict=True), strict=True):
        device = str(processor()) if kind.music.device == "cpu" else torch.cuda.get_device_name()
        kind.costs.get(key, partial(dict, s=min(times), turns=times, processor=device))
