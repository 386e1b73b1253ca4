"""The `musictx` command: help, version, and one Hydra app for each file of `commands/`."""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from musictx.terminal import any_terminal, columns, fold, say

if TYPE_CHECKING:  # help needs no library
    from musictx.config.command import Command

FOLDER = Path(__file__).parent / "commands"
ORDER = [
    *("prepare", "train", "tune", "runs", "generate", "accompany", "jam", "evaluate", "compare", "inspect"),
    *(
        "similar",
        "probe",
        "classify",
        "attend",
        "render",
        "listen",
        "export",
        "serve",
        "lesson",
        "check",
        "mirex",
        "demo",
    ),
]

HELP = """\
musictx: language models of symbolic music. MIDI -> tokens -> relative Transformer -> continued MIDI
usage: musictx COMMAND [INPUT] [KEY=VALUE ...]    musictx COMMAND --help    shows every setting    musictx --version

{commands}

examples
  musictx train experiment=chorales trainer.max_epochs=5 model.d_model=128
  musictx generate elise out=continued                       the piano model inside musictx, and a seed
  musictx accompany my_tune.mid out=harmonised variations=3 png=true
"""


def main() -> None:
    with any_terminal():
        _main()


def _main() -> None:
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    try:
        task = _task(sys.argv[1:])
    finally:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
    task()


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process at once: in an import, Ctrl-C would give a traceback."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def names() -> list[str]:
    """All commands, those of `ORDER` first."""
    files = {file.stem for file in FOLDER.glob("*.py") if "_" not in file.stem}  # generate_settings is none
    first = [name for name in ORDER if name in files]
    return first + sorted(files - {*first})


def rows() -> str:
    """A line for each command, the first of its file: `musictx NAME WORDS: sentence.`"""
    lines = []
    for name in names():
        with open(FOLDER / f"{name}.py", encoding="utf-8") as file:
            usage, _, about = file.readline().strip('"\n. ').partition(": ")
        lines.append(f"  {usage.removeprefix('musictx '):<14} {about}")
    return "\n".join(lines)


def _task(words: list[str]) -> Callable[[], None]:
    if not words or words[0] in ("-h", "--help", "help"):
        return lambda: _print_page(HELP.format(commands=rows()))
    if words[0] == "--version":
        version = import_module("musictx").__version__
        return lambda: _print_page(f"musictx {version}")
    name, *rest = words
    module: Any = import_module(f"musictx.commands.{name}") if name in names() else None
    if hasattr(module, "overview") and (not rest or rest[0] in ("-h", "--help")):
        return lambda: _print_page(module.overview())
    run = import_module("musictx.config.app").run
    return lambda: run(_command(name, module, rest))


def _print_page(text: str) -> None:
    try:
        with any_terminal():
            say(fold(text, columns(120)))
    except OSError as error:  # commands say theirs (`config/mistakes.py`)
        say(f"error: stdout cannot be written ({error.strerror})", file=sys.stderr)
        sys.exit(2)


def _command(name: str, module: Any, rest: list[str]) -> "Command":
    """A command of `commands/`, also `prepare folder`, or of a person's file."""
    from musictx.config.command import load
    from musictx.config.mistakes import in_one_line
    from musictx.errors import UserError

    n = 1 if hasattr(module, "overview") else 0  # words that name it, after the first
    sys.argv = [" ".join(["musictx", name, *rest[:n]]), *rest[n:]]
    command: Command
    with in_one_line():
        if module is not None:
            command = module.command(rest[0]) if n else module.COMMAND
        elif name.endswith(".py"):
            command = load(name)
        else:
            raise UserError(
                f"{name!r} is not a command", f"choose one of {', '.join(names())}; musictx --help explains"
            )
    return command


if __name__ == "__main__":
    main()
