"""The words of a command line: settings, KEY=VALUE; a command's main input; flags of Hydra."""

import os
import re
from collections.abc import Sequence
from dataclasses import fields
from os.path import exists, expanduser

from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.setting import find_setting

SEE = "see --help"
SHOWN = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
FLAGS: dict[str, Sequence[str] | None] = {  # of Hydra, with the values that may follow, "" for none; None: any value
    **dict.fromkeys(
        ("-h", "--help", "--hydra-help", "--version", "--resolve", "-r", "--run", "-m", "--multirun"), ("",)
    ),
    **dict.fromkeys(("-sc", "--shell-completion"), ("",)),
    **dict.fromkeys(("-c", "--cfg"), ("job", "hydra", "all")),
    **dict.fromkeys(("-i", "--info"), ("", *SHOWN)),
    **dict.fromkeys(("-p", "--package", "-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir")),
    "--experimental-rerun": None,
}
KEY = re.compile(r"(\+{0,2}|~)[a-zA-Z_$][\w$-]*([./]\w[\w$-]*)*(@[\w$.:-]*)?", re.ASCII)  # as Hydra reads it


def sort_words(command: Command, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings among the words, the main input too, and the flags with their values. Raises ConfigError,
    UserError."""
    settings: list[str] = []
    flags: list[str] = []
    inputs: list[str] = []
    rest = [*words]
    while rest:
        word = _with_home(rest.pop(0))
        if word.partition("=")[0] in FLAGS:
            flags += _flag(word, rest)
        elif word == "help" and not exists(word):
            flags.append("--help")
        elif word.startswith("-") and not exists(word):
            key, _, value = word.lstrip("-").partition("=")
            raise UserError(f"{word} is no flag", f"settings have no dashes, {key or 'KEY'}={value or 'VALUE'}; {SEE}")
        elif _is_setting(command, word):
            settings.append(word)
        else:
            inputs.append(word)
    return settings + _main(command, inputs, settings), flags


def _with_home(word: str) -> str:
    """The word, with the home folder for `~/`."""
    is_home = word.startswith(("~/", f"~{os.sep}")) and not exists(word)
    return expanduser(word) if is_home else word


def _flag(word: str, rest: list[str]) -> list[str]:
    """A flag and its value, which leaves `rest`. Raises UserError."""
    flag, equals, value = word.partition("=")
    values = FLAGS[flag]
    words = [word]
    if not equals and rest and (values is None or rest[0] in values):
        value = rest.pop(0)
        words.append(value)
    if values == ("",) and equals:
        raise UserError(f"{flag} takes no value", f"give {flag} alone; {SEE}")
    if (equals and not value) or (value not in values if values else not value):
        allowed = " or ".join(filter(None, values or ["one"]))
        raise UserError(f"{flag} cannot be {value}" if value else f"{flag} needs a value", f"give {allowed}; {SEE}")
    return words


def _is_setting(command: Command, word: str) -> bool:
    """Whether a word is a setting, not a file with `=` in its name. Raises UserError for a word that is neither."""
    key, equals, _ = word.partition("=")
    name = re.split("[.@/]", key.lstrip("+~"), maxsplit=1)[0]
    if word.startswith("~"):  # Hydra removes the preset of a group
        group = key[1:].partition("@")[0]
        if exists(word):
            return False
        if group not in command.groups and find_setting(command.schema, group):
            raise UserError(f"{word} cannot be removed", f"give another value, {group}=VALUE; {SEE}")
        return group in command.groups or name == "hydra"
    names = {each.name for each in fields(command.schema)} | {*command.groups, "hydra"}
    if not equals or (name not in names and exists(word)):
        return False
    if not KEY.fullmatch(key):
        raise UserError(f"{word} {'is no setting' if key.lstrip('+') else 'has no key'}", f"give KEY=VALUE; {SEE}")
    return True


def _main(command: Command, inputs: Sequence[str], settings: Sequence[str]) -> list[str]:
    """The setting of the main input, if there is one. Raises ConfigError, UserError."""
    for word in inputs:
        if (word in command.groups or find_setting(command.schema, word)) and not exists(word):
            raise UserError(f"{word} has no value", f"give {word}=VALUE; {SEE}")
    if not inputs:
        return []
    if not command.main:
        raise UserError(f"{inputs[0]} is no setting", f"settings are KEY=VALUE; {SEE}")
    for word in settings:
        key, _, value = word.lstrip("+").partition("=")
        if key == command.main:
            raise ConfigError(key, got=value, why=f"{inputs[0]} is given too", hint="leave one of them out")
    if command.takes_several:
        return [f"{command.main}=[{','.join(map(as_name, inputs))}]"]
    if len(inputs) > 1:
        entry = find_setting(command.schema, command.main)
        allowed = entry[1].metadata.get("meaning", "one word") if entry else ""
        why = f"{inputs[1]} is a second word without ="
        raise ConfigError(command.main, got=inputs[0], why=why, allowed=allowed, hint=SEE)
    return [f"{command.main}={as_name(inputs[0])}"]


def as_name(word: str) -> str:
    """A name for Hydra, also with ${ in it."""
    return quote(escape(word))


def escape(name: str) -> str:
    """A name with ${ escaped for OmegaConf."""
    return re.sub(r"(\\*)\$\{", lambda match: 2 * match[1] + "\\${", name)


def quote(value: str) -> str:
    """A value in quotes for Hydra's grammar."""
    escaped = re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), value)
    return f"'{escaped}'"
