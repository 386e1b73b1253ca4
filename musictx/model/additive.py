"""Additive attention of a recurrent net over its own past states (Bahdanau et al. 2015, section 3.1).

The tanh stands between query and key, so that no matrix product makes all scores: each pair costs a vector of A
numbers. Blocks of queries are recomputed in the backward pass; memory grows as T, beyond that as block · window · A.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

BLOCK = 32


class Past:
    """A ring of the last `window` keys and states, `rows` (B, window, A + C); `alive` (B, window): may be seen."""

    def __init__(self, rows: Tensor, alive: Tensor, end: int = 0) -> None:
        self.rows, self.alive, self.end = rows, alive, end  # end: the slot of the next token, and of the oldest

    @classmethod
    def empty(cls, batch: int, window: int, width: int, like: Tensor) -> Past:
        return cls(like.new_zeros(batch, window, width), like.new_zeros(batch, window, dtype=torch.bool))

    def then(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Past and new rows (B, T, A + C) but the last, which no query sees -> (B, window + T - 1, ·), alive."""
        t = rows.shape[1]
        if t == 1:  # a single query asks for no order: spare it the copies
            return self.rows, self.alive
        old, alive = self.ordered()
        return torch.cat([old, rows[:, :-1].to(old.dtype)], 1), torch.cat([alive, alive.new_ones(len(rows), t - 1)], 1)

    def append(self, rows: Tensor) -> None:
        """New rows (B, T, A + C) in place of the oldest."""
        t, window = rows.shape[1], self.rows.shape[1]
        slots = torch.arange(self.end + max(t - window, 0), self.end + t, device=rows.device) % window
        rows = rows[:, -window:].to(self.rows.dtype)
        if torch.is_grad_enabled():  # the backward pass may still want the old ones
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


class AdditiveAttention(nn.Module):
    """States h (B, T, C) -> tanh of a mixture of each h_t and what it found in h_{t-window} … h_{t-1}, (B, T, C).

    score(t, s) = v · tanh(W h_t + U h_s); the first state of all finds zeros. The mixture is that of Luong et al.
    2015, equation 5.
    """

    def __init__(self, d_model: int, d_attention: int, window: int) -> None:
        super().__init__()
        self.sizes, self.window = [d_attention, d_model], window
        self.query = nn.Linear(d_model, d_attention, bias=False)
        self.key = nn.Linear(d_model, d_attention, bias=False)
        self.score = nn.Linear(d_attention, 1, bias=False)
        self.join = nn.Linear(2 * d_model, d_model)

    def forward(self, h: Tensor, past: Past | None = None, last: bool = False) -> Tensor:
        """h (B, T, C), stored into `past` -> (B, T, C), or (B, 1, C) of the `last` alone."""
        rows = torch.cat([self.key(h), h], -1)  # (B, T, A + C)
        if past is None:
            seen, alive = rows[:, :-1], torch.ones(len(h), h.shape[1] - 1, dtype=torch.bool, device=h.device)
        else:
            seen, alive = past.then(rows)
        h = h[:, -1:] if last else h
        found = self.find(self.query(h), seen, alive)  # (B, T, C)
        if past is not None:
            past.append(rows)
        return torch.tanh(self.join(torch.cat([found.to(h.dtype), h], -1)))

    def find(self, q: Tensor, seen: Tensor, alive: Tensor) -> Tensor:
        """Queries (B, T, A), the last of which stands behind all of `seen` (B, S, A + C) -> contexts (B, T, C)."""
        t, before = q.shape[1], seen.shape[1] - q.shape[1] + 1  # keys before the first query
        out = []
        for start in range(0, t, BLOCK):
            end = min(start + BLOCK, t)
            at = torch.arange(before + start, before + end, device=q.device)[:, None]  # (R, 1)
            keys = slice(max(before + start - self.window, 0), before + end - 1)
            place = torch.arange(keys.start, keys.stop, device=q.device)  # (K,)
            mask = (place < at) & (place >= at - self.window) & alive[:, None, keys]  # (B, R, K)
            block = q[:, start:end], seen[:, keys], mask
            if torch.is_grad_enabled():
                out.append(checkpoint(self._block, *block, use_reentrant=False, preserve_rng_state=False))
            else:
                out.append(self._block(*block))
        return torch.cat(out, 1)

    def _block(self, q: Tensor, seen: Tensor, mask: Tensor) -> Tensor:
        k, h = torch.split(seen, self.sizes, -1)  # (B, K, A), (B, K, C)
        logits = self.score((q[:, :, None] + k[:, None]).tanh_())[..., 0]  # (B, R, K)
        # finite, and zero afterwards: a query that may see nothing finds nothing instead of NaN
        weights = logits.masked_fill(~mask, torch.finfo(logits.dtype).min).softmax(-1).masked_fill(~mask, 0.0)
        found: Tensor = weights.to(h.dtype) @ h  # (B, R, C)
        return found
