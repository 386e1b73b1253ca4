"""The music of the lessons: hymns in four voices, from the Open Hymnal Project (public domain)."""

from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from musictx.music.grid import Grid

FILE = Path(__file__).with_name("hymns.npz")  # tools/hymns.py makes it
HELD_OUT = 5  # every fifth hymn is
Ints = NDArray[np.int64]


@cache
def _read() -> tuple[list[Grid], list[str], list[str]]:
    with np.load(FILE, allow_pickle=False) as found:
        grids = np.split(found["pitch"].astype(np.int16), found["ends"][:-1])
        return [np.where(grid == 0, -1, grid) for grid in grids], found["name"].tolist(), found["key"].tolist()


def hymns(held_out: bool = False) -> list[Grid]:
    """(T, 4) each: the pitches of S, A, T, B at each sixteenth, -1 for a rest, as `musictx.music.grid` has them. Those
    held out are other tunes."""
    return [grid for n, grid in enumerate(_read()[0]) if (n % HELD_OUT == 0) == held_out]


def names(held_out: bool = False) -> list[str]:
    """The title and the tune of each, in the same order."""
    return [name for n, name in enumerate(_read()[1]) if (n % HELD_OUT == 0) == held_out]


def tonics(held_out: bool = False) -> list[int]:
    """The pitch class of the major key that each signature belongs to, 0 to 11, in the same order."""
    return [PITCH_CLASS[key] for n, key in enumerate(_read()[2]) if (n % HELD_OUT == 0) == held_out]


PITCH_CLASS = {"C": 0, "Db": 1, "D": 2, "Eb": 3, "E": 4, "F": 5, "Gb": 6, "G": 7, "Ab": 8, "A": 9, "Bb": 10, "B": 11}


def lines(length: int, voice: int = 0, step: int = 4, held_out: bool = False) -> Ints:
    """(N, length) windows of one voice, one pitch every `step` sixteenths, without rests; windows do not overlap."""
    found = [grid[::step, voice] for grid in hymns(held_out)]
    cut = [line[: len(line) // length * length].reshape(-1, length) for line in found]
    windows = np.concatenate(cut).astype(np.int64)
    return windows[(windows >= 0).all(1)]


def chords(
    length: int, step: int = 4, hop: int = 0, held_out: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N, length, 4) windows of all voices, a chord every `step` sixteenths, without rests; and the tonic (N,) of each.
    The next one begins after `hop` sixteenths; 0: after the window."""
    size, found = length * step, []
    for grid, tonic in zip(hymns(held_out), tonics(held_out), strict=True):
        cut = [grid[n : n + size : step] for n in range(0, len(grid) - size + 1, hop or size)]
        found += [(window, tonic) for window in cut if (window >= 0).all()]
    windows, keys = zip(*found, strict=True)
    return np.stack(windows).astype(np.int64), np.array(keys)


def roll(chords: Tensor, lowest: int, keys: int) -> Tensor:
    """(B, T, 4) pitches -> (B, keys, T): 1 where a key sounds."""
    return F.one_hot(chords - lowest, keys).amax(2).mT.float()


MAJOR = (4, 9, 11)  # semitones over the tonic: the notes of a major scale that have a major third below


def thirds(length: int, held_out: bool) -> tuple[Tensor, Tensor]:
    """Sopranos, a note a beat, and a second voice a third below in the hymn's key, (N, length) pitches each."""
    windows, tonic = chords(length, held_out=held_out)
    soprano = windows[..., 0]
    down = np.where(np.isin((soprano - tonic[:, None]) % 12, MAJOR), 4, 3)
    return torch.from_numpy(soprano), torch.from_numpy(soprano - down)
