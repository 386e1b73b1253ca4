"""Loudness and articulation for a score, as the arrangements of POP909 have them; its times stay as written.

A small network reads each note, its place and its neighbours (`loudness.py`). It learned from POP909 alone. There 94 %
of onsets lie within 1/240 of a quarter of the grid, so there is no timing to learn. It gives the mean; a little noise,
far less than players differ, only keeps figures that come again from being the same. `studies/humanize.py` makes it.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from musictx.errors import ConfigError
from musictx.generate.loudness import Array, features_of
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Part
from musictx.music.score import UNITS, Score
from musictx.tokenizers.score.slots import slots_of

Floating = NDArray[np.floating[Any]]

WEIGHTS = Path(__file__).with_name("humanize.safetensors")
NOISE = 2.0  # the standard deviation of MIDI velocities that chance adds
LOUDEST = 127
UTMOST = 4.0
SHORTEST, LONGEST = 0.2, 1.5  # of a written length: how long a key is held


class Network(NamedTuple):
    """The layers of weights (in, out) and biases (out,); features come standardised, answers go back to units."""

    features: list[str]
    mean: Array  # (F,)
    scale: Array  # (F,)
    layers: list[tuple[Array, Array]]

    def standardised(self, x: Floating) -> Floating:
        """The features (N, F) in standard deviations, and what no song has as the utmost."""
        return ((x - self.mean) / self.scale).clip(-UTMOST, UTMOST)

    def __call__(self, x: Floating) -> Array:
        """Velocity and held share (N, 2) of features (N, F)."""
        hidden = self.standardised(x)
        for weight, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weight + bias, 0)
        weight, bias = self.layers[-1]
        return np.asarray(hidden @ weight + bias)


class Touch(NamedTuple):
    """How the notes of a part are played: MIDI velocities (N,), and the shares (N,) of their lengths that keys are
    held."""

    velocity: NDArray[np.uint8]
    held: Array


@cache
def network() -> Network:
    """The network inside the package."""
    with safe_open(WEIGHTS, "numpy") as file:
        tensors = {name: file.get_tensor(name).astype(np.float64) for name in file.keys()}  # noqa: SIM118 # no mapping
        features = json.loads(file.metadata()["features"])
    count = sum(name.startswith("weight") for name in tensors)
    layers = [(tensors[f"weight{n}"], tensors[f"bias{n}"]) for n in range(count)]
    return Network(features, tensors["mean"], tensors["scale"], layers)


def humanize(notation: Notation, seed: int = 0) -> list[Score]:
    """Each part as it is played, in seconds; the same for the same random seed.

    Raises ConfigError for a seed below 0, and TokenError for more parts than the score encoding has."""
    touches = touches_of(notation, seed)
    return [_played(notation, part, touch) for part, touch in zip(notation.parts, touches, strict=True)]


def touches_of(notation: Notation, seed: int = 0, slots: Sequence[int | None] | None = None) -> list[Touch]:
    """How each part is played; `slots`, if they are known. Raises ConfigError and TokenError."""
    if not isinstance(seed, int) or seed < 0:
        raise ConfigError("seed", got=seed, allowed="a whole number from 0 on")
    sizes = [len(part.notes) for part in notation.parts]
    if not any(sizes):
        return [Touch(np.zeros(0, np.uint8), np.zeros(0)) for _ in sizes]
    found, model = features_of(notation, slots or slots_of(notation)), network()
    velocity, held = model(np.stack([found[name].astype(np.float64) for name in model.features], axis=1)).T
    velocity = velocity + np.random.default_rng(seed).normal(0, NOISE, len(velocity))
    velocity = np.rint(velocity).clip(1, LOUDEST).astype(np.uint8)
    held = held.clip(SHORTEST, LONGEST)
    borders = np.cumsum(sizes)[:-1]
    return [Touch(*both) for both in zip(np.split(velocity, borders), np.split(held, borders), strict=True)]


def _played(notation: Notation, part: Part, touch: Touch) -> Score:
    """A part in seconds. A key that is struck again was let go before."""
    onset, length, pitch = np.array(part.notes, np.float64).reshape(-1, 3).T
    offset = onset + length * touch.held
    following: dict[int, float] = {}
    for n in range(len(onset) - 1, -1, -1):
        key = int(pitch[n])
        offset[n] = max(min(offset[n], following.get(key, np.inf)), onset[n])
        following[key] = onset[n]
    onset_s, offset_s = seconds_of(notation, onset), seconds_of(notation, offset)
    quarter_s = 60 / notation.tempi[0].quarters_a_minute
    return Score(onset_s, offset_s, pitch, touch.velocity, quarter_s, part.program)


def seconds_of(notation: Notation, units: Array) -> Array:
    """Moments of a score (N,) in seconds."""
    at = np.array([tempo.onset for tempo in notation.tempi], np.float64)
    unit_s = 60 / UNITS / np.array([tempo.quarters_a_minute for tempo in notation.tempi])
    base_s = np.append(0, np.cumsum(np.diff(at) * unit_s[:-1]))
    k = np.maximum(np.searchsorted(at, units, side="right") - 1, 0)
    return np.asarray(base_s[k] + (units - at[k]) * unit_s[k])
