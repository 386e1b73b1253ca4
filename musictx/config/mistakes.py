"""A person's mistake as one line on stderr with exit status 2, also from Hydra, OmegaConf and the system."""

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
    """Turns a person's mistake into one line, with the keys of the command `name`, and status 2; Ctrl-C into status
    130."""
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
    """A person's mistake; None for another error."""
    if isinstance(error, UserError):
        return error
    return to_user_error(error) if isinstance(error, HydraException | OmegaConfBaseException | OSError) else None


def to_user_error(error: BaseException) -> UserError:
    """The UserError for an error of Hydra, OmegaConf or the system."""
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
            advice = {"allowed": allowed} if allowed else {"why": str(cause).splitlines()[0], "hint": SEE}
            return ConfigError(f"{cause.full_key}", got=cause.value, **advice)
    if isinstance(error, OSError) and is_full(error):
        place = f"{error.filename}: " if error.filename else ""
        what = f"the disk is full ({place}{error.strerror or error})"
        return UserError(what, "free some space, then give the same command again")
    if isinstance(error, OSError) and error.filename is not None:
        return UserError(f"{error.filename}: {error.strerror}", "give a path that can be read and written")
    text = str(error)
    if missing := re.search(r"missing mandatory value: (\S+)", text):
        full_key = re.search(r"full_key: (\S+)", text)
        return ConfigError(full_key[1] if full_key else missing[1], why="it is required and was not given", hint=SEE)
    if isinstance(error, OverrideParseException):
        key, equals, value = error.override.partition("=")
        if equals and KEY.fullmatch(key):
            return ConfigError(key.lstrip("+~"), got=value, why="its value cannot be read", hint=SEE)
        hint = f"settings are KEY=VALUE, as midi=FILE, seed_midi=FILE or path=FOLDER; {SEE}"
        return UserError(f"{error.override} is no setting", hint)
    if preset := re.search(
        r"Could not find '([\w/]+)/([^/']+)'\s+Available options in '[^']+':\s+([\w\s]+?)\s+Config", text
    ):
        names = [name for name in preset[3].split() if not name.endswith("_schema")]
        return ConfigError(preset[1], got=preset[2], allowed=f"one of {', '.join(names)}")
    if group := re.match(r"Could not override '([\w/]+)'\. No match in the defaults list", text):
        return ConfigError(group[1], why="it is not a setting of this command", hint=SEE)
    return UserError(" ".join(text.split()))


def is_full(error: OSError) -> bool:
    """Whether the disk is full."""  # numpy hides the error's number
    return error.errno in FULL or re.search(r"\d+ requested and \d+ written", str(error)) is not None


def _unknown_key(error: OmegaConfBaseException) -> ConfigError:
    node, key = error.parent_node, str(error.key)
    allowed = [str(k) for k in node if k != "hydra"] if node is not None and hasattr(node, "__iter__") else []
    return NotASetting(str(error.full_key or key), allowed)


class NotASetting(ConfigError):
    """A word that is no key of the command."""

    def __init__(self, key: str, allowed: Sequence[str]) -> None:
        super().__init__(key)
        self.args, self.choices = (key, allowed), allowed

    def _parts(self, keys: Mapping[str, str] | None) -> tuple[str, ...]:
        group, _, name = self.field.rpartition(".")
        within = {} if group else keys or {}  # temperature is sampler.temperature
        by_name = {each: key for each, key in within.items() if key.partition(".")[0] in self.choices}
        close = get_close_matches(name, self.choices, 1) or get_close_matches(name, by_name, 1)
        close = [name] if name in by_name else close
        hint = f"did you mean {by_name.get(close[0], close[0])}? " if close else ""
        return (
            f"{self.field}=…",
            f"it is not a setting: {hint}{group or 'this command'} has {', '.join(self.choices)}",
        )
