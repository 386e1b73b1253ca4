"""The keyboard as a model sees it: keys down, how long, and the time since each strike, all from the ids.

One head reads each key and its neighbours, so a chord is alike in every key. It begins at zero: a model that gains it
begins as the same model.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.settings import CLEAR, HIDDEN, LONG_S, N_FEATURES, N_KEYS, RANK, REACH, RELEASE, STRIKE

MANY = 1024  # tokens for which a GPU takes a product in place of a convolution


class Keys(NamedTuple):
    """Of each id, (V,) int64 each: its key (else 0), its act (0: none), and microseconds. Whole numbers stay exact in a
    bundle of float16."""

    key: Tensor
    act: Tensor
    wait_us: Tensor


class KeyboardState(nn.Module):
    """Follows all keys and adds to the logits. Between calls the state is (B, 2, 128) float64: 1 for a key that is
    down, and seconds since its strike."""

    key: Tensor
    act: Tensor
    wait_us: Tensor

    def __init__(self, vocab_size: int, d_model: int) -> None:
        """No id moves a key until `learn`, or tensors are loaded."""
        super().__init__()
        for name in Keys._fields:
            self.register_buffer(name, torch.zeros(vocab_size, dtype=torch.long))
        self.near = nn.Conv1d(N_FEATURES, HIDDEN, 2 * REACH + 1, padding=REACH)
        self.read, self.steer = nn.Linear(HIDDEN, RANK), nn.Linear(d_model, 2 * RANK)

    def initialise(self) -> None:
        """Draws the weights; `steer` begins at zero."""
        self.near.reset_parameters()
        self.read.reset_parameters()
        nn.init.zeros_(self.steer.weight)
        nn.init.zeros_(self.steer.bias)

    def learn(self, keys: Keys) -> None:
        """Takes the table of ids from a tokenizer."""
        for own, table in zip((self.key, self.act, self.wait_us), keys, strict=True):
            own.copy_(table)

    def up(self, batch: int) -> Tensor:
        """All keys up, and none ever struck: (B, 2, 128)."""
        state = torch.zeros(batch, 2, N_KEYS, dtype=torch.float64, device=self.wait_us.device)
        state[:, 1] = LONG_S
        return state

    @torch.no_grad()
    def features(self, ids: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """ids (B, T) after a state (B, 2, 128) -> features (B, T, 4, 128) float32 after each id, and the new state."""
        b, t = ids.shape
        act, key = self.act[ids], self.key[ids]  # (B, T)
        now_s = self.wait_us[ids].cumsum(1).double() / 1e6  # (B, T) since the first of these ids
        place = torch.arange(1, t + 1, device=ids.device).expand(b, t)

        def last(kind: int) -> Tensor:
            """(B, T, 128) the place of the last such act on each key, from 1 on; 0: none yet."""
            at = torch.zeros(b, t, N_KEYS, dtype=torch.long, device=ids.device)
            at.scatter_(2, key[..., None], torch.where(act == kind, place, 0)[..., None])
            return at.cummax(1).values

        struck, released = last(STRIKE), last(RELEASE)
        cleared = torch.where(act == CLEAR, place, 0).cummax(1).values[..., None]  # (B, T, 1)
        was_down, was_since_s = before[:, None].unbind(2)  # (B, 1, 128)
        at_s = now_s.gather(1, (struck - 1).clamp(min=0).flatten(1)).view_as(struck)
        since_s = torch.where(struck > 0, now_s[..., None] - at_s, was_since_s + now_s[..., None])
        since_s = since_s.masked_fill(struck < cleared, LONG_S).clamp(max=LONG_S)
        up = torch.maximum(released, cleared)
        down = torch.where(torch.maximum(struck, up) > 0, (struck > up).double(), was_down)
        pressed, age_s = down.float(), since_s.float()
        features_down = [pressed, pressed * torch.exp(-age_s), pressed * torch.log1p(age_s)]
        features = torch.stack([*features_down, torch.exp(-age_s / 2)], 2)
        return features, torch.stack([down[:, -1], since_s[:, -1]], 1)

    def add_logits(self, logits: Tensor, y: Tensor, ids: Tensor, state: Any) -> Tensor:
        """Logits (B, T, V) plus, for strike and release of key p, u_p · G y: u_p reads the keys around p, y (B, T, C)
        is the output after the last T ids. `state` has the keys before the ids and gets those after; None: all are
        up."""
        before = None if state is None else state.keyboard
        features, after = self.features(ids, self.up(len(ids)) if before is None else before)
        if state is not None:
            state.keyboard = after
        b, t, _ = y.shape
        f = features[:, -t:].flatten(0, 1).to(y.dtype)  # (B · T, 4, 128)
        many = f.is_cuda and len(f) >= MANY
        around = F.relu(as_product(self.near, f) if many else self.near(f).transpose(1, 2))
        u = self.read(around).unflatten(0, (b, t))  # (B, T, 128, rank)
        g = self.steer(y).unflatten(-1, (2, RANK))  # (B, T, 2, rank)
        gained = F.pad((g @ u.transpose(-1, -2)).flatten(2), (0, 1))  # (B, T, 257), 0 for all other ids
        slot = torch.where(self.act == STRIKE, self.key, N_KEYS + self.key)
        slot = slot.where((self.act == STRIKE) | (self.act == RELEASE), 2 * N_KEYS)  # (V,)
        return logits + gained[..., slot]


def as_product(near: nn.Conv1d, f: Tensor) -> Tensor:
    """A convolution over keys, f (N, 4, 128) -> (N, 128, hidden), as a banded product: 5 times the arithmetic, but a
    GPU is slow at four channels."""
    keys = torch.arange(N_KEYS, device=f.device)
    taps = torch.arange(2 * REACH + 1, device=f.device)
    band = (keys[:, None] - keys + REACH == taps[:, None, None]).to(near.weight.dtype)  # (taps, from, to)
    matrix = torch.einsum("hct,tpq->cpqh", near.weight, band).flatten(2).flatten(0, 1)  # (4 · 128, 128 · hidden)
    around: Tensor = (f.flatten(1) @ matrix.to(f.dtype)).view(len(f), N_KEYS, -1)
    return around if near.bias is None else around + near.bias.to(f.dtype)
