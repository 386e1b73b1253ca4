"""Shared by the studies that compare kinds of model: each gets the same time, and its best rate between two that are
worse."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch

from musictx.errors import ConfigError
from musictx.files import replacing, write_json
from musictx.terminal import say
from musictx.training.optimizer import build_optimizer

T = TypeVar("T")


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
