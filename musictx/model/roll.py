"""A piano roll made from ids: which keys are struck and which sound, in frames of 50 ms, for models of pictures."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.keyboard import CLEAR, N_KEYS, RELEASE, STRIKE, KeyTable

LOWEST, N_PIANO = 21, 88  # the keys of a piano
FRAME_S, FRAME_US = 0.05, 50_000
COARSEST, MOST = 16, 4096  # frames
FRAMES = "frames of 50 ms in the picture of a window; notes that begin later are not seen"


class Picture(NamedTuple):
    """The roll (B, 2, 88, F) float32, strikes and then what sounds. For each id (B, T) the key and the frame in which
    it begins a note of the roll, and whether it does. Key 0 is the lowest of a piano."""

    roll: Tensor
    key: Tensor
    frame: Tensor
    seen: Tensor

    def at_notes(self, x: Tensor) -> Tensor:
        """A map (B, C, P, N) of the roll with as many or fewer places -> (B, T, C). At each id that begins a note this
        is the map's vector there, at others 0."""
        (keys, frames), (p, n) = self.roll.shape[2:], x.shape[2:]
        place = self.key * p // keys * n + self.frame * n // frames  # (B, T)
        found = x.flatten(2).gather(2, place[:, None].expand(-1, x.shape[1], -1)).mT
        return found * self.seen[..., None]


class Roll(KeyTable):
    """ids (B, T) -> their `Picture`. Time 0 is the beginning of the ids; a note from before them is unknown. A key
    sounds until its release, its next strike, other music (CLEAR) or the end of the ids."""

    def __init__(self, vocab_size: int, n_frames: int) -> None:
        """Raises ConfigError for an impossible number of frames."""
        super().__init__(vocab_size)
        if n_frames not in range(COARSEST, MOST + 1, COARSEST):
            raise ConfigError("n_frames", got=n_frames, allowed=f"a multiple of {COARSEST} up to {MOST}")
        self.n_frames = n_frames

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Picture:
        (b, t), n = ids.shape, self.n_frames + 1  # the last frame is for all that is later
        act, key, now_us = self.act[ids], self.key[ids], self.wait_us[ids].cumsum(1)  # (B, T)
        strikes, begin = act == STRIKE, (now_us // FRAME_US).clamp(max=n - 1)
        over = (now_us + FRAME_US - 1) // FRAME_US  # the first frame without what ends now
        frame = torch.where(strikes, begin, over.clamp(max=n - 1))
        place = torch.arange(1, t + 1, device=ids.device).expand(b, t)
        moves = torch.where(strikes | (act == RELEASE), place, 0)
        last = place.new_zeros(b, N_KEYS * n).scatter_reduce_(1, key * n + frame, moves, "amax").view(b, N_KEYS, n)
        clear = place.new_zeros(b, n).scatter_reduce_(1, frame, torch.where(act == CLEAR, place, 0), "amax")
        last = torch.maximum(last, clear[:, None]).cummax(2).values  # (B, 128, n) the last act so far; 0: none
        down = F.pad(act, (1, 0)).gather(1, last.flatten(1)).view_as(last) == STRIKE
        heard = torch.arange(n, device=ids.device) < over[:, -1:, None]  # (B, 1, n)
        at = torch.where(strikes, key * n + begin, n - 1)  # what strikes no key is outside the roll
        struck = torch.zeros(b, N_KEYS * n, device=ids.device).scatter_(1, at, 1.0).view_as(last)
        roll = torch.stack([struck, ((down & heard) | (struck > 0)).float()], 1)
        piano, low = slice(LOWEST, LOWEST + N_PIANO), key - LOWEST
        seen = strikes & (low >= 0) & (low < N_PIANO) & (begin < n - 1)
        return Picture(roll[:, :, piano, :-1], low * seen, begin * seen, seen)
