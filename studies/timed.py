"""Shared by the studies that compare kinds of model: each gets the same CPU time, and its best rate between two that
are worse."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, TypeVar

import torch

from musictx.errors import ConfigError
from musictx.files import replacing, write_json
from musictx.terminal import say
from musictx.training.optimizer import build_optimizer

T = TypeVar("T")


REFERENCE_S = 0.011  # of `reference` on a core of an Intel Xeon (AVX-512, AMX) whose host is busy, as it mostly is
EVERY_S = 0.5  # CPU time from one to the next


def reference() -> float:
    """The CPU seconds of a fixed piece of work, of the kinds that trainings are made of."""
    rows, weights, heads = torch.full((256, 96), 0.1), torch.full((96, 96), 0.01), torch.full((64, 128, 128), 0.1)
    began = process_time()
    for _ in range(40):
        rows = torch.tanh(rows @ weights)
    torch.softmax(heads @ heads, -1)
    return process_time() - began


def shares(seconds: float) -> Iterator[float]:
    """How much of the CPU seconds is over, before each step. They are seconds of the core of `REFERENCE_S`. A CPU
    second does up to twice as much where the host rests, so a fixed piece of work is timed in between."""
    over, pace, since_s = 0.0, 1.0, EVERY_S
    recent: deque[float] = deque(maxlen=5)
    while over < seconds:
        if since_s >= EVERY_S:
            recent.append(reference())
            pace, since_s = REFERENCE_S / median(recent), 0.0
        began = process_time()
        yield over / seconds
        spent_s = process_time() - began
        over, since_s = over + spent_s * pace, since_s + spent_s


def learn(
    model: Any,
    loss: Callable[[], torch.Tensor],
    rate: float,
    shares: Iterator[float],
    decay: float = 0.0,
    optimizer: str = "muon",
) -> int:
    """Takes a step for each share and returns how many; `loss` has the mean loss of a step. The rate rises over a
    thirtieth of the time, and falls to zero over the second half."""
    optimizing = build_optimizer(model, optimizer, rate, decay)
    model.train()
    steps = 0
    for share in shares:
        for group in optimizing.param_groups:
            group["lr"] = rate * min(30 * share + 0.01, 2 * (1 - share), 1.0)
        optimizing.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizing.step()
        steps += 1
    model.eval()
    return steps


class Runs:
    """All runs so far, in one file: a run that is there is not made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if self.known:
            say(f"{path}: found {len(self.known)} runs, which are not made again")

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = json.loads(json.dumps(make()))
            write_json(self.path, self.known)
        return self.known[key]


def bracketed(rates: tuple[float, ...], cost: Callable[[float], float]) -> float:
    """The rate of the lowest cost. Where that is the lowest or highest rate so far, half or twice the rate is tried
    too. This ends when both neighbours of the best are no better."""
    tried = {rate: cost(rate) for rate in rates}
    while True:
        best = min(tried, key=lambda rate: tried[rate])
        if best not in (min(tried), max(tried)):
            return best
        further = best / 2 if best == min(tried) else best * 2
        tried[further] = cost(further)


def within_positions(ask: Callable[[], T]) -> T | None:
    """What a model answers; None where it has too few positions."""
    try:
        return ask()
    except ConfigError as error:
        if error.field != "max_positions":
            raise
        return None


def write_rows(path: Path, rows: dict[str, Any]) -> None:
    """JSON with a line for each row."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    with replacing(path) as partial:
        partial.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
