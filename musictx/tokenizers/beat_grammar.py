"""A grammar in which notes begin only at places of the beat."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from musictx.tokenizers.grammar import Grammar
from musictx.tokenizers.tokenizer import Tokenizer

Lines = NDArray[np.float64]
Steps = NDArray[np.int64]
F = TypeVar("F", bound=np.floating)
FAR = 2**40  # steps: after all music


class BeatGrammar:
    """A `Grammar` on top of another: waits end on a line or before the next, or are the longest."""

    def __init__(
        self,
        grammar: Grammar,
        tokenizer: Tokenizer,
        prompts: Sequence[NDArray[np.integer]],
        lines_s: Sequence[Lines | None],
    ) -> None:
        """`lines_s`: the places of each row in seconds; None: all times are free."""
        assert tokenizer.pace is not None  # its clock is in seconds
        self.grammar, step_s = grammar, float(tokenizer.pace[tokenizer.pace > 0].min())
        self.steps = steps = np.rint(np.maximum(tokenizer.pace, 0) / step_s).astype(np.int64)  # (V,)
        self.longest = int(steps.max())
        self.first = int(np.flatnonzero(steps)[0])  # the id of the shortest wait
        self.waits = slice(self.first, self.first + self.longest)  # ids
        self.ahead = np.arange(self.longest + 1)[None]  # (1, S + 1) steps from now
        assert (steps[self.waits] == self.ahead[0, 1:]).all()
        # notes may end before a line too: a model that could end them on lines alone would let them sound
        self.ends = tokenizer.vocab.mask("NOTE_OFF")[None]  # (1, V)
        # the lines of all rows are one sorted array, so that one search finds those of all
        self.begins = np.arange(len(prompts))[:, None] * 4 * FAR  # (B, 1) added to the steps of each row
        in_steps = [np.zeros(0) if lines is None else np.rint(lines / step_s) for lines in lines_s]
        rows = [np.concatenate([[-FAR], np.unique(row.astype(np.int64)), [FAR]]) for row in in_steps]
        self.lines = np.concatenate([row + begins for row, begins in zip(rows, self.begins, strict=True)])
        self.now = np.array([[int(steps[prompt].sum())] for prompt in prompts])  # (B, 1)
        self._look_ahead()

    def lines_around(self, step: Steps) -> tuple[Steps, Steps]:
        """(B, n) the last lines at or before steps (B, n), and the first at or after them."""
        at = np.searchsorted(self.lines, step + self.begins)
        following, last = self.lines[at] - self.begins, self.lines[at - 1] - self.begins
        return np.where(following == step, step, np.maximum(last, 0)), np.where(following == FAR, step, following)

    def _look_ahead(self) -> None:
        """Finds the legal waits, and which of them replaces each illegal one."""
        before, after = (line - self.now for line in self.lines_around(self.now + self.ahead))  # (B, S + 1) steps ahead
        self.line = after[:, 1:2]  # (B, 1) steps up to the next line
        is_short = self.ahead < self.line
        is_line = after == self.ahead
        self.on_line = is_line[:, :1]  # (B, 1)
        self.may_wait = (is_line | is_short)[:, 1:]  # (B, S)
        self.may_wait[:, -1] = True

        nearer = (self.ahead - before <= after - self.ahead) | (after > self.longest)
        target_step = np.where((before > 0) & nearer, before, after)
        targets = np.where(is_short | (target_step > self.longest), self.ahead, target_step)[:, 1:] - 1  # (B, S)
        self.targets = (targets + np.arange(len(targets))[:, None] * self.longest).ravel()

    def legal(self) -> NDArray[np.bool_]:
        inner_legal = self.grammar.legal()
        legal: NDArray[np.bool_] = inner_legal & (self.ends | self.on_line)
        np.logical_and(inner_legal[:, self.waits], self.may_wait, out=legal[:, self.waits])
        has_legal = legal.any(1)
        # time passes up to the next line
        if not has_legal.all():
            stuck_rows = np.flatnonzero(~has_legal)
            legal[stuck_rows, self.first - 1 + np.minimum(self.line[stuck_rows, 0], self.longest)] = True
        return legal

    def fold(self, logits: NDArray[F]) -> NDArray[F]:
        """Logits (B, V) with illegal waits' probability on the nearest wait to a line."""
        # otherwise music would be denser on a grid than the model wants it
        waits, result = logits[:, self.waits], logits.copy()  # (B, S), (B, V)
        top = waits.max(1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):  # a wait that gave all; logits that are not finite
            mass = np.bincount(self.targets, np.exp(waits - top).ravel(), self.targets.size).reshape(waits.shape)
            result[:, self.waits] = np.log(mass) + top
        return result

    def update(self, ids: NDArray[np.int64]) -> None:
        self.grammar.update(ids)
        steps = self.steps[ids]  # (B,)
        if steps.any():
            self.now = self.now + steps[:, None]
            self._look_ahead()

    def move(self, rows: NDArray[np.int64]) -> None:
        self.grammar.move(rows)
        self.now = self.now[rows]  # rows of one prompt have the same lines
        self._look_ahead()
