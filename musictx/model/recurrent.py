"""The recurrent baseline: stacked LSTM cells, alone or with attention over their past inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.cells import ResidualCells, build_cells, initialise, run_cells
from musictx.model.keyboard import KeyboardState
from musictx.model.recall import Past, Recall
from musictx.model.settings import KEYBOARDS, LONG_S, SEEN, check_numbers, one_of
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
    residual: bool = setting(False, "a norm before each layer, and a sum of all layers")
    weight_dropout: float = setting(0.0, "share of the weights from state to state that training drops, as in AWD-LSTM")
    recall: bool = setting(False, "dot-product attention that returns the input after a past state like this one")
    d_attention: int = setting(128, "width of that attention")
    window: int = setting(512, "how many past tokens that attention sees")
    keyboard: str = setting("none", SEEN)

    def __post_init__(self) -> None:
        one_of("keyboard", self.keyboard, KEYBOARDS)
        check_numbers(self)


class RecurrentState:
    """Obeys `musictx.model.protocol.State`: `hidden` (h, c) of the cells, each (layers, B, C)."""

    def __init__(
        self, hidden: tuple[Tensor, ...], past: Past | None, length: int = 0, keyboard: Tensor | None = None
    ) -> None:
        self.hidden, self.past, self.length = hidden, past, length
        self.keyboard = keyboard  # (B, 2, 128) the state of all keys, if the model sees them

    def take(self, rows: Tensor) -> RecurrentState:
        hidden = tuple(x.index_select(1, rows) for x in self.hidden)
        keyboard = None if self.keyboard is None else self.keyboard[rows]
        return RecurrentState(hidden, self.past and self.past.take(rows), self.length, keyboard)

    def move(self, rows: Tensor) -> None:
        vars(self).update(vars(self.take(rows)))

    @classmethod
    def join(cls, states: Sequence[RecurrentState]) -> RecurrentState:
        hidden = tuple(torch.cat(parts, 1) for parts in zip(*(s.hidden for s in states), strict=True))
        pasts = [s.past for s in states if s.past is not None]
        boards = [s.keyboard for s in states if s.keyboard is not None]
        length = max(s.length for s in states)
        return cls(hidden, Past.join(pasts) if pasts else None, length, torch.cat(boards) if boards else None)

    def detach(self) -> RecurrentState:
        """Stops gradients to past tokens: truncated back-propagation. Returns itself."""
        self.hidden = tuple(x.detach() for x in self.hidden)
        if self.past is not None:
            self.past.rows = self.past.rows.detach()
        return self

    def reset(self, rows: Tensor) -> RecurrentState:
        """Resets the rows where `rows` (B,) is True: a new piece begins there. Returns itself."""
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
        self.cells = stack(c, config.n_layers, config.dropout)
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
        hidden = tuple(like.new_zeros(c.n_layers, batch, c.d_model) for _ in range(2))
        past = Past.empty(batch, c.window, c.d_attention + c.d_model, like) if c.recall else None
        return RecurrentState(hidden, past)

    def carry(self, ids: Tensor, state: RecurrentState) -> Tensor:
        """ids (B, T) after the state -> logits (B, T, V)."""
        return self._run(ids, state)

    def prefill(self, ids: Tensor, state: RecurrentState) -> Tensor:
        return self._run(ids, state, last=True)[:, -1]

    def step(self, ids: Tensor, state: RecurrentState) -> Tensor:
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
                recalled = self.recall(h, x, before, state and state.past, last)
                h = (h[:, -1:] if last else h) + recalled
        if state is not None:
            # autocast gives them less precision than the carried state has
            state.hidden = tuple(new.to(old.dtype) for new, old in zip(after, state.hidden, strict=True))
            state.length += ids.shape[1]
        y = self.dropout(h[:, -1:] if last else h)
        logits = F.linear(y, self.embed.weight)  # (B, T, V)
        return logits if self.keyboard is None else self.keyboard.add_logits(logits, y, ids, state)
