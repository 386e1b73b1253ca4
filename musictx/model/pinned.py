"""A rolling cache that never forgets the seed: its keys stay, moved up to right before the window."""

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
LEAST = 8  # tokens of music beside the seed


def check_pinned(model: object, n_seed: int, window: int) -> None:
    """Raises ConfigError for a model that cannot keep a seed of so many tokens in sight within its window."""
    if not can(model, "pinned"):
        raise ConfigError(f"seed_pinned=true: model.kind={kind_of(model)} keeps no keys that could stay; leave it out")
    assert isinstance(model, Transformer)
    if not FORMS[model.config.position].movable:
        form = model.config.position
        raise ConfigError(
            f"seed_pinned=true: model.position={form} tells a key its place for good, and the seed's must move along "
            "with the window; leave it out"
        )
    if model.config.position == "relative" and model.config.attention not in ORDERLESS:
        raise ConfigError(
            f"seed_pinned=true: attention.impl={model.config.attention} wants keys in order; choose one of "
            f"{', '.join(ORDERLESS)}, or leave it out"
        )
    if n_seed + model.cycle - 1 + LEAST > window:
        most = window - model.cycle + 1 - LEAST
        raise ConfigError(
            f"seed_pinned=true: the seed has {n_seed} tokens, and of a window of {window} it may take {most}; give a "
            "shorter seed, as with seed_seconds=, or leave it out"
        )


class Pinned:
    """The last tokens of each row, and its first `seeds` (B,) beside them, 0 for a row that has none.

    As long as a row's music fits the window nothing is done. Later its seed is seen as if it stood right before the
    newest tokens, as many as leave nothing farther away than `window`: it is moved by a multiple of the model's cycle,
    so that beats stay beats, and up to cycle - 1 places between the two are empty. Keys are kept where they were and
    moved anew at each step, or errors would add up. After the prompts it takes steps of one token.
    """

    def __init__(self, rolling: KVCache, seeds: Tensor, model: Any) -> None:
        assert rolling.window is not None
        assert rolling.length <= rolling.window, "seeds are pinned before they roll away"
        self.rolling, self.seeds, self.window = rolling, seeds[:, None], rolling.window  # (B, 1)
        self.forms: list[Form] = [block.attend for block in model.blocks]
        self.period = model.cycle
        self.timed = model.config.clock == "time"
        most, end = int(seeds.max()), rolling.end
        # of shorter seeds, what stands before them is masked
        self.k, self.v = (x[:, :, :, end - most : end].clone() for x in (rolling.k, rolling.v))
        self.place = torch.arange(-most, 0, device=seeds.device)  # (S,) of the seed's keys, counted from its end
        self.times = torch.zeros(len(seeds), self.window, dtype=torch.float64, device=seeds.device)  # a ring
        self.seed_end = rolling.clock
        self.masked: Tensor | None = None
        self.age: Tensor | None = None
        self.by: Tensor | None = None  # (B, 1) how far the seed is moved, by the clock that keys read; None: not yet

    @property
    def length(self) -> int:
        return self.rolling.length

    @property
    def clock(self) -> Tensor:
        return self.rolling.clock

    def begin(self, t: int) -> Tensor:
        """One token a row; where it stands in its row, (B or 1, 1)."""
        assert t == 1, "a pinned cache takes steps of one token"
        index = self.rolling.begin(1)
        seen = index.long() + 1  # (B or 1, 1) tokens of the row, the new one among them
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
        behind = seen - 1 - (self.seeds + self.place + moved)  # (B, S) tokens from a seed's key to the query
        self.masked = torch.cat([(self.place < -self.seeds) | ~rolled, over], 1)  # (B, S + W)
        self.age = torch.cat([behind, age.expand_as(over)], 1)
        self.by = moved.double()
        if self.timed:  # its end is where the clock stood at the place that it is moved up to
            last = self.length - (seen - self.seeds - moved)  # of all tokens, the one at that place
            self.by = self.times.gather(1, last % self.window) - self.seed_end
        return index

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores new k, v (B, H, 1, D) of a layer; the seed's, moved, and the newest behind them."""
        k, v = self.rolling.append(layer, k, v)
        if self.by is None:
            return k, v
        return torch.cat([self.forms[layer].moved(self.k[layer], self.by), k], 2), torch.cat([self.v[layer], v], 2)

    def advance(self, t: int, clock: Tensor) -> None:
        """The token is in all layers."""
        self.times[:, self.length % self.window] = clock[:, 0]
        self.rolling.advance(t, clock)

    @staticmethod
    def of_rows(state: KVCache, seeds: Sequence[int], model: Any) -> Pinned:
        """The joint state of rows of a Transformer that have just read prompts of so many tokens; 0 for one that keeps
        nothing."""
        return Pinned(state, torch.tensor(seeds, device=state.k.device), model)
