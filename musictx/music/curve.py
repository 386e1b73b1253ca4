"""Numbers that change over time in text: `0 3, 10 8`."""

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError

LEAST_S, MOST_S = 0.01, 3600.0  # from one moment to the next; the last moment
NUMBER = r"\d+(?:\.\d+)?"


@dataclass(frozen=True)
class Curve:
    """Values at moments in seconds, linear in between; the last one continues."""

    at_s: tuple[float, ...]
    values: tuple[float, ...]


def parse_curve(field: str, setting: object, least: float, most: float, unit: str) -> Curve:
    """A number, or text such as `0 3, 10 8`. Raises ConfigError, which names the field."""
    allowed = f"{least:g} to {most:g} {unit}, or a curve with seconds, as in '0 {least:g}, 10 {most:g}', or null"
    is_number = isinstance(setting, int | float | str | np.number) and not isinstance(setting, bool | np.bool_)
    if isinstance(setting, str) and not re.fullmatch(NUMBER, setting.strip(), re.ASCII):
        at_s, words = in_seconds(field, setting, allowed)
        if not all(re.fullmatch(NUMBER, word, re.ASCII) for word in words):
            raise ConfigError(field, got=setting, allowed=allowed)
        curve = Curve(at_s, tuple(map(float, words)))
    elif not is_number or (isinstance(setting, int) and setting > most):  # some have no float
        raise ConfigError(field, got=setting, allowed=allowed)
    else:
        curve = Curve((0.0,), (float(setting),))  # type: ignore[arg-type]
    if not all(least <= value <= most for value in curve.values):  # refuses NaN too
        raise ConfigError(field, got=setting, allowed=allowed)
    return curve


def along(at: NDArray[np.float64], xs: NDArray[np.float64], ys: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) the line through points (K,) at N places, also beyond them."""
    k = (np.searchsorted(xs, at, side="right") - 1).clip(0, len(xs) - 2)
    result: NDArray[np.float64] = ys[k] + (at - xs[k]) / (xs[k + 1] - xs[k]) * (ys[k + 1] - ys[k])
    return result


def in_seconds(field: str, text: str, allowed: str) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Seconds with a word each: `0 C, 4 Am` gives (0.0, 4.0) and ("C", "Am"). Raises ConfigError."""
    pairs = [pair.split() for pair in text.split(",")]
    if not all(len(pair) == 2 and re.fullmatch(NUMBER, pair[0], re.ASCII) for pair in pairs):
        raise ConfigError(field, got=text, allowed=allowed)
    at_s = tuple(float(at) for at, _ in pairs)
    if at_s[0] != 0 or at_s[-1] > MOST_S or any(later < at + LEAST_S for at, later in pairwise(at_s)):
        why = f"it begins at 0, each moment is at least {LEAST_S:g} s later, and the last is at most {MOST_S:g} s"
        raise ConfigError(field, got=text, why=why, allowed=allowed)
    return at_s, tuple(word for _, word in pairs)
