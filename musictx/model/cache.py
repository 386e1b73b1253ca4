"""Keys and values of the tokens seen so far, in memory that is taken once."""

from __future__ import annotations

from torch import Tensor


class KVCache:
    """Room for `max_T` tokens: k and v are (layers, B, H, max_T, D), the first `length` of them filled."""

    def __init__(self, k: Tensor, v: Tensor, length: int = 0) -> None:
        self.k, self.v, self.length = k, v, length

    @classmethod
    def empty(cls, n_layers: int, batch: int, n_heads: int, max_T: int, d_head: int, like: Tensor) -> KVCache:
        shape = (n_layers, batch, n_heads, max_T, d_head)
        return cls(like.new_zeros(shape), like.new_zeros(shape))

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores new k, v (B, H, T, D) of a layer behind the `length` old ones; returns views of all of them.

        `length` moves on once, after the last layer. Raises ValueError when the cache is full.
        """
        end = self.length + k.shape[2]
        if end > self.k.shape[3]:
            raise ValueError(f"{end} tokens do not fit a cache of {self.k.shape[3]}: raise max_T in init_state")
        self.k[layer, :, :, self.length : end] = k
        self.v[layer, :, :, self.length : end] = v
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]

    def repeat(self, n: int) -> KVCache:
        """The one row of this cache as n rows."""
        return KVCache(self.k.repeat(1, n, 1, 1, 1), self.v.repeat(1, n, 1, 1, 1), self.length)
