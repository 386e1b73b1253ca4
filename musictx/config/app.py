"""Settings of a command, from words as a person types them or from Python: Hydra composes, OmegaConf checks."""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from threading import RLock
from types import UnionType
from typing import Any, Union, get_args, get_origin

import hydra
import numpy as np
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from musictx.config import PRESETS, register
from musictx.config.command import OWN, Command, find
from musictx.config.mistakes import NotASetting, explained, in_one_line
from musictx.config.words import SEE, as_name, quoted, sort_words, uninterpolated
from musictx.errors import ConfigError, UserError
from musictx.setting import about, find_setting, help_text
from musictx.terminal import columns, say

QUOTES = "'", '"'
_COMPOSING = RLock()  # Hydra composes for one thread at a time: its stores are one for the whole process


def conf_dir() -> Path:
    """The Hydra groups: inside an installed package, beside it in a checkout."""
    inside = Path(__file__).parents[1] / "conf"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "conf"


def run(command: Command) -> None:
    """Runs a command on the words of the command line. Hydra itself takes flags, as -m for many jobs, and its words."""
    OWN.setdefault(command.name, command)  # a file may call its command itself
    begun = False

    def job(config: Any) -> object:
        nonlocal begun
        begun = True
        with in_one_line(command.name):  # here already: Hydra adds its own line to an error that it sees
            refuse_no_input(command, config)
            return command.run(own_place(typed(config, command.schema)))

    with in_one_line(command.name):
        register(command)
        words, flags = sort_words(command, sys.argv[1:])
        if {"-h", "--help"} & {*flags}:
            say(helped(command, words))
            return
        refuse_no_path(command, words)
        if not flags and not any(word.lstrip("+~").startswith("hydra") for word in words):
            config = compose(command.name, words, with_hydra=True)
            HydraConfig.instance().set_config(config)
            with open_dict(config):
                del config["hydra"]
            job(config)
            return
        many = bool({"-m", "--multirun"} & {*flags})
        quoted_words = [as_text(command, word, many) for word in words]
        sys.argv[1:] = [*quoted_words, *flags]  # Hydra reads its flags only in one place
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing and exiting
        try:
            hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=command.name)(job)()
        except UNREAD as error:
            raise error if begun else unread(error) from None


def refuse_no_input(command: Command, config: DictConfig) -> None:
    """Raises ConfigError where the main input is required and was not given: a person may type it as a word."""
    if command.main and (word := _usage(command, config))[0] != "[":
        called = about(command.schema).partition(":")[0]
        hint = f"add it as a word, {called} {word}; {SEE}"
        raise ConfigError(command.main, why="it is required and was not given", hint=hint)


def own_place(config: Any) -> Any:
    """The settings of a job; each of many has its own place to write: `out-0`, `out-1` …."""
    settings = HydraConfig.get()
    if settings.mode == RunMode.MULTIRUN and getattr(config, "out", None):
        out = Path(config.out)
        suffix = out.suffix if out.suffix[1:].isalpha() else ""
        return dataclasses.replace(config, out=f"{str(out).removesuffix(suffix)}-{settings.job.num}{suffix}")
    return config


def settings(command: str, /, *words: str, **values: Any) -> Any:
    """The settings of a command, from Python: `settings("train", "experiment=demo", "model.d_model=96", out="mine")`
    equals `musictx train experiment=demo model.d_model=96 out=mine`. The value of a group is a dict, as in
    `model={"d_model": 96}`, or the name of a preset. Raises ConfigError for what the command refuses."""
    values = {key: plain(value) for key, value in values.items()}
    refuse_no_path(
        find(command), [*words, *(f"{key}={value}" for key, value in values.items() if isinstance(value, str))]
    )
    presets = {key: value for key, value in values.items() if isinstance(value, str) and _is_group(key)}
    try:
        config = compose(command, [*words, *(f"{key}={value}" for key, value in presets.items())])
        for key in values.keys() - presets.keys():
            OmegaConf.update(config, key, values[key])  # raises for unknown names and wrong types
        return typed(config, find(command).schema)
    except (HydraException, OmegaConfBaseException) as error:
        raise explained(error) from None
    except ArithmeticError as error:  # a whole number that no float can be
        raise unread(error) from None


def plain(value: Any) -> Any:
    """A value as settings have it: numbers of numpy become Python's, paths become text."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        return value.item()
    if isinstance(value, Path) or (isinstance(value, str) and "${" in value and os.path.exists(value)):
        return uninterpolated(str(value))
    return value


def refuse_no_path(command: Command, words: Sequence[str]) -> None:
    """Raises ConfigError for a path without a name, which would mean the current folder."""
    for word in words:
        key, equals, value = word.partition("=")
        key = key.lstrip("+")
        if equals and not value.strip().strip("'\"").strip() and _is(command, key, "path"):
            raise ConfigError(key, got="", allowed="a path, or leave it out")


UNREAD = TypeError, ValueError, ArithmeticError, RecursionError  # of Hydra, as on model=null


def unread(error: Exception) -> Exception:
    """What a person reads of settings that Hydra cannot compose; errors with words of their place stay."""
    if isinstance(error, HydraException | OmegaConfBaseException):
        return error
    if "Config group override must be" in str(error):
        return UserError("a group of settings needs a preset's name, as in model=small or trainer=cpu", SEE)
    return UserError(f"Hydra cannot read these settings ({' '.join(str(error).split())})", SEE)


def compose(name: str, words: Sequence[str], with_hydra: bool = False) -> DictConfig:
    """The config that Hydra composes from a command's words, if asked with its own; works inside another Hydra program
    too."""
    with _COMPOSING:
        register(command := find(name))
        outer = GlobalHydra.instance().hydra
        GlobalHydra.instance().clear()
        try:
            with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
                return hydra.compose(name, [as_text(command, word) for word in words], with_hydra)
        except UNREAD as error:
            raise unread(error) from None
        finally:
            GlobalHydra.instance().hydra = outer


def _is_group(key: str) -> bool:
    return key in PRESETS or (conf_dir() / key).is_dir()


def helped(command: Command, words: Sequence[str]) -> str:
    """The text of a command's `--help`, with the values that these words give."""
    config = compose(command.name, words)
    values: Any = OmegaConf.to_container(config)
    groups = {key: kind for key in values if dataclasses.is_dataclass(kind := OmegaConf.get_type(config, key))}
    presets = {group: options(group) for group in command.groups}
    return help_text(command.schema, groups, values, presets, columns(120), _usage(command, config))


def _usage(command: Command, config: DictConfig) -> str:
    """The main input as the line of usage has it."""
    if not command.main:
        return ""
    word = command.main.upper() + (" …" if command.takes_several else "")
    group, _, name = command.main.rpartition(".")
    is_required = OmegaConf.is_missing(OmegaConf.select(config, group) if group else config, name)
    return word if is_required else f"[{word}]"


def options(group: str) -> list[str]:
    """The presets of a group."""
    return sorted({*PRESETS.get(group, ()), *(file.stem for file in (conf_dir() / group).glob("*.yaml"))})


def as_text(command: Command, word: str, many: bool = False) -> str:
    """A `key=value` word as Hydra reads it. A setting of text takes its value as it was typed: Hydra's grammar knows no
    `#`, no letters beyond ASCII, and brackets as lists. With `many` jobs, commas without a space separate them."""
    key, equals, value = word.partition("=")
    kinds = _kinds(command, key.lstrip("+"))
    if not equals or str not in kinds:
        return word
    if value.startswith("~/"):  # the shell expands this only at the beginning of a word
        value = os.path.expanduser(value)
    if ("${" in value or value != value.strip()) and os.path.exists(value):
        return f"{key}={as_name(value)}"
    try:
        read = OverridesParser.create().parse_override(f"{key}={value}")
    except HydraException:
        read = None
    if read is not None and not read.is_sweep_override() and type(read.value()) in kinds | {type(None)}:
        return f"{key}={value}"
    is_one = (
        _is(command, key.lstrip("+"), "commas") or (", " in value and value[:1] not in QUOTES) or os.path.exists(value)
    )
    sweeps = many and not is_one
    if read is not None and read.is_sweep_override() and sweeps:
        return f"{key}={value}"
    parts = value.split(",") if read is None and sweeps and value[:1] not in QUOTES else [value]
    return f"{key}={','.join(map(quoted, parts))}"


def _kinds(command: Command, key: str) -> frozenset[Any]:
    """The types that a setting may have; none for a key that is none."""
    found = find_setting(command.schema, key)
    if found is None:
        return frozenset()
    return frozenset(get_args(found[0]) if get_origin(found[0]) in (UnionType, Union) else (found[0],))


def _is(command: Command, key: str, what: str) -> bool:
    found = find_setting(command.schema, key)
    return found is not None and bool(found[1].metadata.get(what))


def typed(config: DictConfig, schema: type) -> Any:
    """The config as an instance of its schema. Raises ConfigError for unknown keys that `+key=value` added, and for
    integers of more than 64 bits."""
    _refuse_unknown(config, schema, "")
    return OmegaConf.to_object(config)


def _refuse_unknown(node: DictConfig, schema: Any, path: str) -> None:
    fields = [field.name for field in dataclasses.fields(schema)]
    for key in node:
        if key not in fields:
            raise NotASetting(f"{path}{key!s}", fields)
    values: Any = OmegaConf.to_container(node)
    for key in fields:
        kind = OmegaConf.get_type(node, key)  # the schema that the group's preset chose, if any
        if OmegaConf.is_interpolation(node, key) and (kind in (list, dict) or dataclasses.is_dataclass(kind)):
            raise ConfigError(
                f"{path}{key}", got="${…}", why="it is not compared with its type", hint="write its values"
            )
        if kind is list and any(isinstance(each, list | dict) for each in values[key] or []):
            raise ConfigError(f"{path}{key}", why="a list within this list", allowed="single values")
        within = values[key] if isinstance(values[key], dict) else {"": values[key]}
        for each in chain(*(value if isinstance(value, list) else [value] for value in within.values())):
            if isinstance(each, int) and not -(2**63) <= each < 2**63:
                raise ConfigError(f"{path}{key}", why="this number is too large", hint=SEE)
        if dataclasses.is_dataclass(kind):
            _refuse_unknown(node[key], kind, f"{path}{key}.")
