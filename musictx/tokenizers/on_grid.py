"""A grammar whose time passes from place to place of a beat: notes begin there alone."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.tokenizers.grammar import Grammar
from musictx.tokenizers.tokenizer import Tokenizer

Lines = NDArray[np.float64]
FAR = 2**62  # steps: after all music


class OnGrid:
    """Obeys `musictx.tokenizers.grammar.Grammar`, after another. Waits end on a line, or are the longest there is and
    go on, or stop before the next line, where notes may end. A model that could end notes on lines alone would let them
    sound, and strike others. Where the other grammar leaves nothing, time passes up to the next line."""

    def __init__(
        self,
        grammar: Grammar,
        tokenizer: Tokenizer,
        prompts: Sequence[NDArray[np.integer]],
        lines_s: Sequence[Lines | None],
        device: torch.device | str,
    ) -> None:
        """`lines_s` are the seconds of each row's places; after the last of them, and for None, all times are free."""
        assert tokenizer.pace is not None  # its clock is in seconds
        self.grammar, step_s = grammar, float(tokenizer.pace[tokenizer.pace > 0].min())
        steps = np.rint(np.maximum(tokenizer.pace, 0) / step_s).astype(np.int64)  # (V,)
        in_steps = [np.zeros(0) if lines is None else np.rint(lines / step_s) for lines in lines_s]
        found = [np.unique(row.astype(np.int64)) for row in in_steps]
        rows = [np.pad(row, (0, max(map(len, found)) + 1 - len(row)), constant_values=FAR) for row in found]
        self.lines = torch.from_numpy(np.stack(rows)).to(device)  # (B, K) steps, then FAR
        self.waits = torch.from_numpy(np.flatnonzero(steps)).to(device)  # (S,) ids, in order of time
        self.steps, self.longest = torch.from_numpy(steps)[None].to(device), int(steps.max())  # (1, V)
        self.ends = torch.from_numpy(tokenizer.vocab.mask("NOTE_OFF", "MELODY_OFF"))[None].to(device)  # (1, V)
        now = np.array([[int(steps[prompt].sum())] for prompt in prompts])
        self.now = torch.from_numpy(now).to(device)  # (B, 1)

    def line_after(self, step: Tensor) -> Tensor:
        """(B, n) the first line at or after steps (B, n); a step itself after the last one."""
        found = self.lines.gather(1, torch.searchsorted(self.lines, step))
        return torch.where(found == FAR, step, found)

    def line_before(self, step: Tensor) -> Tensor:
        """(B, n) the last line at or before steps (B, n); 0 before the first one."""
        at = torch.searchsorted(self.lines, step, right=True)
        return torch.where(at > 0, self.lines.gather(1, (at - 1).clamp(min=0)), 0)

    def legal(self) -> Tensor:
        then, line = self.now + self.steps, self.line_after(self.now + 1)  # (B, V), (B, 1)
        waits = self.steps > 0
        allowed = (self.line_after(then) == then) | ((self.steps == self.longest) & waits)
        allowed |= (waits & (then < line)) | self.ends
        legal = self.grammar.legal() & allowed
        stuck = ~legal.any(1, keepdim=True)
        return torch.where(stuck, self.steps == (line - self.now).clamp(max=self.longest), legal)

    def fold(self, logits: Tensor) -> Tensor:
        """Logits (B, V) where each wait that may not be has given its probability to the nearest that ends on a line.
        Else music would be denser on a grid than the model wants it."""
        waits = logits[:, self.waits]  # (B, S)
        then = self.now + self.steps[0, self.waits]
        before, after = self.line_before(then), self.line_after(then)
        nearer = (then - before <= after - then) | (after - self.now > self.longest)
        near = torch.where((before > self.now) & nearer, before, after)
        free = (then < self.line_after(self.now + 1)) | (near - self.now > self.longest)
        to = torch.where(free, then, near) - self.now - 1  # (B, S) the place of a wait: they last 1, 2, … steps
        top = waits.amax(1, keepdim=True)
        mass = torch.zeros_like(waits).scatter_add_(1, to, (waits - top).exp())
        return logits.index_copy(1, self.waits, mass.log() + top)

    def update(self, ids: Tensor) -> None:
        self.grammar.update(ids)
        self.now = self.now + self.steps[0].index_select(0, ids)[:, None]

    def move(self, rows: Tensor) -> None:
        self.grammar.move(rows)
        self.now, self.lines = self.now[rows], self.lines[rows]
