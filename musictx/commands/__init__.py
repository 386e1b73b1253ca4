"""The `musictx` commands: settings in, a library's function, words out."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from io import StringIO
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musictx.errors import ConfigError, UserError, counted
from musictx.files import printable
from musictx.terminal import encodable, say

if TYPE_CHECKING:
    from musictx.generate.control import Control
    from musictx.generate.open_bundle import Opened
    from musictx.generate.result import Music
    from musictx.generate.seed_files import Targets


def check_within(config: Any, name: str, least: float, most: float = inf) -> None:
    """Raises ConfigError for a number beyond these bounds."""
    value = getattr(config, name)
    if value is not None and not (least <= value <= most and value < inf):  # refuses NaN too
        raise ConfigError(name, got=value, allowed=f"{least:g} {'or more' if most == inf else f'to {most}'}")


def check_way(field: str, value: str | None, folder: Path) -> None:
    """Raises ConfigError where a file is in the way of a folder."""
    if any(os.path.lexists(each) and not os.path.isdir(each) for each in (folder, *folder.parents)):
        raise ConfigError(field, got=value, why="a file is in its way", allowed="another place")


def open_and_print(bundle: str, device: str = "cpu", attention: str = "auto", continues: bool = True) -> "Opened":
    """A bundle by name or path as a model of PyTorch; prints its corpus and licence."""
    from musictx.generate.open_bundle import open_bundle  # PyTorch: a second for those who need it
    from musictx.model.packaged import bundle_path

    opened = open_bundle(bundle_path(bundle), device, attention, continues)
    say(f"{bundle}: {opened.header.origin}")
    return opened


def read_chords(control: "Control") -> "Control":
    """The controls with the chords of their MIDI file, which it prints. Raises the errors of `Control.read`."""
    whole = control.read()
    if control.chord_file is not None:
        say(f"{control.chord_file}: its chords are {whole.chords}")
    return whole


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: int = 0) -> None:
    """Prints rows below their headings, with `right` columns of numbers at the end; on a narrow terminal a line a
    cell."""
    from rich.console import Console  # commands without a table need not wait for it
    from rich.table import Table

    names, *cells = [[encodable(printable(str(cell))) for cell in row] for row in (headings, *rows)]
    table = Table(box=None, pad_edge=False)
    for k, name in enumerate(names):
        table.add_column(name, justify="left" if k < len(names) - right else "right")
    for row in cells:
        table.add_row(*row)
    output, at_terminal = StringIO(), sys.stdout.isatty()  # where a reader has left, rich ends the program its own way
    styled = at_terminal and not Console().legacy_windows  # such a console shows escape codes as letters
    console = Console(file=output, force_terminal=styled, highlight=False, markup=False, width=1000)
    if at_terminal and console.measure(table).maximum > shutil.get_terminal_size().columns:
        say("\n\n".join("\n".join(map(": ".join, zip(names, row, strict=True))) for row in cells))
    else:
        console.print(table)
        sys.stdout.write(output.getvalue())


def write_beside(pieces: "Sequence[Music]", files: "Targets", what: str) -> list[UserError]:
    """Writes the sound and score of each piece, and a picture of all, as `files` names them; the reasons of scores that
    cannot be written."""
    errors = list[UserError]()
    for path, music in zip(files.wav, pieces, strict=False):
        music.write(path)
    for path, music in zip(files.musicxml, pieces, strict=False):
        try:
            lacks = music.write(path)
            say(f"{path}: its score" + f"; {lacks}" * bool(lacks))
        except UserError as error:
            errors.append(error)
    if files.png and pieces:
        from musictx.viz.piano_roll import piano_roll  # takes 0.4 s, so only those who draw wait for it

        panels, longest = [(m.title, m.score, m.new) for m in pieces], max(pieces, key=lambda m: m.score.duration_s)
        piano_roll(panels, files.png, bars=longest.bars, chords=[m.chords for m in pieces])
        say(f"{files.png}: {what}")
    return errors


def check_written(errors: list[UserError]) -> None:
    """Raises UserError for scores that cannot be written."""
    if errors:
        others = f"; and {counted(len(errors) - 1, 'other')}" if len(errors) > 1 else ""
        raise UserError(f"not written: {errors[0].what}{others}", errors[0].hint)
