"""The `musictx` commands: settings in, a library's function, words out."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from musictx.errors import ConfigError, UserError


def check_suffix(field: str, name: str, suffixes: Sequence[str]) -> None:
    """Raises ConfigError for the name of another kind of file."""
    if Path(name).suffix.lower() not in suffixes:
        raise ConfigError(field, got=name, allowed=f"a name that ends in {' or '.join(suffixes)}")


def check_new(overwrite: bool, *paths: Path) -> None:
    """Raises UserError for a file that exists already."""
    for path in paths:
        if path.exists() and not overwrite:
            raise UserError(f"{path} exists already", "give another out= or overwrite=true")


def check_way(field: str, given: str | None, folder: Path) -> None:
    """Raises ConfigError where a file is in the way of a folder."""
    if any(each.exists() and not each.is_dir() for each in (folder, *folder.parents)):
        raise ConfigError(field, got=given, why="a file is in its way", allowed="another place")


def shared(config: Any, request: type[Any]) -> dict[str, Any]:
    """The settings of a command that a request has too, by the same names."""
    names = {field.name for field in fields(config)} & {field.name for field in fields(request)}
    return {name: getattr(config, name) for name in names}
