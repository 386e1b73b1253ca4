"""Tokens per second of a training step, beside our rewrite of the public Music Transformer code.

All take turns in one process over one batch of random ids, with weights of one size and the same dropout. The public
code also drops attention weights, which `musictx train` does not by default. Each is measured with that dropout and
without, beside the other with the same. The public code knows only float32. `public_compiled` adds it in bfloat16
through torch.compile, as a user of that code could write it. A step is forward, backward and update, ours with the
clipping and the optimizer of `musictx train`, without Lightning's loop, validation and logging. Then the loader of
`musictx train`, with random augmented crops of synthetic performances, feeds the fastest of ours. The idle share is the
time spent waiting for a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from facts import Turn, begin, rates, take_turns, timed, wait
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
    dropout: float = setting(0.1, "dropout everywhere but on the attention weights")
    attention_dropouts: list[float] = setting(
        [0.1, 0.0], "dropout on the attention weights: with it, as the public code has it, and without"
    )
    length: int = setting(2048, "tokens in a window, as in the public code and the paper")
    batch: int = setting(2, "windows at once")
    precisions: list[str] = setting(["32-true", "bf16-mixed"], "precisions that our code trains in")
    positions: list[str] = setting(["relative", "relative_fourier"], "forms of position of our models")
    impl: str = setting("auto", "the kernel of position=relative")
    public_compiled: bool = setting(False, "also measure the rewrite in bfloat16 through torch.compile")
    workers: list[int] = setting([0, 1], "processes that load data, for the idle share")
    loader_steps: int = setting(8, "steps over which the idle share is measured")
    warm_up: int = setting(5, "steps before the first measurement")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


TOKENIZER = build_tokenizer("performance")
PRECISIONS = ("32-true", "bf16-mixed")

Step = Callable[[Tensor], object]  # ids (B, T + 1)


class Contestant(NamedTuple):
    """One contestant: seconds of each step, or why it has none."""

    name: str
    attention_dropout: float
    seconds: Sequence[float] = ()
    failed: str = ""


class Loading(NamedTuple):
    """Seconds of each wait for a batch, and of each step with its wait."""

    workers: int
    waited: list[float]
    seconds: list[float]

    @property
    def idle_share(self) -> float:
        return sum(self.waited) / sum(self.seconds)


def ours(config: BenchTrainingConfig, position: str, precision: str, attention_dropout: float) -> Step:
    torch.manual_seed(0)
    sizes = {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff", "dropout")}
    sizes |= {"max_distance": config.length, "attention": config.impl, "attention_dropout": attention_dropout}
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
    sizes = {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff", "dropout")}
    sizes |= {"max_sequence": config.length, "attention_dropout": attention_dropout}
    model = PublicTransformer(PublicConfig(TOKENIZER.vocab.size, **sizes))
    step = PublicTraining(model.to(config.device), TOKENIZER.vocab.pad).step
    if not compiled:
        return step
    model.compile()

    def with_autocast(ids: Tensor) -> None:
        with torch.autocast(config.device, torch.bfloat16):
            step(ids)

    return with_autocast


def contestants(config: BenchTrainingConfig) -> list[tuple[Contestant, Callable[[], Step]]]:
    """Each with the function that prepares it, which may fail."""
    found: list[tuple[Contestant, Callable[[], Step]]] = []
    forms = [("32-true", False), ("bf16-mixed compiled", True)][: 1 + config.public_compiled]
    for (precision, compiled), p in product(forms, config.attention_dropouts):
        row = Contestant(f"{NAME}, {precision}, attention dropout {p:g}", p)
        found.append((row, partial(public, config, p, compiled)))
    for position, precision, p in product(config.positions, config.precisions, config.attention_dropouts):
        row = Contestant(f"musictx, {position}, {precision}, attention dropout {p:g}", p)
        found.append((row, partial(ours, config, position, precision, p)))
    return found


def measure(config: BenchTrainingConfig) -> tuple[list[Contestant], Step]:
    """All in turn, and the fastest of ours; one that cannot run says why. Raises ConfigError if none of ours runs."""
    ids = torch.randint(TOKENIZER.vocab.pad, (config.batch, config.length + 1), device=config.device)
    steps: dict[str, Step] = {}

    def prepared(name: str, prepare: Callable[[], Step]) -> Turn:
        step = prepare()
        for _ in range(config.warm_up):  # takes its memory, and lets kernels choose
            step(ids)
        steps[name] = step  # one that has no room is let go
        return lambda: timed(lambda: step(ids), config.device)

    given = contestants(config)
    mine = [row.name for row, _ in given if not row.name.startswith(NAME)]
    turns = {row.name: partial(prepared, row.name, prepare) for row, prepare in given}
    seconds, failed = take_turns(turns, config.repeats)
    if failed.keys() >= {*mine}:
        raise UserError(f"none of ours can run: {failed[mine[0]]}")
    rows = [row._replace(seconds=seconds.get(row.name, []), failed=failed.get(row.name, "")) for row, _ in given]
    return rows, steps[min((name for name in mine if name in seconds), key=lambda name: median(seconds[name]))]


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


def report(rows: list[Contestant], loading: list[Loading], tokens: int) -> str:
    """One line a contestant, beside the rewrite with the same attention dropout; then the waits for data."""
    lines = [f"{'':<85}{'tokens/s':>12}{'x rewrite':>11}   slowest … fastest"]
    theirs = (row for row in rows if row.name.startswith(f"{NAME}, 32-true") and row.seconds)
    bases = {row.attention_dropout: rates(tokens, row.seconds)[0] for row in theirs}
    for row in rows:
        if row.failed:
            lines.append(f"{row.name:<85}   {row.failed}")
            continue
        per_s, spread = rates(tokens, row.seconds)
        base = bases.get(row.attention_dropout)
        times = f"{per_s / base:.1f}" if base else "-"
        lines.append(f"{row.name:<85}{per_s:>12,.0f}{times:>11}   {spread}")
    for each in loading:
        share = f"{100 * each.idle_share:.2f} % of the step waits for data"
        lines.append(f"{each.workers} loader processes: {share} ({median(each.waited) * 1000:.2f} ms a batch)")
    return "\n".join(lines)


def check(config: BenchTrainingConfig) -> None:
    """Raises ConfigError for unknown precisions, and if there is nothing to measure."""
    for name in ("precisions", "positions", "attention_dropouts"):
        if not getattr(config, name):
            raise ConfigError(name, got=[], allowed="at least one")
    for precision in config.precisions:
        if precision not in PRECISIONS:
            raise ConfigError("precisions", got=config.precisions, allowed=f"some of {', '.join(PRECISIONS)}")
    if min(config.workers, default=0) < 0:
        raise ConfigError("workers", got=config.workers, allowed="0 or more each")
    for position, p in product(config.positions, config.attention_dropouts):
        heads, impl = config.n_heads, config.impl
        # refuses before the first step what TransformerConfig refuses
        TransformerConfig(1, config.d_model, n_heads=heads, attention=impl, position=position, attention_dropout=p)


def bench_training(config: BenchTrainingConfig) -> None:
    where = begin(config, ("n_layers", "d_ff", "length", "batch", "loader_steps", "warm_up", "repeats"))
    check(config)
    size = f"{config.n_layers} layers, width {config.d_model}, {config.n_heads} heads, feed-forward {config.d_ff}"
    print(f"{where}\n{size}; batch {config.batch} of {config.length} tokens")
    rows, fastest = measure(config)
    loading = [load(config, fastest, workers) for workers in config.workers]
    print(report(rows, loading, config.batch * config.length))
    if config.out:
        facts = {"where": where, "config": asdict(config), "rows": [row._asdict() for row in rows]}
        write_json(Path(config.out), facts | {"loading": [each._asdict() for each in loading]})


COMMAND = Command("bench_training", bench_training, BenchTrainingConfig)
