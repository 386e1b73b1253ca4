"""Recurrent baselines: stacked LSTM or tanh cells; alone, with attention over the inputs that they have read, or with
additive attention over their past states (Bahdanau et al. 2015, section 3.1).

In the last the tanh is between query and key, so that no matrix product makes all scores: each pair takes a vector of A
numbers. The backward pass recomputes blocks of queries; memory grows with T, and besides with block · window · A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from musictx.errors import ConfigError
from musictx.model.cells import CELLS, ResidualCells, build_cells, initialise, run_cells
from musictx.model.keyboard import LONG_S, KeyboardState
from musictx.model.recall import Recall
from musictx.model.sizes import check_numbers, one_of
from musictx.model.transformer_settings import KEYBOARDS, SEEN
from musictx.setting import setting


@dataclass(frozen=True)
class RecurrentConfig:
    """The model to train: a recurrent net.

    Raises ConfigError for impossible sizes.
    """

    vocab_size: int
    d_model: int = setting(512, "width")
    n_layers: int = setting(3, "layers")
    dropout: float = setting(0.1, "share dropped in training")
    cell: str = setting("lstm", "lstm or rnn")
    residual: bool = setting(False, "a norm before each layer, and a sum of all layers")
    weight_dropout: float = setting(0.0, "share of the weights from state to state that training drops, as in AWD-LSTM")
    recall: bool = setting(False, "dot-product attention that returns the input after a past state like this one")
    additive: bool = setting(False, "additive attention over the past states of the top layer")
    d_attention: int = setting(128, "width of either attention")
    window: int = setting(512, "how many past tokens either attention sees")
    keyboard: str = setting("none", SEEN)

    def __post_init__(self) -> None:
        one_of("keyboard", self.keyboard, KEYBOARDS)
        check_numbers(self)
        one_of("cell", self.cell, CELLS)
        if self.recall and self.additive:
            raise ConfigError("additive", got=True, why="recall=true", allowed="one of the two attentions")


class RecurrentState:
    """The state of the cells, `hidden` (h,) or (h, c), each (layers, B, C); `length` counts all tokens ever seen."""

    def __init__(
        self, hidden: tuple[Tensor, ...], past: Past | None, length: int = 0, keyboard: Tensor | None = None
    ) -> None:
        self.hidden, self.past, self.length = hidden, past, length
        self.keyboard = keyboard  # (B, 2, 128) the state of all keys, if the model sees them

    def take(self, rows: Tensor) -> RecurrentState:
        """The rows (n,) of this batch, in that order, as a new state."""
        hidden = tuple(x.index_select(1, rows) for x in self.hidden)
        keyboard = None if self.keyboard is None else self.keyboard[rows]
        return RecurrentState(hidden, self.past and self.past.take(rows), self.length, keyboard)

    def move(self, rows: Tensor) -> None:
        """Row b becomes what row rows[b] was, (B,)."""
        vars(self).update(vars(self.take(rows)))

    @classmethod
    def join(cls, states: Sequence[RecurrentState]) -> RecurrentState:
        """States of one model as one batch; each row continues as it would alone."""
        hidden = tuple(torch.cat(parts, 1) for parts in zip(*(s.hidden for s in states), strict=True))
        pasts = [s.past for s in states if s.past is not None]
        boards = [s.keyboard for s in states if s.keyboard is not None]
        length = max(s.length for s in states)
        return cls(hidden, Past.join(pasts) if pasts else None, length, torch.cat(boards) if boards else None)

    def detach(self) -> RecurrentState:
        """Stops gradients to the tokens so far: the border of truncated back-propagation. Returns itself."""
        self.hidden = tuple(x.detach() for x in self.hidden)
        if self.past is not None:
            self.past.rows = self.past.rows.detach()
        return self

    def reset(self, rows: Tensor) -> RecurrentState:
        """Resets the rows where `rows` (B,) bool: a new piece begins there. Returns itself."""
        self.hidden = tuple(x.masked_fill(rows[:, None], 0.0) for x in self.hidden)
        if self.past is not None:
            self.past.alive = self.past.alive & ~rows[:, None]
        if self.keyboard is not None:
            up = torch.tensor([0.0, LONG_S], dtype=torch.float64, device=rows.device)[:, None]
            self.keyboard = torch.where(rows[:, None, None], up, self.keyboard)
        return self


class Recurrent(nn.Module):
    """ids (B, T) -> logits (B, T, V). Obeys `musictx.model.protocol.LanguageModel`."""

    cycle, window = 1, None  # its memory is unlimited

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        c = config.d_model
        self.embed = nn.Embedding(config.vocab_size, c)  # also the output head (Press & Wolf 2017)
        self.dropout = nn.Dropout(config.dropout)  # never from step to step (Zaremba et al. 2014, section 3.1)
        stack = ResidualCells if config.residual else build_cells
        self.cells = stack(config.cell, c, config.n_layers, config.dropout)
        self.attention = AdditiveAttention(c, config.d_attention, config.window) if config.additive else None
        self.recall = Recall(c, config.d_attention, config.window) if config.recall else None
        self.keyboard = None
        if config.keyboard != "none":
            self.keyboard = KeyboardState(config.vocab_size, c)
            self.keyboard.initialise()
        # without a norm in between the cells' input is near zero at the Transformer's 0.02, and they learn late. At 1
        # the head begins with wild guesses, and after a norm it does so at 0.2
        nn.init.normal_(self.embed.weight, std=0.02 if config.residual else 0.2)
        initialise(self.cells)

    def forward(self, ids: Tensor) -> Tensor:
        return self._run(ids, None)

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> RecurrentState:
        """An empty state. It never grows, whatever `max_T`: it always rolls."""
        c, like = self.config, self.embed.weight.detach()
        hidden = tuple(like.new_zeros(c.n_layers, batch, c.d_model) for _ in range(2 if c.cell == "lstm" else 1))
        past = Past.empty(batch, c.window, c.d_attention + c.d_model, like) if c.additive or c.recall else None
        return RecurrentState(hidden, past)

    def carry(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """ids (B, T) that continue from the state -> all logits (B, T, V)."""
        return self._run(ids, state)

    def prefill(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """Reads ids (B, T) into the state -> logits (B, V) after the last."""
        return self._run(ids, state, last=True)[:, -1]

    def step(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """One token a row, ids (B,) -> logits (B, V)."""
        return self._run(ids[:, None], state)[:, -1]

    def _run(self, ids: Tensor, state: RecurrentState | None, last: bool = False) -> Tensor:
        x = self.dropout(self.embed(ids))  # (B, T, C)
        hidden = None if state is None else state.hidden
        share = self.config.weight_dropout
        if isinstance(self.cells, ResidualCells):
            h, after = self.cells(x, hidden, share, self.recall, state and state.past)  # (B, T, C)
        else:
            h, after = run_cells(self.cells, x, hidden, share)
            if self.recall is not None:
                before = torch.zeros_like(h[:, 0]) if hidden is None else hidden[0][-1]
                found = self.recall(h, x, before, state and state.past, last)
                h = (h[:, -1:] if last else h) + found
        if self.attention is not None:
            h = self.attention(h, state and state.past, last)
        if state is not None:
            # autocast gives them less precision than the carried state has
            state.hidden = tuple(new.to(old.dtype) for new, old in zip(after, state.hidden, strict=True))
            state.length += ids.shape[1]
        y = self.dropout(h[:, -1:] if last else h)
        logits = F.linear(y, self.embed.weight)  # (B, T, V)
        return logits if self.keyboard is None else self.keyboard.onto(logits, y, ids, state)


BLOCK = 32


class Past:
    """A ring of the last `window` keys and states, `rows` (B, window, A + C); `alive` (B, window): may be seen."""

    def __init__(self, rows: Tensor, alive: Tensor, end: int = 0) -> None:
        self.rows, self.alive, self.end = rows, alive, end  # end: the slot of the next token, and of the oldest

    @classmethod
    def empty(cls, batch: int, window: int, width: int, like: Tensor) -> Past:
        return cls(like.new_zeros(batch, window, width), like.new_zeros(batch, window, dtype=torch.bool))

    def then(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Past and new rows (B, T, A + C) without the last, which no query sees -> (B, window + T - 1, ·), alive."""
        t = rows.shape[1]
        if t == 1:  # a single query needs no order: skip the copies
            return self.rows, self.alive
        old, alive = self.ordered()
        return torch.cat([old, rows[:, :-1].to(old.dtype)], 1), torch.cat([alive, alive.new_ones(len(rows), t - 1)], 1)

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


class AdditiveAttention(nn.Module):
    """States h (B, T, C) -> tanh of a mixture of each h_t and what it found in h_{t-window} … h_{t-1}, (B, T, C).

    score(t, s) = v · tanh(W h_t + U h_s); the very first state finds zeros. The mixture follows Luong et al. 2015,
    equation 5.
    """

    def __init__(self, d_model: int, d_attention: int, window: int) -> None:
        super().__init__()
        self.sizes, self.window = [d_attention, d_model], window
        self.query = nn.Linear(d_model, d_attention, bias=False)
        self.key = nn.Linear(d_model, d_attention, bias=False)
        self.score = nn.Linear(d_attention, 1, bias=False)
        self.join = nn.Linear(2 * d_model, d_model)

    def forward(self, h: Tensor, past: Past | None = None, last: bool = False) -> Tensor:
        """h (B, T, C), stored into `past` -> (B, T, C), or (B, 1, C) of the `last` only."""
        rows = self.rows(h)
        if past is None:
            seen, alive = rows[:, :-1], torch.ones(len(h), h.shape[1] - 1, dtype=torch.bool, device=h.device)
        else:
            seen, alive = past.then(rows)
        h = h[:, -1:] if last else h
        found = self.find(self.query(h), seen, alive)  # (B, T, C)
        if past is not None:
            past.append(rows)
        return torch.tanh(self.join(torch.cat([found.to(h.dtype), h], -1)))

    def rows(self, h: Tensor) -> Tensor:
        """Keys and states (B, T, A + C) of the states h (B, T, C)."""
        return torch.cat([self.key(h), h], -1)

    def find(self, q: Tensor, seen: Tensor, alive: Tensor) -> Tensor:
        """Queries (B, T, A), the last one after all of `seen` (B, S, A + C) -> contexts (B, T, C)."""
        t, before = q.shape[1], seen.shape[1] - q.shape[1] + 1  # keys before the first query
        out = []
        for start in range(0, t, BLOCK):
            end = min(start + BLOCK, t)
            at = torch.arange(before + start, before + end, device=q.device)[:, None]  # (R, 1)
            keys = slice(max(before + start - self.window, 0), before + end - 1)
            place = torch.arange(keys.start, keys.stop, device=q.device)  # (K,)
            mask = (place < at) & (place >= at - self.window) & alive[:, None, keys]  # (B, R, K)
            out.append(self.look(q[:, start:end], seen[:, keys], mask))
        return torch.cat(out, 1)

    def look(self, q: Tensor, seen: Tensor, mask: Tensor) -> Tensor:
        """Queries (B, R, A) into all of `seen` (B, K, A + C) at `mask` (B, R, K) -> contexts (B, R, C)."""
        if torch.is_grad_enabled():
            found: Tensor = checkpoint(self._block, q, seen, mask, use_reentrant=False, preserve_rng_state=False)
            return found
        return self._block(q, seen, mask)

    def _block(self, q: Tensor, seen: Tensor, mask: Tensor) -> Tensor:
        k, h = torch.split(seen, self.sizes, -1)  # (B, K, A), (B, K, C)
        logits = self.score((q[:, :, None] + k[:, None]).tanh_())[..., 0]  # (B, R, K)
        # finite, then zero: a query that sees nothing finds zeros instead of NaN
        weights = logits.masked_fill(~mask, torch.finfo(logits.dtype).min).softmax(-1).masked_fill(~mask, 0.0)
        found: Tensor = weights.to(h.dtype) @ h  # (B, R, C)
        return found
