"""The encoder-decoder Transformer (Vaswani et al. 2017, section 3).

Each layer of the decoder attends to the source by musical time, from a source token to the token to predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.cache import Cache, KVCache, indices
from musictx.model.position import FORMS
from musictx.model.settings import EncoderDecoderSettings
from musictx.model.transformer import Block, TransformerConfig, initialise


@dataclass(frozen=True)
class EncoderDecoderConfig(EncoderDecoderSettings, TransformerConfig):
    """The model to train: an encoder-decoder Transformer, for objective=voices.

    Raises ConfigError for impossible sizes.
    """


def padding(source: Tensor, pad: int) -> Tensor:
    """(B, S) True where a source (B, S) or (B, S, voices) is PAD, except at its first place: a softmax over nothing is
    NaN. A source of PAD only is a hidden one."""
    masked = (source == pad).view(*source.shape[:2], -1).all(2)
    masked[:, 0] = False
    return masked


class Source(NamedTuple):
    """The encoded source: keys `k` (layers, B, H, S, Dk), values `v` (layers, B, H, S, D), times `at` (B or 1, S)
    float64, and `masked` (B, S)."""

    k: Tensor
    v: Tensor
    at: Tensor
    masked: Tensor

    def take(self, rows: Tensor) -> Source:
        at = self.at if len(self.at) == 1 else self.at[rows]
        return Source(self.k[:, rows], self.v[:, rows], at, self.masked[rows])


class SourceState(NamedTuple):
    """The source, and a cache of the target so far."""

    source: Source
    past: KVCache

    @property
    def length(self) -> int:
        return self.past.length

    def take(self, rows: Tensor) -> SourceState:
        return SourceState(self.source.take(rows), self.past.take(rows))

    def move(self, rows: Tensor) -> None:
        self.past.move(rows)


class EncoderBlock(Block):
    """A block in which a token sees all others of its row."""

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.attend = FORMS[config.position].both_ways(config)

    def forward(
        self, x: Tensor, first_v: Tensor | None, at: Tensor, cache: Cache | None = None, masked: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """As in `Block`, without tokens at `masked` (B, S)."""
        q, k, v = self.heads(x, first_v)
        if self.config.value_residual and first_v is None:
            first_v = v.contiguous()
        phase = self.attend.phase(at, k.dtype)
        index = indices(0, x.shape[1], x.device)  # (1, S)
        distance = (index.mT - index).long()  # (S, S)
        k = self.attend.keys(k, phase)
        output = self.attend.attend_to(q, k, v, phase, distance, self.attention_dropout, masked)
        return self.feed(self.add(x, output)), first_v


class CrossAttention(nn.Module):
    """Attention of target tokens to the source. Tables count steps of the grid."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        c = config.d_model
        self.config, self.n_heads = config, config.n_heads
        self.norm = nn.LayerNorm(c)
        self.query, self.keys_values, self.project = nn.Linear(c, c), nn.Linear(c, 2 * c), nn.Linear(c, c)
        self.attend = FORMS[config.position].both_ways(config)
        self.dropout = nn.Dropout(config.dropout)

    def keys(self, source: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, H, S, Dk) and values (B, H, S, D) of the encoder's output (B, S, C) at times `at` (B or 1, S)."""
        k, v = self.keys_values(source).view(*source.shape[:2], 2, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        return self.attend.keys(k, self.attend.phase(at, k.dtype)), v

    def queries(self, x: Tensor) -> Tensor:
        q: Tensor = self.query(self.norm(x)).view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)
        return q

    def distance(self, at: Tensor, source_at: Tensor) -> Tensor:
        """Distances (B or 1, 1, T, S) from source times (B or 1, S) to target times (B or 1, T)."""
        return (at[:, None, :, None] - source_at[:, None, None]).long()

    def forward(self, x: Tensor, k: Tensor, v: Tensor, masked: Tensor, source_at: Tensor, at: Tensor) -> Tensor:
        """Adds attention's output to the stream (B, T, C) for times `at` (B or 1, T)."""
        q = self.queries(x)
        dropout = self.config.attention_dropout if self.training else 0.0
        phase, distance = self.attend.phase(at, q.dtype), self.distance(at, source_at)
        output = self.attend.attend_to(q, k, v, phase, distance, dropout, masked)
        joined: Tensor = self.dropout(self.project(output.transpose(1, 2).flatten(2)))
        return x + joined


class DecoderBlock(Block):
    """A causal block with cross-attention between self-attention and MLP."""

    def __init__(self, config: EncoderDecoderConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.cross = CrossAttention(config)

    def decode(
        self, x: Tensor, first_v: Tensor | None, own: Tensor, cache: Cache | None, source: Source, at: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """As `forward`, for times `at` (B or 1, T); `own` (1, T) counts the target's tokens."""
        output, first_v = self.look_back(x, first_v, own, cache)
        layer = source.k[self.layer], source.v[self.layer]
        x = self.cross(self.add(x, output), *layer, source.masked, source.at, at)
        return self.feed(x), first_v


class Side(nn.Module):
    """A stream's embedding of places, and its last norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.places = FORMS[config.position].embedding(config)
        self.beat = nn.Embedding(config.cycle, config.d_model) if config.cycle > 1 else None
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        """Adds places to the embeddings (B, T, C) of tokens at `index` (1, T)."""
        if self.beat is not None:
            x = x + self.beat(index.long() % self.beat.num_embeddings)
        return x if self.places is None else self.places(x, index)


class EncoderDecoder(nn.Module):
    """source (B, S · voices), ids (B, T) -> logits (B, T, V) of the target after each id. Obeys
    `musictx.model.protocol.SourceModel`. The ids begin with BOS, which takes no time, so id t is for the step
    t // target_group."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        config.check_cycle()
        self.config, self.cycle, self.reach = config, config.cycle, config.reach
        self.embed = nn.Embedding(config.vocab_size, config.d_model)  # of both streams, and the output head
        n, c = config.source_voices, config.d_model
        self.chord = nn.Linear(n * c, c) if n > 1 else nn.Identity()  # a sum would forget which voice has which note
        self.dropout = nn.Dropout(config.dropout)
        source_config, target_config = config.stream(config.source_group), config.stream(config.target_group)
        self.source, self.target = Side(source_config), Side(target_config)
        self.encoder = nn.ModuleList([EncoderBlock(source_config, layer) for layer in range(config.n_encoder_layers)])
        self.decoder = nn.ModuleList([DecoderBlock(target_config, layer) for layer in range(config.n_layers)])
        initialise(self, config)

    def forward(self, source: Tensor, ids: Tensor) -> Tensor:
        return self._run(ids, self.encode(source), None)

    def encode(self, source: Tensor) -> Source:
        """The encoded source (B, S · voices), PAD where a row has ended."""
        chords = source.view(len(source), -1, self.config.source_voices)  # (B, S, voices)
        self.config.check_reach(chords.shape[1])
        index = indices(0, chords.shape[1], source.device)  # (1, S)
        at = index // self.config.source_group
        masked = padding(chords, self.config.pad)
        embedding = self.chord(self.embed(chords).flatten(2))  # (B, S, C)
        x, first_v = self.dropout(self.source(embedding, index)), None
        for block in self.encoder:
            x, first_v = block(x, first_v, index, None, masked)
        x = self.source.norm(x)
        keys, values = zip(*(block.cross.keys(x, at) for block in self._decoder), strict=True)
        return Source(torch.stack(keys), torch.stack(values), at, masked)

    @property
    def _decoder(self) -> Sequence[DecoderBlock]:
        return list(self.decoder)  # type: ignore[arg-type]

    def init_state(self, source: Tensor, max_T: int) -> SourceState:
        c = self.config
        widths = self._decoder[0].attend.key_width, c.d_model // c.n_heads
        like = self.embed.weight.detach()
        past = KVCache.empty(c.n_layers, len(source), c.n_heads, max_T, widths, like, rolling=False)
        return SourceState(self.encode(source), past)

    def prefill(self, ids: Tensor, state: SourceState) -> Tensor:
        return self._run(ids, state.source, state.past)[:, -1]

    def step(self, ids: Tensor, state: SourceState) -> Tensor:
        return self.prefill(ids[:, None], state)

    def _run(self, ids: Tensor, source: Source, cache: KVCache | None) -> Tensor:
        t = ids.shape[1]
        self.config.check_reach(t if cache is None else cache.length + t)
        index = indices(0, t, ids.device) if cache is None else cache.begin(t)  # (1, T)
        at = index // self.config.target_group
        x, first_v = self.dropout(self.target(self.embed(ids), index)), None
        for block in self._decoder:
            x, first_v = block.decode(x, first_v, index, cache, source, at)
        if cache is not None:
            cache.advance(t, at[:, -1:].expand_as(cache.clock))
            x = x[:, -1:]
        return F.linear(self.target.norm(x), self.embed.weight)  # (B, T, V)
