"""Errors that a person can cause, in one line; any other error is a bug."""

import re
from collections.abc import Mapping
from copy import copy
from os import PathLike
from typing import Any, Self

SETTING = re.compile(r"(?<![\w./\\=-])((?:[A-Z]\w*\.)?)([a-z]\w*)=")  # lr=, Continue.window=; not in a path


class UserError(Exception):
    """A person's mistake in one line: `what` is wrong, and a `hint` at the remedy.

    A hint names settings as Python does, `batch_size=4`; a command prints their keys, `trainer.batch_size=4`.
    """

    source = ""  # the file, or another origin, of the mistake

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)
        self.what, self.hint = what, hint

    def of(self, source: object) -> Self:
        """A copy that begins with its source."""
        error = copy(self)
        error.source = str(source)
        return error

    def __str__(self) -> str:
        return self.line()

    def line(self, keys: Mapping[str, str] | None = None) -> str:
        """The line with the key of each setting, or its name in Python."""
        return ": ".join(part for part in (self.source, *self._parts(keys)) if part)

    def _parts(self, keys: Mapping[str, str] | None) -> tuple[str, ...]:
        return self.what, with_keys(self.hint, keys)  # `what` may have words of strangers


class ConfigError(UserError):
    """A setting that does not exist or has an impossible value; without `got` the value is not printed.

    `ConfigError("temperature", got=5, allowed="0, or 0.001 to 1000")` reads `temperature=5: give 0, or 0.001 to 1000`.
    A field of several groups comes with its class, `LoggerConfig.name`.
    """

    def __init__(self, field: str, *, got: object = ..., allowed: str = "", why: str = "", hint: str = "") -> None:
        super().__init__("", hint)
        self.args = (field,)  # the others are attributes, which pickle keeps
        self.field, self.got, self.allowed, self.why = field, got, allowed, why

    def _parts(self, keys: Mapping[str, str] | None) -> tuple[str, ...]:
        advice = "; ".join(part for part in (self.allowed and f"give {self.allowed}", self.hint) if part)
        return with_keys(f"{self.field}=", keys) + as_word(self.got), with_keys(self.why, keys), with_keys(advice, keys)


LONG = 100  # letters: only objects, such as scores, have more


def as_word(value: Any) -> str:
    """A value as the command line accepts it; Ellipsis as `…`, an object with a long text as its type."""
    if value is ... or value is None:
        return "null" if value is None else "…"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_word, value))}]"
    if not isinstance(value, str | PathLike) and len(str(value)) > LONG:
        return type(value).__name__
    return f"'{value}'" if " " in str(value) and not isinstance(value, dict) else str(value)


def counted(count: int, one: str, several: str = "") -> str:
    """A number of things in words: 1 note, 1,200 notes, 2 staves."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def with_keys(text: str, keys: Mapping[str, str] | None) -> str:
    """The text with the key of each setting, `name=`, or its name without the class."""
    table = keys or {}
    return SETTING.sub(lambda match: f"{table.get(match[1] + match[2]) or match[2]}=", text)


class MidiError(UserError):
    """A file whose music cannot be read."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.args = (path, reason, hint)
        self.path, self.reason = str(path), reason


class PerformanceError(MidiError):
    """A file that is no score: its notes keep to no beat. `reason` says so of the file, "is a performance"."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(path, reason, hint)
        self.what = f"{path} {reason}"


class ScoreError(MidiError):
    """A score that has too much for models of scores, as both hands or 200 parts; no other model suits it."""


class TokenError(UserError):
    """Notes or ids beyond a vocabulary."""


class StoreError(UserError):
    """A token store that is missing, damaged, or of another tokenizer."""


class BundleError(UserError):
    """A model file that is missing, damaged, or of another format."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the GPU or the machine ran out of memory."""
    # by name: to import PyTorch takes a second
    kind = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return kind or "can't allocate memory" in str(error)
