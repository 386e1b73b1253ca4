"""Turns a function of a typed config into a Hydra command; a person's mistake is one line, exit status 2."""

import builtins
import dataclasses
import errno
import os
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import hydra
import numpy as np
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException, ValidationError

from musictx.config import PRESETS, register
from musictx.config.command import OWN, Command, find
from musictx.config.fields import keys_of
from musictx.errors import ConfigError, UserError
from musictx.files import MOST, printable
from musictx.setting import help_text

SETTING = re.compile(r"\+{0,2}[\w.]+=")
PATHS = (
    "path|midi|infill|melody|between|bundle|out|store|downloads|soundfont|input|output|record|init_from|resume|folder"
)
PATH_KEY = re.compile(rf"\+{{0,2}}([\w.]*[_.])?({PATHS})")
PRESET = "a preset's name, as in model=small or trainer=cpu"  # which --help lists
SEE = "see --help"
TOO_LARGE = "this number is too large"
KINDS = {  # by what OmegaConf says
    "converted to Integer": "a whole number",
    "converted to Float": "a number",
    "is not a valid bool": "true or false",
    "to string": "one word, or quoted text",
    "is not Optional": "a value",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def conf_dir() -> Path:
    """The Hydra groups: inside an installed package, beside it in a checkout."""
    inside = Path(__file__).parents[1] / "conf"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "conf"


def main_of(command: Command) -> None:
    """Runs a command on the words of the command line: Hydra composes its settings, and a sweep's jobs."""
    name = command.name
    OWN.setdefault(name, command)  # a file may call its command itself
    register(command)

    @hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=name)
    def run(config: DictConfig) -> object:
        # in_one_line here already: Hydra adds its own line to an error that it sees
        return in_one_line(lambda: command.run(own_place(typed(config, command.schema), name)), name)

    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        in_one_line(lambda: print(helped(command, [word for word in words if not word.startswith("-")])))
        return
    in_one_line(lambda: refuse_words(words), name)
    sys.argv[1:] = [quote_path(word) for word in words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing and exiting
    in_one_line(run, name)


def own_place(config: Any, name: str) -> Any:
    """The config of a job among many (`-m`), with a separate place to write: `out-0`, `out-1` …. A training does this
    itself."""
    hydra_config = HydraConfig.get()
    if hydra_config.mode != RunMode.MULTIRUN or name == "train" or not getattr(config, "out", None):
        return config
    out = Path(config.out)
    suffix = out.suffix if out.suffix[1:].isalpha() else ""
    return dataclasses.replace(config, out=f"{str(out).removesuffix(suffix)}-{hydra_config.job.num}{suffix}")


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
        raise _no_name(error) or error from None


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
    """Quotes the path in a `key=value` word where Hydra's grammar would misread it: it takes commas for sweeps,
    brackets for lists or calls, and letters beyond ASCII for mistakes."""
    key, equals, value = word.partition("=")
    if not equals or not PATH_KEY.fullmatch(key):
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


def parse_options(parser: ArgumentParser, words: Sequence[str]) -> tuple[Namespace, list[str]]:
    """Splits a script's own options from the settings (`key=value`), in any order: argparse would take settings
    after `--models a b` for models."""
    options = parser.parse_args([word for word in words if not SETTING.match(word)])
    return options, [word for word in words if SETTING.match(word)]


def typed(config: DictConfig, schema: type) -> Any:
    """The config as an instance of its schema. Raises ConfigError for unknown keys that `+key=value` added."""
    _refuse_unknown(config, schema, "")
    return OmegaConf.to_object(config)


def _refuse_unknown(node: DictConfig, schema: Any, path: str) -> None:
    fields = [field.name for field in dataclasses.fields(schema)]
    for key in node:
        if key not in fields:
            raise _not_a_setting(f"{path}{key!s}", fields)
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


def in_one_line(command: Callable[[], object], name: str = "train") -> object:
    """Runs a command; a person's mistake becomes one line on stderr and exit status 2, Ctrl-C status 130. The line has
    the keys of the command called `name`; scripts take those of `train`."""
    try:
        with plain_prints():
            return command()
    except (UserError, HydraException, OmegaConfBaseException, OSError) as error:
        mistake = error if isinstance(error, UserError) else explained(error)
        print(f"error: {printable(mistake.line(keys_of(name)))[:MOST]}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except ValueError as error:
        if (no_name := _no_name(error)) is None:
            raise
        print(f"error: {no_name}", file=sys.stderr)
        sys.exit(2)


@contextmanager
def plain_prints() -> Iterator[None]:
    """Within it, nothing that is printed steers the terminal: names of files and of tracks come from strangers."""
    before = builtins.print
    builtins.print = lambda *values, **how: before(*(printable(str(each), lines=True) for each in values), **how)
    try:
        yield
    finally:
        builtins.print = before


def _no_name(error: ValueError) -> UserError | None:
    """The error for Hydra's own on `model=null` or `sampler=3`; None for any other error."""
    if "Config group override must be" not in str(error):
        return None
    return UserError(f"a group of settings needs {PRESET}", SEE)


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
    if plugin := re.search(r"Could not find '(hydra/(?:launcher|sweeper)/\w+)'", text):
        return UserError(
            f"{plugin[1]} is not installed", "pip install 'musictx[sweeps]' brings joblib, submitit, optuna"
        )
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
    return _not_a_setting(str(error.full_key or key), allowed)


def _not_a_setting(where: str, allowed: list[str]) -> ConfigError:
    place, _, key = where.rpartition(".")
    close = get_close_matches(key, allowed, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return ConfigError(where, why=f"it is not a setting: {hint}{place or 'this command'} has {', '.join(allowed)}")
