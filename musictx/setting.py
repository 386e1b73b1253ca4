"""Settings of a schema: default, meaning, type, and text for `--help`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from musictx.errors import ConfigError, as_word
from musictx.terminal import wrap

T = TypeVar("T")
COLUMN, BELOW = 34, 6  # where the meanings begin, beside their keys or below them
NARROW = 60
HOW = "The settings with their default values. ??? is required; null is none."
MORE = "From Hydra: --cfg job shows the settings as YAML, --hydra-help explains the rest."


def setting(default: T, meaning: str, *, path: bool = False, folder: bool = False, commas: bool = False) -> T:
    """A field of a dataclass; a default list is copied. `path`: a name of files or folders, never empty. `folder`: a
    path that becomes a folder. `commas`: they separate its own values, never jobs."""
    options: dict[str, Any] = {"default_factory": default.copy} if isinstance(default, list) else {"default": default}
    row: T = field(metadata={"meaning": meaning, "path": path or folder, "folder": folder, "commas": commas}, **options)
    return row


WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", type(None): "null"}


@cache
def types_of(schema: Any) -> dict[str, tuple[Any, ...]]:
    """The types of each field of a dataclass."""
    return {name: get_args(hint) or (hint,) for name, hint in get_type_hints(schema).items()}


def find_setting(schema: Any, key: str) -> tuple[Any, Field[Any]] | None:
    """The type and field of a key, as data.path; None for another word."""
    name, _, within = key.partition(".")
    rows = {each.name: each for each in fields(schema)} if is_dataclass(schema) else {}
    if name not in rows:
        return None
    kind = get_type_hints(schema)[name]
    return find_setting(kind, within) if within else (kind, rows[name])


def check_types(request: Any, names: Mapping[str, str] = {}) -> None:
    """Makes numbers of numpy Python's, which have no bounds, and paths text. Raises ConfigError for a field with a
    value of another type; `names`: the names to print."""
    schema: Any = type(request)
    for name, types in types_of(schema).items():
        value = getattr(request, name)
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = value.item()
        elif isinstance(value, Path) and str in types:
            value = str(value)
        object.__setattr__(request, name, value)
        kinds = (*types, int) if float in types else types
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in types):
            allowed = " or ".join(WORDS.get(kind, kind.__name__) for kind in types)
            why = "it is text" if isinstance(value, str) else ""  # which may read as a number
            raise ConfigError(names.get(name, name), got=value, why=why, allowed=allowed)


def help_text(
    schema: Any,
    groups: Mapping[str, Any],
    values: Mapping[str, Any],
    presets: Mapping[str, Sequence[str]],
    width: int,
    main: str = "",
) -> str:
    """The text of `--help`; `groups` have schemas of their own, `main` is the main input in the line of usage."""
    title = about(schema)
    own, in_groups = [], []
    for each in fields(schema):
        if each.name in groups:
            in_groups += ["", *_group(each.name, groups[each.name], values[each.name], presets, width)]
        else:
            own += _row(f"{each.name}={as_word(values[each.name])}", each.metadata.get("meaning", ""), width)
    for name in [name for name in presets if name not in {each.name for each in fields(schema)}]:
        own += _row(f"{name}=null", f"many settings at once: {', '.join(presets[name])}; null: none", width)
    usage = " ".join(["usage:", title.partition(":")[0], *filter(None, [main]), "KEY=VALUE …"])
    return "\n".join(
        [
            *wrap(title, width),
            "",
            *wrap(usage, width),
            "",
            *wrap(HOW, width),
            "",
            *own,
            *in_groups,
            "",
            *wrap(MORE, width),
        ]
    )


def _group(
    name: str, schema: Any, values: Mapping[str, Any], presets: Mapping[str, Sequence[str]], width: int
) -> Iterator[str]:
    options = f" Presets: {name}={', '.join(presets[name])}" if name in presets else ""
    yield from wrap(f"{name}: {about(schema)}{options}", width)
    for each in fields(schema):
        yield from _row(f"{name}.{each.name}={as_word(values[each.name])}", each.metadata.get("meaning", ""), width)


def about(schema: Any) -> str:
    """The first paragraph of a schema's docstring."""
    first: str = schema.__doc__.partition("\n\n")[0]
    return " ".join(first.split())


def _row(word: str, meaning: str, width: int) -> list[str]:
    """A word `key=value` and its meaning, on one line where it fits."""
    column = COLUMN if width >= NARROW else BELOW
    first, *more = [" " * column + line for line in wrap(meaning, width - column)] or [""]
    beside = f"  {word}".ljust(column - 2) + "  "
    return [beside + first[column:], *more] if len(beside) == column else [f"  {word}", first, *more]
