"""Errors that a person can cause, each told in one line. Every other error is a bug and keeps its traceback."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

FIELD = re.compile(r"⟨((?:\w+\.)?(\w+))⟩")  # brackets that nobody types
KEYS: ContextVar[Mapping[str, str]] = ContextVar("keys", default=MappingProxyType({}))  # config/fields.py sets them


class UserError(Exception):
    """A person's mistake, told in one line: what it got, what is allowed, what to do next.

    Every field in the text is marked, `⟨temperature⟩=5: give …`, with its class where several have a field of this
    name, `⟨LoggerConfig.name⟩`. In Python the error reads `temperature=5: give …`; while a command runs, it has the key
    that a person types there, `sampler.temperature=5: give …`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(told(text))


def told(text: str) -> str:
    """The text with the name of each marked field, or with its key in the command that runs."""
    return FIELD.sub(lambda field: KEYS.get().get(field[1], field[2]), text)


class MidiError(UserError):
    """A file whose music we cannot read: carries the path and the reason."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = str(path), told(reason)


class TokenError(UserError):
    """Notes or ids that a vocabulary cannot hold."""


class StoreError(UserError):
    """A token store that is missing, damaged, or made by another tokenizer."""


class BundleError(UserError):
    """A model file that is missing, damaged, or of another format."""


class ConfigError(UserError):
    """A setting that does not exist, has the wrong type, or cannot be met on this machine."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the GPU or the machine ran out of memory. Knows PyTorch's error by name: importing it takes a second."""
    kind = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return kind or "can't allocate memory" in str(error)
