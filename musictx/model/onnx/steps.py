"""Steps of a decoder in numpy, on ONNX Runtime, without PyTorch.

Rows after few prompts read each long prompt's cache where it lies, with one call each. Short prompts are copied for
their rows, which join those of the first long one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musictx.model.onnx.graph import Array
from musictx.model.onnx.rows import OnnxRows, State, concatenate, empty_state, sharer_state
from musictx.model.onnx.session import OnnxModel

BLOCK = 256  # tokens of a prompt that are read at once
SHORT = 64  # tokens of a prompt that each of its rows may have as its own: another call would cost more


class OnnxSteps:
    """Obeys `musictx.model.steps.Steps`."""

    def __init__(self, model: OnnxModel, rows: int = 1, window: int | None = None, source: State | None = None) -> None:
        """With a `window` a token sees so many, itself included, and memory stays constant. `source` has an encoder's
        outputs."""
        state = empty_state(model, rows) | (source or {})
        self.runs = [
            (np.arange(rows), OnnxRows(model, window, state, empty_state(model, 1), 0))
        ]  # which rows, and they

    @property
    def rows(self) -> int:
        return sum(len(at) for at, _ in self.runs)

    def prefill(self, ids: Array) -> Array:
        """Reads ids (B, T) in blocks. Raises ConfigError for more tokens than the model has positions."""
        (_, first), *_ = self.runs
        first.model.check_reach(max(int(run.state["length"].max()) for _, run in self.runs) + ids.shape[1])
        for start in range(0, ids.shape[1], BLOCK):
            block = ids[:, start : start + BLOCK]
            parts = [run.read(block[at]) for at, run in self.runs]
        logits: Array = np.concatenate(parts)[np.argsort(np.concatenate([at for at, _ in self.runs]))]
        return logits

    def step(self, ids: Array) -> Array:
        return self.prefill(ids[:, None])

    def move(self, rows: Array) -> None:
        for at, run in self.runs:
            run.move(np.argsort(at)[np.searchsorted(np.sort(at), rows[at])])

    def take(self, rows: Array) -> OnnxSteps:
        runs = []
        for at, run in self.runs:
            new, old = np.nonzero(rows[:, None] == at)
            order = np.argsort(old, kind="stable")  # rows that share a prompt come first
            if len(order):
                runs.append((new[order], run.take(old[order])))
        return _steps_of(runs)

    @staticmethod
    def join(parts: Sequence[OnnxSteps], of_row: Sequence[int]) -> OnnxSteps:
        """Row b goes on from parts[of_row[b]], each of one row and not joined itself; all of one model and window."""
        alone, of, runs = [part.runs[0][1] for part in parts], np.array(of_row), []
        assert not any(part.sharing for part in alone), "joined rows are not joined again"
        used = sorted(set(of_row))
        short = [i for i in used if alone[i].state["length"][0] <= SHORT]
        long: list[int | None] = [i for i in used if i not in short]
        for shared in long or [None]:
            among = short if shared is None else [shared, *short]
            at = np.concatenate([np.flatnonzero(of == i) for i in among])
            runs.append((at, _join_rows([alone[i] for i in of[at]], None if shared is None else alone[shared])))
            short = []  # they are read once
        return _steps_of(runs)


def _join_rows(rows: Sequence[OnnxRows], shared: OnnxRows | None) -> OnnxRows:
    """Rows that go on together after these; the first may share their cache."""
    states = [sharer_state(row.state) if row is shared else row.state for row in rows]
    model, window, sharing = rows[0].model, rows[0].window, sum(row is shared for row in rows)
    prompt = empty_state(model, 1) if shared is None else shared.state
    prompt = prompt | {"held": prompt["held"].copy()}  # so that nothing is seen of what the part may read later
    return OnnxRows(model, window, concatenate(states), prompt, sharing)


def _steps_of(runs: list[tuple[Array, OnnxRows]]) -> OnnxSteps:
    steps = OnnxSteps.__new__(OnnxSteps)
    steps.runs = runs
    return steps
