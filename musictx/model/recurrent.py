"""Recurrent baselines: stacked LSTM or tanh cells, with or without additive attention over their past states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.additive import AdditiveAttention, Past

CELLS = ("lstm", "rnn")


@dataclass(frozen=True)
class RecurrentConfig:
    """Sizes of a recurrent model. Raises ConfigError for sizes that cannot be."""

    vocab_size: int
    d_model: int = 512
    n_layers: int = 3
    cell: str = "lstm"
    additive: bool = False  # attention over the past states of the top layer
    d_attention: int = 128
    window: int = 512  # how many past states the attention sees
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_layers", "d_attention", "window"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name}={getattr(self, name)}: give 1 or more")
        if self.cell not in CELLS:
            raise ConfigError(f"model.cell={self.cell}: choose one of {', '.join(CELLS)}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout={self.dropout}: give a share from 0 up to below 1")


class RecurrentState:
    """What the cells carry, `hidden` (h,) or (h, c), each (layers, B, C); `length` counts all tokens ever seen."""

    def __init__(self, hidden: tuple[Tensor, ...], past: Past | None, length: int = 0) -> None:
        self.hidden, self.past, self.length = hidden, past, length

    def repeat(self, n: int) -> RecurrentState:
        """The one row of this state as n rows."""
        return self.take(torch.zeros(n, dtype=torch.long, device=self.hidden[0].device))

    def take(self, rows: Tensor) -> RecurrentState:
        """The rows (n,) of this batch, in that order, as a state of their own."""
        hidden = tuple(x.index_select(1, rows) for x in self.hidden)
        return RecurrentState(hidden, self.past and self.past.take(rows), self.length)

    @classmethod
    def join(cls, states: Sequence[RecurrentState]) -> RecurrentState:
        """States of one model as one batch; each row goes on as it would have alone."""
        hidden = tuple(torch.cat(parts, 1) for parts in zip(*(s.hidden for s in states), strict=True))
        pasts = [s.past for s in states if s.past is not None]
        return cls(hidden, Past.join(pasts) if pasts else None, max(s.length for s in states))

    def detach(self) -> RecurrentState:
        """Lets no gradient through to the tokens so far: the border of truncated back-propagation. Returns itself."""
        self.hidden = tuple(x.detach() for x in self.hidden)
        if self.past is not None:
            self.past.rows = self.past.rows.detach()
        return self

    def reset(self, rows: Tensor) -> RecurrentState:
        """Forgets all in the rows where `rows` (B,) bool: a new piece begins there. Returns itself."""
        self.hidden = tuple(x.masked_fill(rows[:, None], 0.0) for x in self.hidden)
        if self.past is not None:
            self.past.alive = self.past.alive & ~rows[:, None]
        return self


class Recurrent(nn.Module):
    """ids (B, T) -> logits (B, T, V). Obeys `musictx.model.protocol.LanguageModel`."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        c = config.d_model
        self.embed = nn.Embedding(config.vocab_size, c)  # also the output head (Press & Wolf 2017)
        self.dropout = nn.Dropout(config.dropout)  # never from step to step (Zaremba et al. 2014, section 3.1)
        between = config.dropout if config.n_layers > 1 else 0.0
        cell = nn.LSTM if config.cell == "lstm" else nn.RNN
        self.cells = cell(c, c, config.n_layers, batch_first=True, dropout=between)
        self.attention = AdditiveAttention(c, config.d_attention, config.window) if config.additive else None
        self._init()

    def _init(self) -> None:
        c = self.config.d_model
        # no norm stands between: at the 0.02 of the Transformer the cells hear next to nothing and learn late, at 1 the
        # head begins with wild guesses
        nn.init.normal_(self.embed.weight, std=0.2)
        for name, p in self.cells.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(p)
                if self.config.cell == "lstm" and name.startswith("bias_ih"):
                    # at 0 the gate would halve the memory, and its gradient, at each step (Jozefowicz et al. 2015)
                    nn.init.ones_(p.data[c : 2 * c])

    def forward(self, ids: Tensor) -> Tensor:
        return self._run(ids, None)

    @property
    def cycle(self) -> int:
        return 1

    @property
    def window(self) -> None:
        """Its memory has no end."""
        return None

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> RecurrentState:
        """A state that has seen nothing. It never grows, whatever `max_T`: it always rolls."""
        c, like = self.config, self.embed.weight.detach()
        hidden = tuple(like.new_zeros(c.n_layers, batch, c.d_model) for _ in range(2 if c.cell == "lstm" else 1))
        past = Past.empty(batch, c.window, c.d_attention + c.d_model, like) if c.additive else None
        return RecurrentState(hidden, past)

    def carry(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """ids (B, T) that go on from the state -> all logits (B, T, V)."""
        return self._run(ids, state)

    def prefill(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """ids (B, T) into the state -> logits (B, V) after the last."""
        return self._run(ids, state, last=True)[:, -1]

    def step(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """One token a row, ids (B,) -> logits (B, V)."""
        return self._run(ids[:, None], state)[:, -1]

    def _run(self, ids: Tensor, state: RecurrentState | None, last: bool = False) -> Tensor:
        x = self.dropout(self.embed(ids))  # (B, T, C)
        before = None if state is None else state.hidden if self.config.cell == "lstm" else state.hidden[0]
        h, after = self.cells(x, before)  # (B, T, C)
        if self.attention is not None:
            h = self.attention(h, state and state.past, last)
        if state is not None:
            after = after if self.config.cell == "lstm" else (after,)
            # autocast gives them less precision than they are to be carried in
            state.hidden = tuple(new.to(old.dtype) for new, old in zip(after, state.hidden, strict=True))
            state.length += ids.shape[1]
        h = h[:, -1:] if last else h
        return F.linear(self.dropout(h), self.embed.weight)  # (B, T, V)
