"""The `musictx` command: a screenful of help, and one Hydra app per command. A command is a file of `commands/`."""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = Path(__file__).parent / "commands"
FIRST = [
    *("prepare", "train", "runs", "generate", "accompany", "jam", "evaluate", "compare", "inspect", "verify"),
    *("attend", "render", "listen", "serve", "check", "demo"),
]

HELP = """\
musictx: language models of symbolic music. MIDI -> tokens -> relative Transformer -> continued MIDI

usage: musictx COMMAND [KEY=VALUE ...]      musictx COMMAND --help      shows every setting      musictx --version

{commands}

examples
  musictx prepare folder path=my_midi_files out=my_store
  musictx train experiment=chorales trainer.max_epochs=5 model.d_model=128
  musictx generate seed_midi=elise out=continued                       the piano model inside musictx, and a seed
  musictx generate bundle=outputs/demo/model.safetensors seed_midi=my.mid out=continued variations=3
  musictx accompany melody=my_tune.mid out=harmonised variations=3 png=true
  musictx inspect midi=my.mid       musictx inspect store=my_store json=true   musictx verify store=my_store
"""


def main() -> None:
    """Passes the words after the command to its Hydra app."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    run = _command(sys.argv[1:])
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    run()


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process at once: libraries that are just being imported make a traceback of Ctrl-C."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def names() -> list[str]:
    """Every command: the file names of `commands/`, in the order in which people meet them."""
    there = {file.stem for file in FOLDER.glob("*.py")} - {"__init__"}
    known = [name for name in FIRST if name in there]
    return known + sorted(there - {*known})


def rows() -> str:
    """A line for each command: the first line of its file, which is `musictx NAME WHAT: what it does.`"""
    lines = []
    for name in names():
        with open(FOLDER / f"{name}.py", encoding="utf-8") as file:
            usage, _, about = file.readline().strip('"\n. ').partition(": ")
        lines.append(f"  {usage.removeprefix('musictx '):<14} {about}")
    return "\n".join(lines)


def _command(args: list[str]) -> Any:
    """What the words ask for, imported."""
    if not args or args[0] in ("-h", "--help", "help"):
        return lambda: print(HELP.format(commands=rows()), end="")
    if args[0] == "--version":
        version = import_module("musictx").__version__
        return lambda: print(f"musictx {version}")
    name, *words = args
    if name in names():
        module = import_module(f"musictx.commands.{name}")
        if hasattr(module, "COMMAND"):
            sys.argv = [f"musictx {name}", *words]
            return getattr(module, "main", module.COMMAND)
        return lambda: _in_one_line(lambda: _second(module, name, words))
    if name.endswith(".py"):
        return lambda: _in_one_line(lambda: _from_file(name, words))
    return lambda: _in_one_line(lambda: _unknown(name))


def _in_one_line(task: Any) -> None:
    import_module("musictx.config.app").in_one_line(task)


def _second(module: Any, name: str, words: list[str]) -> None:
    """A command of two words: `prepare folder`."""
    what, *rest = words or ["--help"]
    if what in ("-h", "--help"):
        print(module.overview())
        return
    run = module.command(what)
    sys.argv = [f"musictx {name} {what}", *rest]
    run()


def _from_file(path: str, words: list[str]) -> None:
    """A person's own command: the COMMAND of a Python file."""
    from musictx.config.command import load

    run = load(path)
    sys.argv = [f"musictx {path}", *words]
    run()


def _unknown(word: str) -> None:
    from musictx.errors import UserError  # imports here take place while Ctrl-C ends the process

    raise UserError(f"{word!r} is not a command", f"choose one of {', '.join(names())}; musictx --help explains")


if __name__ == "__main__":
    main()
