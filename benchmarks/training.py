"""Tokens per second of a training step, beside our rewrite of the public Music Transformer code.

All take turns in one process over one batch of random ids, with weights of one size and the same dropout. The public
code also drops attention weights, which `musictx train` does not by default. Each is measured with that dropout and
without, beside the other with the same. The public code knows only float32. `public_compiled` adds it in bfloat16
through torch.compile, as a user of that code could write it. A step is forward, backward and update, ours with the
clipping and the optimizer of `musictx train`, without Lightning's loop, validation and logging. Then the loader of
`musictx train`, with random augmented crops of synthetic performances, feeds the fastest of ours. The idle share is the
time spent waiting for a batch.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from facts import Contestant, Turn, begin, compete, report, timed, wait
from public import NAME, PublicConfig, PublicTraining, PublicTransformer
from torch import Tensor
from torch.utils.data import DataLoader

from musictx.config.command import Command
from musictx.data.dataset import RandomCrops
from musictx.data.store import Split
from musictx.errors import ConfigError, UserError
from musictx.files import write_json
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.music.score import Score
from musictx.objectives.next_token import NextToken
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers import build_tokenizer
from musictx.training.optimizer import build_optimizer


@dataclass
class BenchTrainingConfig:
    """musictx benchmarks/training.py: tokens per second of a training step beside our rewrite of the public code."""

    device: str = setting("cpu", "cpu or cuda")
    d_model: int = setting(512, "width of the models")
    n_layers: int = setting(6, "layers of the models")
    n_heads: int = setting(8, "heads of attention")
    d_ff: int = setting(2048, "width inside the feed-forward layers")
    length: int = setting(2048, "tokens in a window, as in the public code and the paper")
    batch: int = setting(2, "windows at once")
    positions: list[str] = setting(["relative", "relative_fourier"], "forms of position of our models")
    public_compiled: bool = setting(False, "also measure the rewrite in bfloat16 through torch.compile")
    workers: list[int] = setting([0, 1], "processes that load data, for the idle share")
    loader_steps: int = setting(8, "steps over which the idle share is measured")
    warm_up: int = setting(5, "steps before the first measurement")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none", path=True)


TOKENIZER = build_tokenizer("performance")
PRECISIONS = ("32-true", "bf16-mixed")  # that our code trains in
DROPOUT, ATTENTION_DROPOUTS = 0.1, (0.1, 0.0)  # on the attention weights: as the public code has it, and without

Step = Callable[[Tensor], object]  # ids (B, T + 1)


class Loading(NamedTuple):
    """Seconds of each wait for a batch, and of each step with its wait."""

    workers: int
    waited: list[float]
    seconds: list[float]

    @property
    def said(self) -> str:
        share = f"{100 * sum(self.waited) / sum(self.seconds):.2f} % of the step waits for data"
        return f"{self.workers} loader processes: {share} ({median(self.waited) * 1000:.2f} ms a batch)"


def sizes_of(config: BenchTrainingConfig) -> dict[str, Any]:
    """Those that both models have."""
    return {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff")} | {"dropout": DROPOUT}


def ours(config: BenchTrainingConfig, position: str, precision: str, attention_dropout: float) -> Step:
    torch.manual_seed(0)
    sizes = sizes_of(config) | {"max_distance": config.length, "attention_dropout": attention_dropout}
    kind = TransformerConfig(TOKENIZER.vocab.size, position=position, **sizes)
    model = Transformer(kind).to(config.device)
    optimizer = build_optimizer(model, "adamw", 3e-4, 0.01)
    objective, rng = NextToken(TOKENIZER), np.random.default_rng(0)

    def step(ids: Tensor) -> None:
        with torch.autocast(config.device, torch.bfloat16, enabled=precision == "bf16-mixed"):
            total, count = objective.loss(model, objective.example(ids, rng))
        optimizer.zero_grad()
        (total / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def public(config: BenchTrainingConfig, attention_dropout: float, compiled: bool) -> Step:
    torch.manual_seed(0)
    sizes = sizes_of(config) | {"max_sequence": config.length, "attention_dropout": attention_dropout}
    model = PublicTransformer(PublicConfig(TOKENIZER.vocab.size, **sizes))
    step = PublicTraining(model.to(config.device), TOKENIZER.vocab.pad).step
    if not compiled:
        return step
    model.compile()

    def with_autocast(ids: Tensor) -> None:
        with torch.autocast(config.device, torch.bfloat16):
            step(ids)

    return with_autocast


def contestants(config: BenchTrainingConfig) -> dict[Contestant, Callable[[], Step]]:
    """Each with the function that prepares it, which may fail."""
    tokens, found = config.batch * config.length, {}

    def add(who: str, p: float, prepare: Callable[[], Step]) -> None:
        name, base = (f"{each}, attention dropout {p:g}" for each in (who, f"{NAME}, 32-true"))
        found[Contestant(name, tokens, base)] = prepare

    forms = [("32-true", False), ("bf16-mixed compiled", True)][: 1 + config.public_compiled]
    for (precision, compiled), p in product(forms, ATTENTION_DROPOUTS):
        add(f"{NAME}, {precision}", p, partial(public, config, p, compiled))
    for position, precision, p in product(config.positions, PRECISIONS, ATTENTION_DROPOUTS):
        add(f"musictx, {position}, {precision}", p, partial(ours, config, position, precision, p))
    return found


def measure(config: BenchTrainingConfig) -> tuple[list[Contestant], Step]:
    """All in turn, and the fastest of ours; one that cannot run says why. Raises UserError if none of ours runs."""
    ids = torch.randint(TOKENIZER.vocab.pad, (config.batch, config.length + 1), device=config.device)
    steps: dict[str, Step] = {}

    def prepared(name: str, prepare: Callable[[], Step]) -> Turn:
        step = prepare()
        for _ in range(config.warm_up):  # takes its memory, and lets kernels choose
            step(ids)
        steps[name] = step  # one that has no room is let go
        return lambda: timed(lambda: step(ids), config.device)

    given = contestants(config)
    rows = compete({row: partial(prepared, row.name, make) for row, make in given.items()}, config.repeats)
    mine = [row for row in rows if not row.name.startswith(NAME)]
    if all(row.failed for row in mine):
        raise UserError(f"none of ours can run: {mine[0].failed}")
    return rows, steps[min((row for row in mine if row.seconds), key=lambda row: median(row.seconds)).name]


def performances() -> Split:
    """Twenty random pieces of 2,000 notes, as ids."""
    rng = np.random.default_rng(0)
    pieces = []
    for _ in range(20):
        onset_s = np.sort(rng.uniform(0, 200, 2000))
        offset_s = onset_s + rng.exponential(0.4, 2000)
        score = Score(onset_s, offset_s, rng.integers(30, 100, 2000), rng.integers(20, 110, 2000))
        pieces.append(TOKENIZER.encode(score))
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in pieces])]).astype(np.int64)
    return Split(np.concatenate(pieces), offsets, [str(k) for k in range(len(pieces))])


def load(config: BenchTrainingConfig, step: Step, workers: int) -> Loading:
    """Steps on batches from the loader; the first does not count, since the loader's processes start for it."""
    crops = RandomCrops(performances(), TOKENIZER, config.length, 0, 3, (0.95, 0.975, 1.0, 1.025, 1.05))
    items = range((config.loader_steps + 1) * config.batch)
    pinned = config.device == "cuda"
    batches = iter(DataLoader(crops, config.batch, sampler=items, num_workers=workers, pin_memory=pinned))
    step(next(batches).to(config.device))
    waited, seconds = [], []
    wait(config.device)
    for _ in range(config.loader_steps):
        start = perf_counter()
        batch = next(batches)
        waited.append(perf_counter() - start)
        step(batch.to(config.device, non_blocking=pinned))
        wait(config.device)
        seconds.append(perf_counter() - start)
    return Loading(workers, waited, seconds)


def bench_training(config: BenchTrainingConfig) -> None:
    where = begin(config, ("n_layers", "d_ff", "length", "batch", "loader_steps", "warm_up", "repeats"))
    if not config.positions:
        raise ConfigError("positions", got=[], allowed="at least one")
    if min(config.workers, default=0) < 0:
        raise ConfigError("workers", got=config.workers, allowed="0 or more each")
    for position in config.positions:  # refuses before the first step what TransformerConfig refuses
        TransformerConfig(1, config.d_model, n_heads=config.n_heads, position=position)
    size = f"{config.n_layers} layers, width {config.d_model}, {config.n_heads} heads, feed-forward {config.d_ff}"
    say(f"{where}\n{size}; batch {config.batch} of {config.length} tokens")
    rows, fastest = measure(config)
    loading = [load(config, fastest, workers) for workers in config.workers]
    say("\n".join([report(rows), *(each.said for each in loading)]))
    if config.out:
        facts = {"where": where, "config": asdict(config), "rows": [row._asdict() for row in rows]}
        write_json(Path(config.out), facts | {"loading": [each._asdict() for each in loading]})


COMMAND = Command("bench_training", bench_training, BenchTrainingConfig)
