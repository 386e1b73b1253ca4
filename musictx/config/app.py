"""Settings of a command, from typed words or from Python: Hydra composes, OmegaConf checks."""

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
from musictx.config.mistakes import NotASetting, in_one_line, to_user_error
from musictx.config.words import SEE, as_name, escape, quote, sort_words
from musictx.errors import ConfigError, UserError
from musictx.files import check_folder
from musictx.setting import about, find_setting, help_text
from musictx.terminal import columns, say

QUOTES = "'", '"'
_COMPOSING = RLock()  # Hydra composes for one thread at a time: its stores are one for the whole process


def conf_dir() -> Path:
    """The folder of Hydra's groups, inside an installed package or beside it in a checkout."""
    inside = Path(__file__).parents[1] / "conf"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "conf"


def run(command: Command) -> None:
    """Runs a command on the words of the command line; Hydra itself takes its flags, as -m, and words."""
    OWN.setdefault(command.name, command)  # a file may call its command itself
    begun = False

    def job(config: Any) -> object:
        nonlocal begun
        begun = True
        with in_one_line(command.name):  # here already: Hydra adds its own line to an error that it sees
            check_input(command, config)
            return command.run(with_job_number(to_schema(config, command.schema)))

    with in_one_line(command.name):
        register(command)
        words, flags = sort_words(command, sys.argv[1:])
        if {"-h", "--help"} & {*flags}:
            say(command_help(command, words))
            return
        check_paths(command, words)
        if not flags and not any(word.lstrip("+~").startswith("hydra") for word in words):
            config = compose(command.name, words, with_hydra=True)
            HydraConfig.instance().set_config(config)
            with open_dict(config):
                del config["hydra"]
            job(config)
            return
        many = bool({"-m", "--multirun"} & {*flags})
        hydra_words = [as_text(command, word, many) for word in words]
        sys.argv[1:] = [*hydra_words, *flags]  # Hydra reads its flags only in one place
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing and exiting
        try:
            hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=command.name)(job)()
        except HYDRA_ERRORS as error:
            raise error if begun else hydra_error(error) from None


def check_input(command: Command, config: DictConfig) -> None:
    """Raises ConfigError for a missing main input."""
    if command.main and (word := _usage(command, config))[0] != "[":
        usage = about(command.schema).partition(":")[0]
        hint = f"add it as a word, {usage} {word}; {SEE}"
        raise ConfigError(command.main, why="it is required and was not given", hint=hint)


def with_job_number(config: Any) -> Any:
    """The settings of a job; each of many gets its own `out`: out-0, out-1 …."""
    settings = HydraConfig.get()
    if settings.mode == RunMode.MULTIRUN and getattr(config, "out", None):
        out = Path(config.out)
        suffix = out.suffix if out.suffix[1:].isalpha() else ""
        return dataclasses.replace(config, out=f"{str(out).removesuffix(suffix)}-{settings.job.num}{suffix}")
    return config


def settings(command: str, /, *words: str, **values: Any) -> Any:
    """The settings of a command from Python: `settings("train", "experiment=demo", model={"d_model": 96}, out="mine")`.
    The value of a group is a dict or the name of a preset. Raises ConfigError."""
    values = {key: plain(value) for key, value in values.items()}
    check_paths(find(command), [*words, *(f"{key}={value}" for key, value in values.items() if isinstance(value, str))])
    presets = {key: value for key, value in values.items() if isinstance(value, str) and _is_group(key)}
    try:
        config = compose(command, [*words, *(f"{key}={value}" for key, value in presets.items())])
        for key in values.keys() - presets.keys():
            OmegaConf.update(config, key, values[key])  # raises for unknown names and wrong types
        return to_schema(config, find(command).schema)
    except (HydraException, OmegaConfBaseException) as error:
        raise to_user_error(error) from None
    except ArithmeticError as error:  # a whole number that no float can be
        raise hydra_error(error) from None


def plain(value: Any) -> Any:
    """A value for settings: numbers of numpy become Python's, paths become text."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        return value.item()
    if isinstance(value, Path) or (isinstance(value, str) and "${" in value and os.path.exists(value)):
        return escape(str(value))
    return value


def check_paths(command: Command, words: Sequence[str]) -> None:
    """Raises ConfigError for an empty path, which would mean the current folder, and for a folder named like a file."""
    for word in words:
        key, equals, value = word.partition("=")
        key, value = key.lstrip("+"), value.strip().strip("'\"").strip()
        if equals and not value and _has(command, key, "path"):
            raise ConfigError(key, got="", allowed="a path, or leave it out")
        if _has(command, key, "folder"):
            check_folder(key, value)


HYDRA_ERRORS = TypeError, ValueError, ArithmeticError, RecursionError  # beside its own, as on model=null


def hydra_error(error: Exception) -> Exception:
    """A UserError for a bare error of Hydra; errors of its own stay."""
    if isinstance(error, HydraException | OmegaConfBaseException):
        return error
    if "Config group override must be" in str(error):
        return UserError("a group of settings needs a preset's name, as in model=small or trainer=cpu", SEE)
    return UserError(f"Hydra cannot read these settings ({' '.join(str(error).split())})", SEE)


def compose(name: str, words: Sequence[str], with_hydra: bool = False) -> DictConfig:
    """The config of a command's words, inside another Hydra program too; `with_hydra`: with Hydra's own settings."""
    with _COMPOSING:
        register(command := find(name))
        outer = GlobalHydra.instance().hydra
        GlobalHydra.instance().clear()
        try:
            with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
                return hydra.compose(name, [as_text(command, word) for word in words], with_hydra)
        except HYDRA_ERRORS as error:
            raise hydra_error(error) from None
        finally:
            GlobalHydra.instance().hydra = outer


def _is_group(key: str) -> bool:
    return key in PRESETS or (conf_dir() / key).is_dir()


def command_help(command: Command, words: Sequence[str]) -> str:
    """The text of a command's `--help`, with the values of these words."""
    config = compose(command.name, words)
    values: Any = OmegaConf.to_container(config)
    groups = {key: kind for key in values if dataclasses.is_dataclass(kind := OmegaConf.get_type(config, key))}
    presets = {group: options(group) for group in command.groups}
    return help_text(command.schema, groups, values, presets, columns(120), _usage(command, config))


def _usage(command: Command, config: DictConfig) -> str:
    """The main input in the line of usage."""
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
    """A word key=value for Hydra: text keeps `#`, brackets and all letters; with `many` jobs, commas separate them."""
    key, equals, value = word.partition("=")
    kinds = _kinds(command, key.lstrip("+"))
    if not equals or (str not in kinds and _is_readable(word)):
        return word
    if str not in kinds:  # letters that Hydra's grammar lacks, in a list of words or for no setting of ours
        if list[str] in kinds and value[:1] + value[-1:] == "[]" and not set(QUOTES) & set(value):
            return f"{key}=[{','.join(quote(each.strip()) for each in value[1:-1].split(','))}]"
        return word if kinds else f"{key}={quote(value)}"
    if value.startswith("~/"):  # the shell expands this only at the beginning of a word
        value = os.path.expanduser(value)
    if ("${" in value or value != value.strip()) and os.path.exists(value):
        return f"{key}={as_name(value)}"
    try:
        override = OverridesParser.create().parse_override(f"{key}={value}")
    except HydraException:
        override = None
    if override is not None and not override.is_sweep_override() and type(override.value()) in kinds | {type(None)}:
        return f"{key}={value}"
    is_one = (
        _has(command, key.lstrip("+"), "commas") or (", " in value and value[:1] not in QUOTES) or os.path.exists(value)
    )
    sweeps = many and not is_one
    if override is not None and override.is_sweep_override() and sweeps:
        return f"{key}={value}"
    parts = value.split(",") if override is None and sweeps and value[:1] not in QUOTES else [value]
    return f"{key}={','.join(map(quote, parts))}"


def _is_readable(word: str) -> bool:
    try:
        OverridesParser.create().parse_override(word)
    except (HydraException, *HYDRA_ERRORS):
        return False
    return True


def _kinds(command: Command, key: str) -> frozenset[Any]:
    """The types of a setting; none for another word."""
    entry = find_setting(command.schema, key)
    if entry is None:
        return frozenset()
    return frozenset(get_args(entry[0]) if get_origin(entry[0]) in (UnionType, Union) else (entry[0],))


def _has(command: Command, key: str, option: str) -> bool:
    entry = find_setting(command.schema, key)
    return entry is not None and bool(entry[1].metadata.get(option))


def to_schema(config: DictConfig, schema: type) -> Any:
    """The config as an instance of its schema. Raises ConfigError for unknown keys, and integers beyond 64 bits."""
    _check_values(config, schema, "")
    return OmegaConf.to_object(config)


def _check_values(node: DictConfig, schema: Any, path: str) -> None:
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
            _check_values(node[key], kind, f"{path}{key}.")
