"""What the settings of a model may be."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from musictx.errors import ConfigError

WEIGHTS, AUTO = ("float32", "bfloat16", "int8"), "auto"  # how a model keeps its weights to generate
LARGEST, MOST_LAYERS = 2**20, 2**10  # no model of any size known comes near


def check_numbers(config: Any) -> None:
    """Raises ConfigError unless each size of a config is a whole number that a model can have, and each share is from 0
    to below 1. The settings with a whole number as default are sizes, those with a fraction are shares."""
    for each in fields(config):
        value, size = getattr(config, each.name), type(each.default) is int and "meaning" in each.metadata
        if size or each.name == "vocab_size" or (each.name == "trained_length" and value is not None):
            most = MOST_LAYERS if "layers" in each.name else LARGEST
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ConfigError(each.name, got=value, allowed=f"a whole number from 1 to {most}")
        elif type(each.default) is float and (not isinstance(value, int | float) or not 0 <= value < 1):
            raise ConfigError(each.name, got=value, allowed="a share from 0 up to below 1")


def one_of(field: str, value: str, known: Iterable[str]) -> str:
    """The value. Raises ConfigError for one that is not known."""
    if value not in known:
        raise ConfigError(field, got=value, allowed=f"one of {', '.join(known)}")
    return value
