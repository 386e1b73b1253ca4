"""The seconds of a training step, measured once, so that trainings of equal time can share a machine with other work.

Beside other programs, or on a host whose other guests work, a CPU second does as little as half. So the quickest of
some steps of each kind counts, taken in turns: no kind has the quiet minutes alone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from musictx.files import write_json
from musictx.system import processor
from musictx.training.optimizer import build_optimizer

TURNS, STEPS = 10, 4
OPTIMIZERS = ("adamw", "muon")


class Costs:
    """Those of a file, which is made if it is not there; `gradients(model, length)` does a step without its optimizer's
    part, of pieces with so many ids."""

    def __init__(
        self,
        path: Path,
        kinds: Mapping[str, Callable[[], Any]],
        gradients: Callable[[Any, int], Any],
        lengths: Sequence[int],
    ) -> None:
        if not path.exists():
            write_json(path, {"processor": str(processor()), "seconds": measured(kinds, gradients, lengths)})
        self.of = json.loads(path.read_text(encoding="utf-8"))["seconds"]

    def step_s(self, kind: str, optimizer: str, length: int) -> float:
        known = {int(n): each for n, each in self.of[kind]["gradients"].items()}
        return float(np.interp(length, [*known], [*known.values()])) + float(self.of[kind][optimizer])


def measured(
    kinds: Mapping[str, Callable[[], Any]], gradients: Callable[[Any, int], Any], lengths: Sequence[int]
) -> dict[str, Any]:
    found: dict[str, Any] = {kind: {"gradients": {}} for kind in kinds}
    for _ in range(TURNS):
        for kind, build in kinds.items():
            model, mine = build(), found[kind]
            for n in lengths:
                quickest(mine["gradients"], n, partial(gradients, model, n))
            for optimizer in OPTIMIZERS:
                quickest(mine, optimizer, build_optimizer(model, optimizer, 1e-3, 0.0).step)
    return found


def quickest(of: dict[Any, float], key: object, work: Callable[[], Any]) -> None:
    for _ in range(STEPS):
        began = process_time()
        work()
        of[key] = min(of.get(key, np.inf), process_time() - began)
