"""Shared by the studies: the options of their commands, figures that are kept, and models of too few positions."""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from musictx.errors import ConfigError, UserError

T = TypeVar("T")
SETTING = re.compile(r"\+{0,2}[\w.]+=")

OPTIONS: dict[str, dict[str, Any]] = {
    "store": {"type": Path, "default": Path("outputs/stores/jsb")},
    "archive": {"type": Path, "required": True, "help": "MAESTRO v3 as it was downloaded, the MIDI zip"},
    "asap": {"type": Path, "required": True, "help": "performances that MAESTRO lacks, zip or folder"},
    "pop": {"type": Path, "required": True, "help": "POP909, zip or folder"},
    "out": {"type": Path, "help": "all that is made; default: %(default)s"},
    "bundle": {"type": Path, "help": "default: in --out"},
    "results": {"type": Path, "help": "a folder for the figures; default: --out"},
    "fraction": {"type": float, "default": 1.0, "help": "share of all steps, for a trial"},
    "split": {"default": "validation"},
    "test": {"action": "store_true", "help": "read the test split after all else"},
}


def options(doc: str | None, *names: str, **defaults: Any) -> argparse.ArgumentParser:
    """The options of a script: those of `OPTIONS` that it names, some with another default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name])
    parser.set_defaults(**defaults)
    return parser


def asked(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[str]]:
    """What a person gave: the options, and settings (key=value), in any order: argparse would take settings after
    `--models a b` for models. Raises UserError for an impossible fraction."""
    overrides = [word for word in sys.argv[1:] if SETTING.match(word)]
    args = parser.parse_args([word for word in sys.argv[1:] if word not in overrides])
    if not 0 < getattr(args, "fraction", 1.0) <= 1:
        raise UserError(f"--fraction {args.fraction}: give a share of the steps above 0, up to 1")
    return args, overrides


def kept(out: Path, read: dict[str, Any], split: str) -> dict[str, Any] | None:
    """The figures in `out`, if they are of the same as `read` says: then a split is not read again."""
    known: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    if not known.items() >= read.items():
        return None
    print(f"{out}: kept, this model has read the {split} split already")
    return known


def within_positions(ask: Callable[[], T]) -> T | None:
    """What a model answers; None where it has too few positions."""
    try:
        return ask()
    except ConfigError as error:
        if error.field != "max_positions":
            raise
        return None
