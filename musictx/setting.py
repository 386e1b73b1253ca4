"""Keeps a setting's default beside its meaning in a schema, and prints both in `--help`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from musictx.errors import ConfigError, as_word
from musictx.terminal import wrapped

T = TypeVar("T")
COLUMN, BELOW = 34, 6  # where the meanings begin, beside their keys or below them
NARROW = 60
HOW = "The settings with their default values. ??? is required; null is none."
MORE = "From Hydra: --cfg job shows the settings as YAML, --hydra-help explains the rest."


def setting(default: T, meaning: str, *, path: bool = False, commas: bool = False) -> T:
    """A field of a dataclass. The default may be a list: each instance gets its own copy. `path`: it names files or
    folders, so empty text is refused, which would be the current folder. `commas`: they stand between values of its
    own, never between jobs."""
    how: dict[str, Any] = {"default_factory": default.copy} if isinstance(default, list) else {"default": default}
    made: T = field(metadata={"meaning": meaning, "path": path, "commas": commas}, **how)
    return made


WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", type(None): "null"}
NUMBERS = {int: (int, np.integer), float: (int, float, np.integer, np.floating)}  # a truth value is no number


@cache
def types_of(schema: Any) -> dict[str, tuple[Any, ...]]:
    """The types that each field of a dataclass may have."""
    return {name: get_args(hint) or (hint,) for name, hint in get_type_hints(schema).items()}


def find_setting(schema: Any, key: str) -> tuple[Any, Field[Any]] | None:
    """The type and the field of a setting by its key: `data.path` is the path within data. None if there is none."""
    name, _, within = key.partition(".")
    found = {each.name: each for each in fields(schema)} if is_dataclass(schema) else {}
    if name not in found:
        return None
    kind = get_type_hints(schema)[name]
    return find_setting(kind, within) if within else (kind, found[name])


def check_types(request: Any, names: Mapping[str, str] = {}) -> None:
    """Raises ConfigError for a field of a dataclass with a value of another type than its own; `names` has the fields
    that a person knows by another name."""
    schema: Any = type(request)
    for name, types in types_of(schema).items():
        value = getattr(request, name)
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        kinds = tuple(each for kind in types for each in NUMBERS.get(kind, (kind,)))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in types):
            allowed = " or ".join(WORDS.get(kind, kind.__name__) for kind in types)
            raise ConfigError(names.get(name, name), got=value, allowed=allowed)


def help_text(
    schema: Any,
    groups: Mapping[str, Any],
    values: Mapping[str, Any],
    presets: Mapping[str, Sequence[str]],
    width: int,
    main: str = "",
) -> str:
    """Every setting of a command with its value and its meaning. `groups` are the settings with a separate schema,
    `presets` the options of each group; a group outside the schema sets many settings at once. `main` is what the line
    of usage has before the settings."""
    title = about(schema)
    own, grouped = [], []
    for each in fields(schema):
        if each.name in groups:
            grouped += ["", *_group(each.name, groups[each.name], values[each.name], presets, width)]
        else:
            own += _row(f"{each.name}={as_word(values[each.name])}", each.metadata.get("meaning", ""), width)
    for name in [name for name in presets if name not in {each.name for each in fields(schema)}]:
        own += _row(f"{name}=null", f"many settings at once: {', '.join(presets[name])}; null: none", width)
    usage = " ".join(["usage:", title.partition(":")[0], *filter(None, [main]), "KEY=VALUE …"])
    return "\n".join(
        [
            *wrapped(title, width),
            "",
            *wrapped(usage, width),
            "",
            *wrapped(HOW, width),
            "",
            *own,
            *grouped,
            "",
            *wrapped(MORE, width),
        ]
    )


def _group(
    name: str, schema: Any, values: Mapping[str, Any], presets: Mapping[str, Sequence[str]], width: int
) -> Iterator[str]:
    options = f" Presets: {name}={', '.join(presets[name])}" if name in presets else ""
    yield from wrapped(f"{name}: {about(schema)}{options}", width)
    for each in fields(schema):
        yield from _row(f"{name}.{each.name}={as_word(values[each.name])}", each.metadata.get("meaning", ""), width)


def about(schema: Any) -> str:
    """The first paragraph of a schema's docstring."""
    first: str = schema.__doc__.partition("\n\n")[0]
    return " ".join(first.split())


def _row(given: str, meaning: str, width: int) -> list[str]:
    """`key=value` and its meaning, on the same line where there is room."""
    column = COLUMN if width >= NARROW else BELOW
    first, *more = [" " * column + line for line in wrapped(meaning, width - column)] or [""]
    beside = f"  {given}".ljust(column - 2) + "  "
    return [beside + first[column:], *more] if len(beside) == column else [f"  {given}", first, *more]
