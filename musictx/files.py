"""Files written whole or not at all; printable text of strangers."""

import json
import os
import re
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
    """Text for terminals and JSON: control characters and invalid UTF-8 become \\xNN; `lines` keeps breaks and tabs."""
    valid = text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    extra = JOINERS + ("\n\t" if lines else "")
    return "".join(c if c.isprintable() or c in extra or category(c) == "Zs" else ascii(c)[1:-1] for c in valid)


def all_printable(value: Any) -> Any:
    """A JSON value whose texts are printable lines of at most `MOST` letters."""
    if isinstance(value, str):
        return printable(value[:MOST])[:MOST]
    if isinstance(value, list | tuple):
        return [all_printable(each) for each in value]
    if isinstance(value, dict):
        return {all_printable(key): all_printable(each) for key, each in value.items()}
    return value


def fits(value: Any, kind: Any) -> bool:
    """Whether a JSON value has the type of a field."""
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


def real_path(path: Path) -> Path:
    """The path without links. Raises ConfigError for a link to itself."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise ConfigError("out", got=path, why="it is a link to itself", allowed="another place")
    return target


def check_suffix(field: str, name: str | Path, suffixes: Sequence[str]) -> None:
    """Raises ConfigError for a name with another suffix."""
    if Path(name).suffix.lower() not in suffixes:
        raise ConfigError(field, got=name, allowed=f"a name that ends in {' or '.join(suffixes)}")


NAME_OF_FILE = re.compile(
    r"(?i)\.(midi?|smf|kar|rmi|musicxml|mxl|xml|krn|mei|abc|png|svg|pdf|jpg|gif|mp[34]|wav|flac|ogg"
    r"|json|html|md|txt|csv|yaml|safetensors|onnx|ckpt|zip|gz)"
)
LETTERS = re.compile(r"\.[A-Za-z]\w{0,3}")


def check_folder(field: str, name: str | Path, instead: Sequence[str] = ()) -> None:
    """Raises ConfigError for a folder's name that looks like a file's; `instead` are suffixes that may end it, and
    beside these any short suffix looks so."""
    path = Path(name)
    is_file = NAME_OF_FILE.fullmatch(path.suffix) or (instead and LETTERS.fullmatch(path.suffix))
    if is_file and not os.path.lexists(path):  # one that is there, another line refuses
        allowed = "a folder" + f", or a name that ends in one of {', '.join(instead)}" * bool(instead)
        raise ConfigError(field, got=name, why="this is where a folder is made", allowed=allowed)


def check_new(overwrite: bool, *paths: Path, field: str = "out") -> None:
    """Raises UserError for a file that exists, unless `overwrite`, and for a place where none can be written."""
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
        if path.suffix and os.path.isdir(path):  # a name without a suffix is a folder of ours
            raise ConfigError(field, got=path, why="it is a folder", allowed="the name of a file")
        if os.path.lexists(path) and not overwrite:
            kind = "" if os.path.exists(path) else ", a link to nothing"
            raise UserError(f"{path} exists already{kind}", f"{another} or overwrite=true")


_ONLY_NEW = ContextVar("_ONLY_NEW", default=False)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it if the block succeeds. Raises UserError within `only_new` for a new
    file there."""
    partial = path.with_name(f".{path.stem}.{get_native_id()}.partial{path.suffix}")
    try:
        yield partial
        if _ONLY_NEW.get():
            _take(path)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, facts: Any) -> None:
    """Writes facts as JSON, and makes the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")  # JSON has these escapes too


def only_new(task: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A command's task, whose files replace others only with its `overwrite`."""

    @wraps(task)
    def run(config: Any) -> Any:
        before = _ONLY_NEW.set(not config.overwrite)
        try:
            return task(config)
        finally:
            _ONLY_NEW.reset(before)

    return run


def _take(path: Path) -> None:
    """Makes an empty file. Raises UserError where it exists."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        what = f"{path} was written by another program meanwhile, and stays as it is"
        raise UserError(what, "give another out=, or overwrite=true") from None


def stem_of(path: Path) -> str:
    """A file's name without its suffix: tune for tune.mid and for tune.mid.gz."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem
