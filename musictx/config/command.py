"""A command as a record: its function, settings, first presets and main input."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from musictx.errors import UserError
from musictx.setting import find_setting


class Command(NamedTuple):
    """A command of `musictx/commands/NAME.py`, or of a person's own file."""

    name: str  # as Hydra composes it: generate, prepare_folder
    run: Callable[[Any], object]  # a sweep minimises what it returns
    schema: type[Any]  # a dataclass of its settings, each with `setting(default, meaning)`
    groups: Mapping[str, str | None] = {}  # a group of conf/ or of `PRESETS`, and the preset that it begins with
    main: str = ""  # the setting that a word without = is for, as the file of `musictx generate my.mid`

    @property
    def takes_several(self) -> bool:
        """Whether its main input may be several words."""
        entry = find_setting(self.schema, self.main)
        return entry is not None and get_origin(entry[0]) is list

    def __call__(self) -> None:
        import_module("musictx.config.app").run(self)


OWN: dict[str, Command] = {}  # those of a person's own files


def load(path: str) -> Command:
    """The COMMAND of a person's file. Raises UserError."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file", "give a command, or a Python file with one")
    folder, name = str(Path(path).resolve().parent), Path(path).stem
    if folder not in sys.path:  # for its neighbours and its processes; last, so that it hides no package
        sys.path.append(folder)
    spec = find_spec(name) if name.isidentifier() and name not in sys.modules else None
    if spec is None or spec.origin != str(Path(path).resolve()):  # another module has this name
        spec = spec_from_file_location(f"own_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # there, OmegaConf finds what its annotations mean
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a person's own file may raise anything
        raise UserError(f"{path} cannot be imported ({type(error).__name__}: {error})") from None
    command = getattr(module, "COMMAND", None)
    if not isinstance(command, Command):
        raise UserError(f"{path} has no COMMAND", "docs/extend/command.md shows one")
    if not command.name.isidentifier() or find_spec(f"musictx.commands.{command.name}") is not None:
        raise UserError(f"{path}: its command cannot have the name {command.name!r}", "give a new word")
    if not is_dataclass(command.schema):
        raise UserError(f"{path}: {command.schema} is no dataclass", "docs/extend/command.md shows one")
    if command.main and find_setting(command.schema, command.main) is None:
        raise UserError(f"{path}: main={command.main!r} is not one of its settings", "give the name of one")
    OWN[command.name] = command
    return command


def find(name: str) -> Command:
    """The command that Hydra composes as `name`. Raises UserError."""
    if name in OWN:
        return OWN[name]
    first, _, rest = name.partition("_")
    module: Any = None
    if first.isidentifier() and find_spec(f"musictx.commands.{first}") is not None:
        module = import_module(f"musictx.commands.{first}")
    if rest and hasattr(module, "command"):  # one for each corpus
        of_corpus: Command = module.command(rest)
        return of_corpus
    if rest or not hasattr(module, "COMMAND"):
        raise UserError(f"{name} is not a command", "musictx --help lists them")
    command: Command = module.COMMAND
    return command
