"""Trainings that compare kinds of model: each gets the same CPU time, and its best rate between two that are worse."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch

from musictx.files import write_json
from musictx.training.optimizer import build_optimizer


def shares(seconds: float, device: str = "cpu") -> Iterator[float]:
    """How much of the time is over, before each step: CPU seconds of this process, or seconds of a GPU."""
    clock = process_time if device == "cpu" else perf_counter
    began = clock()
    while (share := (clock() - began) / seconds) < 1:
        yield share


def learn(
    model: Any, loss: Callable[[int], torch.Tensor], rate: float, shares: Iterator[float], decay: float = 0.0
) -> int:
    """Takes a step for each share and returns how many; `loss` has the mean loss of step n. Muon; the rate rises over a
    thirtieth of the time, and falls to zero over the second half."""
    optimizer = build_optimizer(model, "muon", rate, decay)
    model.train()
    steps = 0
    for share in shares:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(30 * share + 0.01, 2 * (1 - share), 1.0)
        optimizer.zero_grad()
        loss(steps).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    model.eval()
    return steps


class Runs:
    """All runs so far, in one file: a run that is there is not made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def get(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.known:
            self.known[key] = json.loads(json.dumps(make()))
            write_json(self.path, self.known)
        found: dict[str, Any] = self.known[key]
        return found


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
