"""Errors of Hydra, OmegaConf and the system as a person reads them: one line on stderr, exit status 2."""

import errno
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException, ValidationError

from musictx.config.fields import setting_keys
from musictx.config.words import KEY, SEE
from musictx.errors import ConfigError, UserError
from musictx.files import MOST, printable
from musictx.terminal import any_terminal, say

KINDS = {  # by what OmegaConf says
    "converted to Integer": "a whole number",
    "converted to Float": "a number",
    "is not a valid bool": "true or false",
    "to string": "one word, or quoted text",
    "is not Optional": "a value",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def in_one_line(name: str = "train") -> Iterator[None]:
    """Within it, a person's mistake becomes one line on stderr and exit status 2, Ctrl-C status 130. The line has the
    keys of the command called `name`; scripts take those of `train`."""
    try:
        with any_terminal():
            yield
    except KeyboardInterrupt:
        say("interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if (mistake := mistake_of(error)) is None:
            raise
        say(f"error: {printable(mistake.line(setting_keys(name)))[:MOST]}", file=sys.stderr)
        sys.exit(2)


def mistake_of(error: Exception) -> UserError | None:
    """What a person did wrong; None for an error that is not theirs."""
    if isinstance(error, UserError):
        return error
    return explained(error) if isinstance(error, HydraException | OmegaConfBaseException | OSError) else None


def explained(error: BaseException) -> UserError:
    """An error of Hydra, OmegaConf or the system as a person reads it."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    for cause in causes:
        if isinstance(cause, ConfigKeyError | ConfigAttributeError):
            return _unknown_key(cause)
        if isinstance(cause, ValidationError) and "is not a ListConfig" in str(cause):
            return ConfigError(f"{cause.full_key}", got=cause.value, allowed=f"a list, [{cause.value}]")
        if isinstance(cause, ValidationError):
            allowed = next((kind for words, kind in KINDS.items() if words in str(cause)), "")
            said = {"allowed": allowed} if allowed else {"why": str(cause).splitlines()[0], "hint": SEE}
            return ConfigError(f"{cause.full_key}", got=cause.value, **said)
    if isinstance(error, OSError) and is_full(error):
        place = f"{error.filename}: " if error.filename else ""
        what = f"the disk is full ({place}{error.strerror or error})"
        return UserError(what, "free some space, then give the same command again")
    if isinstance(error, OSError) and error.filename is not None:
        return UserError(f"{error.filename}: {error.strerror}", "give a path that can be read and written")
    text = str(error)
    if missing := re.search(r"missing mandatory value: (\S+)", text):
        key = re.search(r"full_key: (\S+)", text)
        return ConfigError(key[1] if key else missing[1], why="it is required and was not given", hint=SEE)
    if isinstance(error, OverrideParseException):
        typed, equals, value = error.override.partition("=")
        if equals and KEY.fullmatch(typed):
            return ConfigError(typed.lstrip("+~"), got=value, why="its value cannot be read", hint=SEE)
        hint = f"settings are KEY=VALUE, as midi=FILE, seed_midi=FILE or path=FOLDER; {SEE}"
        return UserError(f"{error.override} is no setting", hint)
    if preset := re.search(
        r"Could not find '([\w/]+)/([^/']+)'\s+Available options in '[^']+':\s+([\w\s]+?)\s+Config", text
    ):
        there = [name for name in preset[3].split() if not name.endswith("_schema")]
        return ConfigError(preset[1], got=preset[2], allowed=f"one of {', '.join(there)}")
    return UserError(" ".join(text.split()))


def is_full(error: OSError) -> bool:
    """Whether a write failed because the disk is full; numpy hides the error's number."""
    return error.errno in FULL or re.search(r"\d+ requested and \d+ written", str(error)) is not None


def _unknown_key(error: OmegaConfBaseException) -> ConfigError:
    node, key = error.parent_node, str(error.key)
    allowed = [str(k) for k in node if k != "hydra"] if node is not None and hasattr(node, "__iter__") else []
    return NotASetting(str(error.full_key or key), allowed)


class NotASetting(ConfigError):
    """A key that the command has not; the line keeps it as it was typed."""

    def __init__(self, key: str, allowed: Sequence[str]) -> None:
        super().__init__(key)
        self.args, self.known = (key, allowed), allowed

    def _parts(self, keys: Mapping[str, str] | None) -> tuple[str, ...]:
        group, _, name = self.field.rpartition(".")
        within = {} if group else keys or {}  # temperature is sampler.temperature
        moved = {each: key for each, key in within.items() if key.partition(".")[0] in self.known}
        close = [name] if name in moved else get_close_matches(name, self.known, 1) or get_close_matches(name, moved, 1)
        hint = f"did you mean {moved.get(close[0], close[0])}? " if close else ""
        return f"{self.field}=…", f"it is not a setting: {hint}{group or 'this command'} has {', '.join(self.known)}"
