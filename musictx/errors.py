"""Errors that a person can cause, as data: what was given, what is allowed, what to do next. Other errors are bugs."""

import re
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

SETTING = re.compile(r"(?<![\w./\\=-])((?:[A-Z]\w*\.)?)([a-z]\w*)=")  # lr=, Continue.window=; not in a path


class UserError(Exception):
    """A person's mistake in one line: `what` is wrong, and a `hint` at what to do.

    A hint names settings as Python does, `batch_size=4`. A command prints the keys that a person types,
    `trainer.batch_size=4`; `what` may have words of strangers in it, and is printed as it is.
    """

    source = ""  # the file, or other origin, of what was given

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)
        self.what, self.hint = what, hint

    def of(self, source: object) -> Self:
        """The same error, which begins with its source."""
        error = copy(self)
        error.source = str(source)
        return error

    def __str__(self) -> str:
        return self.line()

    def line(self, keys: Mapping[str, str] | None = None) -> str:
        """The sentence, with the key of each setting; None: its name in Python."""
        return ": ".join(part for part in (self.source, *self._parts(keys)) if part)

    def _parts(self, keys: Mapping[str, str] | None) -> tuple[str, ...]:
        return self.what, named(self.hint, keys)


class ConfigError(UserError):
    """A setting that does not exist, has an impossible value, or cannot be met on this machine.

    `ConfigError("temperature", got=5, allowed="0, or 0.001 to 1000")` reads `temperature=5: give 0, or 0.001 to 1000`.
    `why` says what is wrong where `allowed` does not. Without `got` the value is not known, or too long to print. A
    field whose name several groups of settings have comes with its class, `LoggerConfig.name`.
    """

    def __init__(self, field: str, *, got: object = ..., allowed: str = "", why: str = "", hint: str = "") -> None:
        super().__init__("", hint)
        self.args = (field,)  # the others are attributes, which pickle keeps
        self.field, self.got, self.allowed, self.why = field, got, allowed, why

    def _parts(self, keys: Mapping[str, str] | None) -> tuple[str, ...]:
        advice = "; ".join(part for part in (self.allowed and f"give {self.allowed}", self.hint) if part)
        return named(f"{self.field}=", keys) + as_word(self.got), named(self.why, keys), named(advice, keys)


def as_word(value: Any) -> str:
    """A value as the command line accepts it; Ellipsis, for a value that is not known, is `…`."""
    if value is ... or value is None:
        return "null" if value is None else "…"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_word, value))}]"
    return f"'{value}'" if " " in str(value) and not isinstance(value, dict) else str(value)


def named(text: str, keys: Mapping[str, str] | None) -> str:
    """The text with the key of each setting in it, `name=`; without keys, its name without its class."""
    known = keys or {}
    return SETTING.sub(lambda found: f"{known.get(found[1] + found[2]) or found[2]}=", text)


class MidiError(UserError):
    """A file whose music we cannot read: carries the path and the reason."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.args = (path, reason, hint)
        self.path, self.reason = str(path), reason


class TokenError(UserError):
    """Notes or ids beyond a vocabulary."""


class StoreError(UserError):
    """A token store that is missing, damaged, or made by another tokenizer."""


class BundleError(UserError):
    """A model file that is missing, damaged, or of another format."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the GPU or the machine ran out of memory. Knows PyTorch's error by name: importing it takes a second."""
    kind = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return kind or "can't allocate memory" in str(error)
