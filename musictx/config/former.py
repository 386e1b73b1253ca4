"""The old form of a command that takes settings now: it works for one release, with a line that names the new one."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from musictx.config.app import SETTING, hydra_app, in_one_line
from musictx.errors import ConfigError


def takes_former(
    name: str, task: Callable[[Any], object], key: Callable[[str], str], options: Mapping[str, str] | None = None
) -> Callable[[], None]:
    """`hydra_app(name, task)` for a command that takes its old form too: a path, whose setting is `key(path)`, and
    options, each with the setting that it has become; one that ends in = takes a value."""
    app = hydra_app(name, task)

    def rewrite() -> None:
        words = sys.argv[1:]
        sys.argv[1:] = now = as_settings(words, key, options or {})
        if now != words:
            old, new = (f"musictx {name} {shlex.join(each)}" for each in (words, now))
            print(f"{old}: the old form, which the next release refuses; give {new}", file=sys.stderr)

    def main() -> None:
        in_one_line(rewrite)
        app()

    return main


def as_settings(words: Sequence[str], key: Callable[[str], str], options: Mapping[str, str]) -> list[str]:
    """The words as settings; as they are where one is Hydra's own. Raises ConfigError for two paths, and for an option
    without its value."""
    left, now, paths = list(words), [], []
    while left:
        word = left.pop(0)
        option, is_given, value = word.partition("=")
        if SETTING.match(word):
            now.append(word)
        elif option in options:
            setting = options[option]
            if setting.endswith("=") and not is_given:
                if not left:
                    raise ConfigError(f"{option} takes a value: give {setting}…")
                value = left.pop(0)
            now.append(f"{setting}{value}" if setting.endswith("=") else setting)
        elif word.startswith("-"):
            return list(words)
        else:
            paths.append(word)
            now.append(f"{key(word)}={word}")
    if len(paths) > 1:
        raise ConfigError(f"{shlex.join(paths)}: give one path, as {key(paths[0])}=…")
    return now
