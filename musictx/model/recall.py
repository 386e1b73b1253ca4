"""Attention of recurrent cells over their past inputs: a state finds a like state and returns the input after it. So
copying needs one dot product and no second layer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Past:
    """A ring of the last `window` keys and inputs, `rows` (B, window, A + C); `alive` (B, window): visible."""

    def __init__(self, rows: Tensor, alive: Tensor, end: int = 0) -> None:
        self.rows, self.alive, self.end = rows, alive, end  # end: the slot of the next token, and of the oldest

    @classmethod
    def empty(cls, batch: int, window: int, width: int, like: Tensor) -> Past:
        return cls(like.new_zeros(batch, window, width), like.new_zeros(batch, window, dtype=torch.bool))

    def append(self, rows: Tensor) -> None:
        """New rows (B, T, A + C) in place of the oldest."""
        t, window = rows.shape[1], self.rows.shape[1]
        slots = torch.arange(self.end + max(t - window, 0), self.end + t, device=rows.device) % window
        rows = rows[:, -window:].to(self.rows.dtype)
        if torch.is_grad_enabled():  # the backward pass may still need the old ones
            self.rows = self.rows.index_copy(1, slots, rows)
        else:
            self.rows.index_copy_(1, slots, rows)
        self.alive = self.alive.index_fill(1, slots, True)
        self.end = (self.end + t) % window

    def take(self, rows: Tensor) -> Past:
        return Past(self.rows[rows], self.alive[rows], self.end)

    @classmethod
    def join(cls, pasts: Sequence[Past]) -> Past:
        rows, alive = zip(*(p.ordered() for p in pasts), strict=True)
        return cls(torch.cat(rows), torch.cat(alive))

    def ordered(self) -> tuple[Tensor, Tensor]:
        """Copies of both, the oldest first."""
        return self.rows.roll(-self.end, 1), self.alive.roll(-self.end, 1)


class Recall(nn.Module):
    """States h (B, T, C) and inputs x (B, T, C) -> W Σ_s p(t, s) x_s over the last `window` s up to t.

    p(t, s) = softmax_s(query(h_t) · key(h_{s-1}) / √A). Before the first input the state is zero.
    """

    def __init__(self, d_model: int, d_attention: int, window: int) -> None:
        super().__init__()
        self.sizes, self.window = [d_attention, d_model], window
        self.query = nn.Linear(d_model, d_attention, bias=False)
        self.key = nn.Linear(d_model, d_attention, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)

    def forward(self, h: Tensor, x: Tensor, before: Tensor, past: Past | None = None, last: bool = False) -> Tensor:
        """`before` (B, C) is the state before x; `past` gets keys and inputs -> (B, T, C), or (B, 1, C) of the `last`
        only."""
        rows = torch.cat([self.key(torch.cat([before[:, None].to(h.dtype), h[:, :-1]], 1)), x], -1)  # (B, T, A + C)
        h = h[:, -1:] if last else h
        if past is None:
            memory, alive = rows, None
        elif rows.shape[1] == 1:  # a single query needs no order: skip the copies
            past.append(rows)
            memory, alive = past.rows, past.alive
            return self.find(self.query(h), memory, alive[:, None, None])
        else:
            old, was = past.ordered()
            memory, alive = torch.cat([old, rows.to(old.dtype)], 1), torch.cat([was, was.new_ones(rows.shape[:2])], 1)
            past.append(rows)
        return self.find(self.query(h), memory, self.mask(h.shape[1], memory, alive))

    def mask(self, t: int, memory: Tensor, alive: Tensor | None) -> Tensor | None:
        """(B or 1, 1, T, S) True where the last `t` may look at `memory` (B, S, A + C); None: plain causal."""
        s = memory.shape[1]
        if alive is None and t == s <= self.window:
            return None
        place = torch.arange(s, device=memory.device)
        at = place[s - t :, None]
        mask = ((place <= at) & (place > at - self.window))[None, None]
        return mask if alive is None else mask & alive[:, None, None]

    def find(self, q: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Queries (B, T, A) into all of `memory` (B, S, A + C) -> (B, T, C)."""
        k, x = (each[:, None] for each in torch.split(memory, self.sizes, -1))  # (B, 1, S, A), (B, 1, S, C)
        q = q[:, None].to(memory.dtype)  # (B, 1, T, A)
        values: Tensor = self.value(F.scaled_dot_product_attention(q, k, x, mask, is_causal=mask is None)[:, 0])
        return values
