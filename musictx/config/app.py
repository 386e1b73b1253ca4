"""Settings of a command, from words as a person types them or from Python: Hydra composes, OmegaConf checks."""

import dataclasses
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
import numpy as np
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from musictx.config import PRESETS, register
from musictx.config.command import OWN, Command, find
from musictx.config.mistakes import PRESET, SEE, NotASetting, explained, in_one_line, no_name
from musictx.config.sweep import check_cluster, own_place
from musictx.errors import ConfigError
from musictx.setting import help_text

PATHS = (
    "path|midi|infill|melody|between|bundle|out|store|downloads|soundfont|input|output|record|init_from|resume|folder"
)
PATH_KEY = re.compile(rf"\+{{0,2}}([\w.]*[_.])?({PATHS})")
TEXT_KEY = re.compile(rf"{PATH_KEY.pattern}|control\.(key|chords|density|polyphony|register|loudness)")
TOO_LARGE = "this number is too large"


def conf_dir() -> Path:
    """The Hydra groups: inside an installed package, beside it in a checkout."""
    inside = Path(__file__).parents[1] / "conf"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "conf"


def run(command: Command) -> None:
    """Runs a command on the words of the command line: Hydra composes its settings, and a sweep's jobs."""
    OWN.setdefault(command.name, command)  # a file may call its command itself

    @hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=command.name)
    def job(config: Any) -> object:
        with in_one_line(command.name):  # here already: Hydra adds its own line to an error that it sees
            return command.run(own_place(typed(config, command.schema), command.name))

    words = sys.argv[1:]
    with in_one_line(command.name):
        register(command)
        if {"-h", "--help"} & {*words}:
            print(helped(command, [word for word in words if not word.startswith("-")]))
            return
        refuse_words(words)
        check_cluster(words, command.groups)
        sys.argv[1:] = [quote_path(word) for word in words]
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing and exiting
        job()


def settings(command: str, /, *words: str, **values: Any) -> Any:
    """The settings of a command, from Python: `settings("train", "experiment=demo", "model.d_model=96", out="mine")`
    equals `musictx train experiment=demo model.d_model=96 out=mine`. The value of a group is a dict, as in
    `model={"d_model": 96}`, or the name of a preset. Raises ConfigError for what the command refuses."""
    values = {key: plain(value) for key, value in values.items()}
    refuse_words([*words, *(f"{key}={value}" for key, value in values.items() if isinstance(value, str))])
    for key, value in values.items():
        refuse_huge(key, value)
    presets = [f"{key}={value}" for key, value in values.items() if _is_preset(key, value)]
    try:
        return typed(changed(compose(command, [*words, *presets]), values), find(command).schema)
    except (HydraException, OmegaConfBaseException) as error:
        raise explained(error) from None
    except ValueError as error:
        raise no_name(error) or error from None


def plain(value: Any) -> Any:
    """A value as settings have it: numbers of numpy become Python's, paths become text."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def refuse_words(words: Sequence[str]) -> None:
    """Raises ConfigError for a path without a name, which would mean the current folder, and for values at which Hydra
    itself fails: a list of presets, a number without end."""
    parser = OverridesParser.create()
    for word in words:
        key, equals, value = word.partition("=")
        if equals and PATH_KEY.fullmatch(key) and not value.strip().strip("'\"").strip():
            raise ConfigError(key.lstrip("+"), got="", allowed="a path, or leave it out")
        try:
            override = parser.parse_override(quote_path(word))
        except RecursionError:
            raise ConfigError(key.lstrip("+"), why="too many brackets within brackets", hint=SEE) from None
        except HydraException:  # a flag, or a mistake that Hydra names when it composes
            continue
        except ValueError:  # Python reads no number of 5,000 digits
            raise ConfigError(key.lstrip("+"), why=TOO_LARGE, hint=SEE) from None
        if isinstance(override.value(), list | dict) and _is_preset(key.lstrip("+"), ""):
            raise ConfigError(key.lstrip("+"), got=override.value(), allowed=PRESET)
        refuse_huge(key, override.value())


def refuse_huge(key: str, value: Any) -> None:
    """Raises ConfigError for an integer of more than 64 bits, anywhere in a value."""
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            refuse_huge(key, each)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ConfigError(key.lstrip("+"), why=TOO_LARGE, hint=SEE)


def compose(name: str, words: Sequence[str]) -> DictConfig:
    """The config that Hydra composes from a command's words; works inside another Hydra program too."""
    register(find(name))
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return hydra.compose(name, [quote_path(word) for word in words])
    finally:
        GlobalHydra.instance().hydra = outer


def changed(config: DictConfig, values: Mapping[str, Any]) -> DictConfig:
    """The config with other values, presets skipped. OmegaConf raises for unknown names and wrong types."""
    for key, value in values.items():
        if not _is_preset(key, value):
            OmegaConf.update(config, key, value)
    return config


def _is_preset(key: str, value: Any) -> bool:
    return isinstance(value, str) and (key in PRESETS or (conf_dir() / key).is_dir())


def helped(command: Command, words: Sequence[str]) -> str:
    """The text of a command's `--help`, with the values that these words give."""
    config = compose(command.name, words)
    values: Any = OmegaConf.to_container(config)
    groups = {key: kind for key in values if dataclasses.is_dataclass(kind := OmegaConf.get_type(config, key))}
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    presets = {group: options(group) for group in command.groups}
    return help_text(command.schema, groups, values, presets, width)


def options(group: str) -> list[str]:
    """The presets of a group."""
    return sorted({*PRESETS.get(group, ()), *(file.stem for file in (conf_dir() / group).glob("*.yaml"))})


def quote_path(word: str) -> str:
    """Quotes the path, or the chords, in a `key=value` word where Hydra's grammar would misread it: it takes commas
    for sweeps, brackets for lists or calls, and letters beyond ASCII for mistakes."""
    key, equals, value = word.partition("=")
    if not equals or not TEXT_KEY.fullmatch(key):
        return word
    if value.startswith("~/"):  # the shell expands this only at the beginning of a word
        value = os.path.expanduser(value)
        word = f"{key}={value}"
    try:
        read = OverridesParser.create().parse_override(word).value()
    except HydraException:
        pass
    else:
        if read is None or isinstance(read, str):  # null, or plain or quoted text already
            return word
    escaped = re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), value)
    return f"{key}='{escaped}'"


def typed(config: DictConfig, schema: type) -> Any:
    """The config as an instance of its schema. Raises ConfigError for unknown keys that `+key=value` added."""
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
        if dataclasses.is_dataclass(kind):
            _refuse_unknown(node[key], kind, f"{path}{key}.")
