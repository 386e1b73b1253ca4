"""Keys and values of the tokens seen so far, in memory that is taken once."""

from __future__ import annotations

from torch import Tensor


class KVCache:
    """Keys (layers, B, H, room, Dk) and values (…, D) of the last tokens; `length` counts all tokens ever seen.

    With a `window` the cache rolls: a token sees at most the `window` last, itself among them, and memory and time a
    token stay the same for ever. `clock` (B, 1) is the musical time reached.
    """

    def __init__(
        self, k: Tensor, v: Tensor, clock: Tensor, window: int | None = None, length: int = 0, end: int = 0
    ) -> None:
        self.k, self.v, self.clock, self.window = k, v, clock, window
        self.length, self.end = length, end  # tokens seen; where the next one is stored

    @classmethod
    def empty(
        cls, n_layers: int, batch: int, n_heads: int, max_T: int, widths: tuple[int, int], like: Tensor, rolling: bool
    ) -> KVCache:
        """Room for `max_T` tokens; a rolling cache takes twice as much, so that it moves its content but rarely."""
        shape = (n_layers, batch, n_heads, max_T * (1 + rolling))
        k, v = (like.new_zeros((*shape, width)) for width in widths)
        return cls(k, v, like.new_zeros((batch, 1)).double(), max_T if rolling else None)

    def begin(self, t: int) -> None:
        """Makes room for `t` more tokens in every layer. Raises ValueError when there is none."""
        room = self.k.shape[3]
        if self.window is not None:
            if t > self.window:
                raise ValueError(f"{t} tokens at once do not fit a window of {self.window}: give them in parts")
            if self.end + t > room:
                kept = self.window - 1
                for x in (self.k, self.v):
                    x[:, :, :, :kept] = x[:, :, :, self.end - kept : self.end].clone()
                self.end = kept
        elif self.end + t > room:
            raise ValueError(f"{self.end + t} tokens do not fit a cache of {room}: raise max_T in init_state")

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores new k, v (B, H, T, D) of a layer; returns views of all that a query may see."""
        end = self.end + k.shape[2]
        self.k[layer, :, :, self.end : end] = k
        self.v[layer, :, :, self.end : end] = v
        first = max(end - self.window, 0) if self.window is not None else 0
        return self.k[layer, :, :, first:end], self.v[layer, :, :, first:end]

    def advance(self, t: int, clock: Tensor) -> None:
        """`t` tokens are in all layers."""
        self.length, self.end, self.clock = self.length + t, self.end + t, clock

    def repeat(self, n: int) -> KVCache:
        """The one row of this cache as n rows."""
        k, v = (x.repeat(1, n, 1, 1, 1) for x in (self.k, self.v))
        return KVCache(k, v, self.clock.repeat(n, 1), self.window, self.length, self.end)
