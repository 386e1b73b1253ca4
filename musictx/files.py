"""Writes a file whole or not at all. Where a person asks, only if no other has appeared under its name."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from threading import get_native_id
from typing import Any, get_args, get_origin, get_type_hints
from unicodedata import category

from musictx.errors import ConfigError, UserError

MOST = 2000  # letters of a line: a stranger's value may have any number
JOINERS = "\u200c\u200d"  # between letters, as in Persian


def printable(text: str, *, lines: bool = False) -> str:
    """Text of a stranger as any terminal and any JSON reader accepts it: control characters, and bytes that are not
    UTF-8, become \\xNN. `lines` keeps line breaks and tabs."""
    whole = text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    kept = JOINERS + ("\n\t" if lines else "")
    return "".join(c if c.isprintable() or c in kept or category(c) == "Zs" else ascii(c)[1:-1] for c in whole)


def all_printable(value: Any) -> Any:
    """Values as JSON has them, every text in them one printable line of at most `MOST` letters."""
    if isinstance(value, str):
        return printable(value[:MOST])[:MOST]
    if isinstance(value, list | tuple):
        return [all_printable(each) for each in value]
    if isinstance(value, dict):
        return {all_printable(key): all_printable(each) for key, each in value.items()}
    return value


def fits(value: Any, kind: Any) -> bool:
    """Whether a value that JSON gave is of the type that is written beside a field: `list[str]`, a dataclass …"""
    of, args = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return all(fits(getattr(value, name), each) for name, each in get_type_hints(kind).items())
    if of in (list, dict):
        inner = zip(*value.items(), strict=True) if isinstance(value, dict) else [value]
        return type(value) is of and all(fits(x, arg) for xs, arg in zip(inner, args, strict=False) for x in xs)
    if of is tuple:
        return len(value) == len(args) and all(map(fits, value, args))
    if kind in (int, float):
        return type(value) in (int, kind) and abs(value) < 2**63  # nan is not
    return kind is Any or type(value) is kind


def real(path: Path) -> Path:
    """Where a path leads. Raises ConfigError for a link to itself."""
    found = Path(os.path.realpath(path))
    if found.is_symlink():
        raise ConfigError("out", got=path, why="it is a link to itself", allowed="another place")
    return found


def check_suffix(field: str, name: str | Path, suffixes: Sequence[str]) -> None:
    """Raises ConfigError for the name of another kind of file."""
    if Path(name).suffix.lower() not in suffixes:
        raise ConfigError(field, got=name, allowed=f"a name that ends in {' or '.join(suffixes)}")


def check_new(overwrite: bool, *paths: Path, field: str = "out") -> None:
    """Called before the long work with the files that the setting `field` asks for. Raises UserError for a file or a
    link that is there already, and for a place where none can be written, whether `overwrite` or not."""
    another = f"give another {field}="
    for path in paths:
        for folder in path.parents:
            if os.path.isdir(folder):
                if not os.access(folder, os.W_OK):
                    raise UserError(f"{folder} is not a folder that can be written to", another)
                break
            if os.path.lexists(folder):
                kind = "file" if os.path.exists(folder) else "link to nothing"
                raise ConfigError(field, got=folder, why=f"a {kind} is in its way", allowed="another place")
        if path.suffix and os.path.isdir(path):  # what has no suffix is a folder of ours
            raise ConfigError(field, got=path, why="it is a folder", allowed="the name of a file")
        if os.path.lexists(path) and not overwrite:
            kind = "" if os.path.exists(path) else ", a link to nothing"
            raise UserError(f"{path} exists already{kind}", f"{another} or overwrite=true")


_ONLY_NEW = ContextVar("_ONLY_NEW", default=False)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name beside `path`; renames it to `path` if the block succeeds, else removes it. Raises
    UserError within a task of `only_new` if such a file has appeared meanwhile."""
    partial = path.with_name(f".{path.stem}.{get_native_id()}.partial{path.suffix}")
    try:
        yield partial
        if _ONLY_NEW.get():
            _take(path)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, facts: Any) -> None:
    """Facts as JSON, in a folder that is made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")  # JSON has these escapes too


def only_new(task: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The task of a command, whose files take the place of no others unless its `overwrite` is true."""

    @wraps(task)
    def run(config: Any) -> Any:
        before = _ONLY_NEW.set(not config.overwrite)
        try:
            return task(config)
        finally:
            _ONLY_NEW.reset(before)

    return run


def _take(path: Path) -> None:
    """Makes an empty file, which two processes cannot both do. Raises UserError if there is one."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        what = f"{path} was written by another program meanwhile, and stays as it is"
        raise UserError(what, "give another out=, or overwrite=true") from None


def stem_of(path: Path) -> str:
    """A file's name without its suffix: tune for tune.mid and for tune.mid.gz."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem
