"""Settings with a new name: the old one works for one release, with a line that names the new one."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

RENAMED = {"seed": "random_seed", "seeds": "random_seeds", "window_seconds": "span_seconds"}
GIVEN = re.compile(r"(\+{0,2})(\w+)(=.*)", re.DOTALL)


def words_now(words: Sequence[str], schema: type[Any]) -> list[str]:
    """The words of a command, `key=value`, with the names of now."""
    return [_word_now(word, schema) for word in words]


def values_now(values: Mapping[str, Any], schema: type[Any]) -> dict[str, Any]:
    """The same for settings that are given in Python."""
    return {_now(key, schema): value for key, value in values.items()}


def _word_now(word: str, schema: type[Any]) -> str:
    given = GIVEN.fullmatch(word)
    return f"{given[1]}{_now(given[2], schema)}{given[3]}" if given else word


def _now(key: str, schema: type[Any]) -> str:
    new = RENAMED.get(key)
    if new is None or new not in {each.name for each in fields(schema)}:
        return key
    print(f"{key}= is called {new}= now: the next release refuses the old name", file=sys.stderr)
    return new
