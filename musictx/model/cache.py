"""Keys and values of past tokens, in memory that is allocated once.

A model uses a cache between `begin` and `advance`. `masked` (B, S) is True where a row has no key (None: nowhere).
`age` (S,) is the tokens from each key to the one query (None: keys are in order). `keyboard` (B, 2, 128) is the state
of the piano keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def indices(start: int, t: int, device: torch.device) -> Tensor:
    """(1, t) float64: the indices of tokens from `start` on."""
    return torch.arange(start, start + t, dtype=torch.float64, device=device)[None]


class KVCache:
    """Keys (layers, B, H, room, Dk) and values (…, D) of the last of `length` tokens; `clock` (B, 1) is their musical
    time.

    With a `window` the cache rolls: a token sees the last `window` tokens, itself included. All rows end at the same
    slot, so distances are the same in all; `behind` (B, 1) is how many tokens fewer than `length` each has after
    `join`.
    """

    def __init__(
        self,
        k: Tensor,
        v: Tensor,
        clock: Tensor,
        window: int | None = None,
        length: int = 0,
        end: int = 0,
        behind: Tensor | None = None,
    ) -> None:
        self.k, self.v, self.clock, self.window = k, v, clock, window
        self.length, self.end = length, end  # tokens seen; where the next one is stored
        self.behind = behind  # None: all rows have seen equally many tokens
        self.most_behind = int(behind.max()) if behind is not None else 0
        self.masked: Tensor | None = None
        self.age = None
        self.keyboard: Tensor | None = None
        self.recent: dict[int, Tensor] = {}  # of each layer with a convolution

    @classmethod
    def empty(
        cls, n_layers: int, batch: int, n_heads: int, max_T: int, widths: tuple[int, int], like: Tensor, rolling: bool
    ) -> KVCache:
        """Room for `max_T` tokens; a rolling cache takes twice as much and rarely moves its content."""
        shape = (n_layers, batch, n_heads, max_T * (1 + rolling))
        k, v = (like.new_empty((*shape, width)) for width in widths)  # the system gives memory on the first write
        return cls(k, v, like.new_zeros((batch, 1)).double(), max_T if rolling else None)

    def begin(self, t: int) -> Tensor:
        """Makes room for `t` tokens; returns their positions (B or 1, t) float64. Raises ValueError without room."""
        room = self.k.shape[3]
        if self.window is not None:
            if t > self.window:
                raise ValueError(f"{t} tokens at once do not fit a window of {self.window}: give them in parts")
            if self.end + t > room:
                n_kept = self.window - 1
                for x in (self.k, self.v):
                    x[:, :, :, :n_kept] = x[:, :, :, self.end - n_kept : self.end].clone()
                self.end = n_kept
        elif self.end + t > room:
            raise ValueError(f"{self.end + t} tokens do not fit a cache of {room}: raise max_T in init_state")
        self.masked = self._masked(t)
        index = indices(self.length, t, self.k.device)
        return index if self.behind is None else index - self.behind

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores k, v (B, H, T, D) of a layer; returns views of the visible ones."""
        end = self.end + k.shape[2]
        self.k[layer, :, :, self.end : end] = k
        self.v[layer, :, :, self.end : end] = v
        slots = slice(self._first(end), end)
        return self.k[layer, :, :, slots], self.v[layer, :, :, slots]

    def _first(self, end: int) -> int:
        """The first slot that the token before slot `end` sees."""
        return max(end - self.window, 0) if self.window is not None else 0

    def before(self, layer: int, x: Tensor, n: int) -> Tensor:
        """Stores a convolution's input x (B, t, C); returns the n before it, (B, n, C)."""
        if layer not in self.recent:
            self.recent[layer] = x.new_zeros(len(x), n, x.shape[2])
        before = self.recent[layer]
        self.recent[layer] = torch.cat([before, x], 1)[:, -n:]
        return before

    def _masked(self, t: int) -> Tensor | None:
        """(B, S) True at slots without a token of that row, after `t` more tokens; None without such slots."""
        end = self.end + t
        first = self._first(end)
        begin = self.end - self.length  # the slot of the first token ever seen, long overwritten in an old cache
        if self.behind is None or begin + self.most_behind <= first:
            return None
        return torch.arange(first, end, device=self.k.device) < begin + self.behind

    def advance(self, t: int, clock: Tensor) -> None:
        """Counts `t` stored tokens, and sets the clock (B, 1)."""
        self.length, self.end, self.clock = self.length + t, self.end + t, clock

    def take(self, rows: Tensor) -> KVCache:
        behind = self.behind[rows] if self.behind is not None else None
        k, v = (x.new_empty((x.shape[0], len(rows), *x.shape[2:])) for x in (self.k, self.v))
        for new, old in ((k, self.k), (v, self.v)):
            new[:, :, :, : self.end] = old[:, rows, :, : self.end]
        new_cache = KVCache(k, v, self.clock, self.window, self.length, self.end, behind)
        new_cache._copy_rest([self], rows)
        return new_cache

    def move(self, rows: Tensor) -> None:
        """In place, layer by layer, so it takes little memory."""
        to = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
        for x in (*self.k, *self.v):  # (B, H, room, ·)
            x[to, :, : self.end] = x[rows[to], :, : self.end]
        self.behind = None if self.behind is None else self.behind[rows]
        self._copy_rest([self], rows)

    def _copy_rest(self, caches: Sequence[KVCache], rows: Tensor | slice = slice(None)) -> None:
        """Copies all but keys and values from these caches."""
        self.clock = torch.cat([c.clock for c in caches])[rows]
        keyboards = [c.keyboard for c in caches if c.keyboard is not None]
        self.keyboard = torch.cat(keyboards)[rows] if keyboards else None
        self.recent = {layer: torch.cat([c.recent[layer] for c in caches])[rows] for layer in caches[0].recent}

    @classmethod
    def join(cls, caches: Sequence[KVCache]) -> KVCache:
        length, end = max(c.length for c in caches), max(c.end for c in caches)
        rows = sum(c.k.shape[1] for c in caches)
        like = caches[0]
        k, v = (x.new_empty((x.shape[0], rows, *x.shape[2:])) for x in (like.k, like.v))
        row, behind = 0, []
        for c in caches:
            n = c.k.shape[1]
            for new, old in ((k, c.k), (v, c.v)):
                new[:, row : row + n, :, : end - c.end] = 0  # masked, but a NaN there would spread
                new[:, row : row + n, :, end - c.end : end] = old[:, :, :, : c.end]
            own = c.behind if c.behind is not None else c.clock.new_zeros(n, 1).long()
            behind.append(own + length - c.length)
            row += n
        later = torch.cat(behind)  # (B, 1)
        joined = cls(k, v, like.clock, like.window, length, end, later if later.any() else None)
        joined._copy_rest(caches)
        return joined


class Ring:
    """The last keys (layers, B, H, room, Dk) and values (…, D), token i at slot i % room; `age` gives their order.

    All that changes in a step is on the device, at fixed addresses, so a step can be a CUDA graph. StaticSteps counts
    `length`.
    """

    def __init__(self, like: KVCache) -> None:
        layers, b, h, n, _ = like.k.shape
        self.room = like.window or n
        self.k, self.v = (x.new_empty(layers, b, h, self.room, x.shape[4]) for x in (like.k, like.v))
        device = like.k.device
        self.slots = torch.arange(self.room, device=device)
        self.at = torch.empty(1, dtype=torch.long, device=device)  # the index of the next token
        self.behind = torch.empty(b, 1, dtype=torch.long, device=device)
        self.clock = torch.empty(b, 1, dtype=torch.float64, device=device)
        self.slot = self.age = self.masked = self.slots  # of the current step: `begin` sets them
        self.length = 0
        self._keyboard = None if like.keyboard is None else like.keyboard.clone()
        self.recent = {layer: x.clone() for layer, x in like.recent.items()}

    @property
    def keyboard(self) -> Tensor | None:
        return self._keyboard

    @keyboard.setter
    def keyboard(self, state: Tensor | None) -> None:
        if self._keyboard is not None and state is not None:
            self._keyboard.copy_(state)  # its memory stays

    def fits(self, cache: KVCache) -> bool:
        layers, b, h, n, width = cache.k.shape
        return (self.k.shape, self.k.dtype) == ((layers, b, h, cache.window or n, width), cache.k.dtype)

    def fill(self, cache: KVCache) -> None:
        n_tokens = min(cache.end, self.room)
        slots = torch.arange(cache.length - n_tokens, cache.length, device=self.slots.device) % self.room
        for target, source in ((self.k, cache.k), (self.v, cache.v)):
            target.zero_()  # masked slots must be finite too
            target[:, :, :, slots] = source[:, :, :, cache.end - n_tokens : cache.end]
        self.at.fill_(cache.length)
        self.behind.copy_(cache.behind if cache.behind is not None else torch.zeros_like(self.behind))
        self.clock.copy_(cache.clock)
        self.keyboard = cache.keyboard
        self.keep(cache.recent)

    def keep(self, recent: dict[int, Tensor]) -> None:
        for layer, x in recent.items():
            self.recent[layer].copy_(x)  # its memory stays

    def move(self, rows: Tensor) -> None:
        for x in (self.k, self.v):
            x.copy_(x[:, rows])  # its memory stays, here and below
        for x in (self.behind, self.clock, *self.recent.values()):
            x.copy_(x[rows])
        self.keyboard = None if self.keyboard is None else self.keyboard[rows]

    def begin(self, t: int) -> Tensor:
        """Makes room for one token a row; returns its position, (B, 1)."""
        assert t == 1, "a ring takes steps of one token"
        self.slot = self.at % self.room  # (1,)
        self.age = (self.at - self.slots) % self.room  # (room,)
        self.masked = self.age > self.at - self.behind  # (B, room)
        return (self.at - self.behind).double()

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores k, v (B, H, 1, ·) of a layer; returns all its slots."""
        keys, values = self.k[layer], self.v[layer]
        keys.index_copy_(2, self.slot, k)
        values.index_copy_(2, self.slot, v)
        return keys, values

    def before(self, layer: int, x: Tensor, n: int) -> Tensor:
        """As in KVCache."""
        before = self.recent[layer].clone()
        self.recent[layer].copy_(torch.cat([before, x], 1)[:, 1:])
        return before

    def advance(self, t: int, clock: Tensor) -> None:
        """As in KVCache."""
        self.at += t
        self.clock.copy_(clock)


Cache = KVCache | Ring  # the past of a model and its blocks, used between `begin` and `advance`
