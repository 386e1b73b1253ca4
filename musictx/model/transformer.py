"""Decoder-only Transformer, pre-norm, whose only sense of position is relative attention."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.attention import check_impl, relative_attention
from musictx.model.cache import KVCache


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a Transformer. Raises ConfigError for sizes that cannot be."""

    vocab_size: int
    d_model: int = 256
    n_layers: int = 4
    n_heads: int = 4
    d_ff: int = 1024
    dropout: float = 0.1
    max_distance: int = 512  # tokens farther apart share the last row of the relative table
    attention: str = "skew"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_distance"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name}={getattr(self, name)}: give 1 or more")
        if self.d_model % self.n_heads:
            raise ConfigError(
                f"model.d_model={self.d_model} cannot be shared by model.n_heads={self.n_heads}: "
                "give a multiple of the number of heads"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout={self.dropout}: give a share from 0 up to below 1")
        check_impl(self.attention)


class Block(nn.Module):
    """Attention, then a two-layer MLP, each on the normed stream and added to it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        c, h = config.d_model, config.n_heads
        self.config = config
        self.norm_1, self.norm_2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.project = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, config.d_ff), nn.Linear(config.d_ff, c)
        self.rel = nn.Parameter(torch.empty(h, config.max_distance, c // h))  # (H, M, D)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, layer: int, cache: KVCache | None) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, t, 3, self.config.n_heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(layer, k, v)
        dropout_p = self.config.dropout if self.training else 0.0
        # parameters stay float32 under autocast; the kernels want one dtype
        y = relative_attention(q, k, v, self.rel.to(q.dtype), self.config.attention, dropout_p)  # (B, H, T, D)
        x = x + self.dropout(self.project(y.transpose(1, 2).reshape(b, t, c)))
        mixed: Tensor = self.dropout(self.down(F.gelu(self.up(self.norm_2(x)))))
        return x + mixed


class Transformer(nn.Module):
    """ids (B, T) -> logits (B, T, V). Obeys `musictx.model.protocol.LanguageModel`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model)  # also the output head
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model)
        self._init()

    def _init(self) -> None:
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                # the residual stream sums 2·layers projections: keep its variance at that of one (GPT-2)
                into_stream = name.endswith(("project.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * self.config.n_layers) if into_stream else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids: Tensor) -> Tensor:
        return self._run(ids, None)

    def init_state(self, batch: int, max_T: int) -> KVCache:
        """An empty cache for `max_T` tokens in all."""
        c = self.config
        weight = self.embed.weight
        return KVCache.empty(c.n_layers, batch, c.n_heads, max_T, c.d_model // c.n_heads, weight.detach())

    def prefill(self, ids: Tensor, state: KVCache) -> Tensor:
        """ids (B, T) into the cache -> logits (B, V) after the last."""
        return self._run(ids, state)[:, -1]

    def step(self, ids: Tensor, state: KVCache) -> Tensor:
        """One token a row, ids (B,) -> logits (B, V)."""
        return self._run(ids[:, None], state)[:, -1]

    def _run(self, ids: Tensor, cache: KVCache | None) -> Tensor:
        x = self.dropout(self.embed(ids))  # (B, T, C)
        for layer, block in enumerate(self.blocks):
            x = block(x, layer, cache)
        if cache is not None:
            cache.length += ids.shape[1]
            x = x[:, -1:]  # only the last position is asked for: spare the head the others
        return F.linear(self.norm(x), self.embed.weight)  # (B, T, V)
