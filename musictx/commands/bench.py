"""musictx bench WHAT: measure time and memory of tokens, prepare, attention, positions, sampling or training."""

from importlib import import_module

from musictx.config.command import Command
from musictx.errors import UserError

WHAT = ("tokens", "prepare", "attention", "positions", "sampling", "training")


def command(what: str) -> Command:
    """`musictx bench WHAT`. Raises UserError."""
    if what not in WHAT:
        raise UserError(f"bench {what}", f"give one of {', '.join(WHAT)}; musictx bench WHAT --help explains each")
    found: Command = import_module(f"musictx.bench.{what}").COMMAND
    return found


def overview() -> str:
    """How it is called."""
    return f"usage: musictx bench WHAT KEY=VALUE …      WHAT is one of {', '.join(WHAT)}"
