"""A rolling cache that never forgets the primer: its keys stay, moved to right before the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention import AUTO
from musictx.model.build import can, kind_of
from musictx.model.cache import KVCache
from musictx.model.position import FORMS
from musictx.model.position.form import Form
from musictx.model.transformer import Transformer

ORDERLESS = (AUTO, "reference", "skew")  # kernels that read keys by their age
LEAST = 8  # tokens of new music that must fit beside the primer


def check_pinned(model: object, n_seed: int, window: int) -> None:
    """Raises ConfigError for a model that cannot keep a primer of so many tokens in sight within its window."""
    if not can(model, "pinned"):
        raise ConfigError(f"⟨seed_pinned⟩=true: ⟨kind⟩={kind_of(model)} has no keys to keep; leave it out")
    assert isinstance(model, Transformer)
    if not FORMS[model.config.position].movable:
        form = model.config.position
        raise ConfigError(
            f"⟨seed_pinned⟩=true: ⟨position⟩={form} fixes the position of a key, and the primer's keys must move "
            "with the window; leave it out"
        )
    if model.config.position == "relative" and model.config.attention not in ORDERLESS:
        raise ConfigError(
            f"⟨seed_pinned⟩=true: ⟨TransformerConfig.attention⟩={model.config.attention} needs keys in order; choose "
            f"one of {', '.join(ORDERLESS)}, or leave it out"
        )
    if n_seed + model.cycle - 1 + LEAST > window:
        most = window - model.cycle + 1 - LEAST
        raise ConfigError(
            f"⟨seed_pinned⟩=true: the primer has {n_seed} tokens, and may take {most} of a window of {window}; give a "
            "shorter one, as with ⟨seed_seconds⟩=, or leave it out"
        )


class Pinned:
    """The last tokens of each row, and beside them its first `seeds` (B,) tokens, the primer; 0 for a row without one.

    While a row's music fits the window, nothing moves. Later the row sees its primer as if it stood right before the
    newest tokens, so near that nothing is farther away than `window`: it moves by a multiple of the model's cycle, so
    that beats stay beats, and up to cycle - 1 places between the two are empty. Keys stay where they were stored, and
    each step moves them from there, or errors would add up. After the prompts it takes steps of one token.
    """

    def __init__(self, rolling: KVCache, seeds: Tensor, model: Any) -> None:
        assert rolling.window is not None
        assert rolling.length <= rolling.window, "pin a primer before it rolls away"
        self.rolling, self.seeds, self.window = rolling, seeds[:, None], rolling.window  # (B, 1)
        self.forms: list[Form] = [block.attend for block in model.blocks]
        self.period = model.cycle
        self.timed = model.config.clock == "time"
        most, end = int(seeds.max()), rolling.end
        # slots before a shorter primer are masked
        self.k, self.v = (x[:, :, :, end - most : end].clone() for x in (rolling.k, rolling.v))
        self.place = torch.arange(-most, 0, device=seeds.device)  # (S,) of the primer's keys, counted from its end
        self.times = torch.zeros(len(seeds), self.window, dtype=torch.float64, device=seeds.device)  # a ring
        self.seed_end = rolling.clock
        self.masked: Tensor | None = None
        self.age: Tensor | None = None
        self.by: Tensor | None = None  # (B, 1) how far the primer moves, by the clock that keys read; None: not yet

    @property
    def length(self) -> int:
        return self.rolling.length

    @property
    def clock(self) -> Tensor:
        return self.rolling.clock

    @property
    def keyboard(self) -> Tensor | None:
        return self.rolling.keyboard

    @keyboard.setter
    def keyboard(self, state: Tensor | None) -> None:
        self.rolling.keyboard = state

    def begin(self, t: int) -> Tensor:
        """Makes room for one token a row; returns its position in its row, (B or 1, 1)."""
        assert t == 1, "a pinned cache takes steps of one token"
        index = self.rolling.begin(1)
        seen = index.long() + 1  # (B or 1, 1) tokens of the row, including the new one
        newest = self.window - self.seeds - (self.period - 1) * (self.seeds > 0)  # (B, 1) tokens that stay in sight
        rolled = (seen > self.window) & (self.seeds > 0)  # (B, 1)
        self.by = None
        self.masked, self.age = self.rolling.masked, self.rolling.age
        if not rolled.any():
            return index
        moved = (seen - newest - self.seeds) // self.period * self.period  # (B, 1) tokens
        shown = min(self.rolling.end + 1, self.window)
        age = torch.arange(shown - 1, -1, -1, device=seen.device)[None]  # (1, W)
        over = (age >= newest) & rolled  # (B, W)
        if self.rolling.masked is not None:
            over |= self.rolling.masked
        behind = seen - 1 - (self.seeds + self.place + moved)  # (B, S) tokens from a primer's key to the query
        self.masked = torch.cat([(self.place < -self.seeds) | ~rolled, over], 1)  # (B, S + W)
        self.age = torch.cat([behind, age.expand_as(over)], 1)
        self.by = moved.double()
        if self.timed:  # move its end to the time that the clock had at its new place
            last = self.length - (seen - self.seeds - moved)  # the index of the token at that place
            self.by = self.times.gather(1, last % self.window) - self.seed_end
        return index

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores new k, v (B, H, 1, D) of a layer; returns the primer's, moved, and the newest after them."""
        k, v = self.rolling.append(layer, k, v)
        if self.by is None:
            return k, v
        return torch.cat([self.forms[layer].moved(self.k[layer], self.by), k], 2), torch.cat([self.v[layer], v], 2)

    def advance(self, t: int, clock: Tensor) -> None:
        """Counts the token that all layers have stored, and sets the clock (B, 1)."""
        self.times[:, self.length % self.window] = clock[:, 0]
        self.rolling.advance(t, clock)

    @staticmethod
    def of_rows(state: KVCache, seeds: Sequence[int], model: Any) -> Pinned:
        """The joint state of a Transformer's rows that have just read their prompts, of so many tokens; 0 for a row
        that pins nothing."""
        return Pinned(state, torch.tensor(seeds, device=state.k.device), model)
