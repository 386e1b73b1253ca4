"""The recurrent encoder-decoder with additive attention (Bahdanau et al. 2015): the Transformer's baseline.

The encoder reads both ways. The decoder's lowest layer queries the source, and the layers above get what it found
(Wu et al. 2016, section 3): so a whole target is read layer by layer, not token by token. With `fixed_context` the
decoder hears one vector in each step instead (Cho et al. 2014, section 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from musictx.errors import ConfigError
from musictx.model.cells import run_cells
from musictx.model.encoder_decoder import padding
from musictx.model.recurrent import BLOCK, AdditiveAttention
from musictx.model.sizes import check_numbers, one_of
from musictx.setting import setting

CELLS: dict[str, type[Any]] = {"gru": nn.GRU, "lstm": nn.LSTM}


@dataclass(frozen=True)
class RecurrentEncoderDecoderConfig:
    """The model to train: a recurrent encoder-decoder, for objective=conditional.

    Raises ConfigError for impossible sizes.
    """

    vocab_size: int
    d_model: int = setting(256, "width")
    n_layers: int = setting(2, "layers of the decoder, 2 or more: the lowest queries the source")
    n_encoder_layers: int = setting(1, "layers of the encoder, which reads in both directions")
    cell: str = setting("gru", "gru or lstm")
    d_attention: int = setting(64, "width of the attention over the source, where there is one")
    fixed_context: bool = setting(False, "one vector for the whole source, its last states, in place of attention")
    dropout: float = setting(0.1, "share dropped in training")
    pad: int = -1  # the id that fills sources up; -1: none

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.n_layers < 2:
            why = "one layer queries the source, the next uses it"
            raise ConfigError("n_layers", got=self.n_layers, why=why, allowed="2 or more")
        if self.d_model % 2:
            why = "each half reads in one direction"
            raise ConfigError("d_model", got=self.d_model, why=why, allowed="an even number")
        one_of("cell", self.cell, CELLS)
        if self.fixed_context and self.d_attention != type(self).d_attention:
            why, hint = "fixed_context=true has no attention", "leave it out"
            raise ConfigError("d_attention", got=self.d_attention, why=why, hint=hint)


class SourceAttention(AdditiveAttention):
    """States s (B, T, C) -> tanh of a mixture of each s_t and what it found in all of a source, (B, T, C).

    score(t, j) = v · tanh(W s_t + U h_j) (Bahdanau et al. 2015, section 3.1).
    """

    def attend(self, s: Tensor, rows: Tensor, masked: Tensor) -> Tensor:
        """States (B, T, C) -> (B, T, C), without the source's `masked` (B, S). Memory grows as block · S · A."""
        seen = ~masked[:, None]  # (B, 1, S)
        blocks = self.query(s).split(BLOCK, 1)
        found = torch.cat([self.look(q, rows, seen.expand(-1, q.shape[1], -1)) for q in blocks], 1)
        return torch.tanh(self.join(torch.cat([found.to(s.dtype), s], -1)))


class FixedContext(nn.Module):
    """As `SourceAttention`, of a single row (B, 1, C), which each state is mixed with."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.join = nn.Linear(2 * d_model, d_model)

    def rows(self, h: Tensor) -> Tensor:
        return h

    def attend(self, s: Tensor, rows: Tensor, masked: Tensor) -> Tensor:
        return torch.tanh(self.join(torch.cat([rows.expand_as(s), s], -1)))


class HeardState:
    """The state of a decoder: `rows` (B, S, A + C) of the source, or (B, 1, C), with `masked` (B, S). Also the hidden
    states of its lowest layer and of those above, (h,) or (h, c), each (layers, B, C)."""

    def __init__(self, rows: Tensor, masked: Tensor, asking: tuple[Tensor, ...], hearing: tuple[Tensor, ...]) -> None:
        self.rows, self.masked, self.asking, self.hearing, self.length = rows, masked, asking, hearing, 0


class RecurrentEncoderDecoder(nn.Module):
    """source (B, S), ids (B, T) -> logits (B, T, V), as `EncoderDecoder`."""

    cycle = 1

    def __init__(self, config: RecurrentEncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        c, cell = config.d_model, CELLS[config.cell]
        self.embed = nn.Embedding(config.vocab_size, c)  # of both streams, and the output head
        self.dropout = nn.Dropout(config.dropout)
        between = [config.dropout if layers > 1 else 0.0 for layers in (config.n_encoder_layers, config.n_layers - 1)]
        both = {"batch_first": True, "dropout": between[0], "bidirectional": True}
        self.encoder = cell(c, c // 2, config.n_encoder_layers, **both)
        self.begin = nn.Linear(c, config.n_layers * c)  # the decoder's first states
        self.asks = cell(c, c, 1, batch_first=True)
        self.attention = FixedContext(c) if config.fixed_context else SourceAttention(c, config.d_attention, 1)
        self.hears = cell(c, c, config.n_layers - 1, batch_first=True, dropout=between[1])
        nn.init.normal_(self.embed.weight, std=0.2)  # as in `Recurrent`, for the same reason

    def forward(self, source: Tensor, ids: Tensor) -> Tensor:
        return self._run(ids, self.init_state(source, ids.shape[1]))

    def init_state(self, source: Tensor, max_T: int) -> HeardState:
        """A state for a source (B, S), which it reads. It never grows, whatever `max_T`."""
        masked = padding(source, self.config.pad)
        lengths = masked.shape[1] - masked.sum(1)
        packed = pack_padded_sequence(
            self.dropout(self.embed(source)), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.encoder(packed)
        h, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])  # (B, S, C)
        whole = (last if self.config.cell == "gru" else last[0])[-2:].transpose(0, 1).flatten(1)  # (B, C)
        first = torch.tanh(self.begin(whole)).view(len(source), self.config.n_layers, -1).transpose(0, 1).contiguous()
        parts = (first[:1], first[1:])  # (layers, B, C) each
        if self.config.fixed_context:
            h, masked = whole[:, None], masked[:, :1]
        asking, hearing = ((x, torch.zeros_like(x)) if self.config.cell == "lstm" else (x,) for x in parts)
        return HeardState(self.attention.rows(h), masked, asking, hearing)

    def prefill(self, ids: Tensor, state: HeardState) -> Tensor:
        """Reads ids (B, T) into the state -> logits (B, V) after the last."""
        return self._run(ids, state)[:, -1]

    def step(self, ids: Tensor, state: HeardState) -> Tensor:
        """One token a row, ids (B,) -> logits (B, V)."""
        return self.prefill(ids[:, None], state)

    def _run(self, ids: Tensor, state: HeardState) -> Tensor:
        x, state.asking = run_cells(self.asks, self.dropout(self.embed(ids)), state.asking)
        x = self.attention.attend(x, state.rows, state.masked)
        y, state.hearing = run_cells(self.hears, self.dropout(x), state.hearing)
        state.length += ids.shape[1]
        return F.linear(self.dropout(x + y), self.embed.weight)  # (B, T, V)
