"""Any terminal, of any width: lines that do not steer it, look-alikes of what it lacks, streams that may be closed."""

import codecs
import functools
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO
from unicodedata import combining, normalize

from musictx.files import printable

LOOKALIKE = "lookalike"  # the error handler of our streams
ALIKE = "×=x ÷=/ ±=+- ≤=<= ≥=>= ≠=!= ≈=~ →=-> ←=<- ♯=# ♭=b ß=ss æ=ae Æ=AE ø=o Ø=O ł=l Ł=L ı=i"
SIGNS = {  # those that Unicode does not take apart
    **{pair[0]: pair[2:] for pair in ALIKE.split()},
    **dict.fromkeys("–—―−‐", "-"),
    **dict.fromkeys("‘’‚′", "'"),
    **dict.fromkeys("“”„«»″", '"'),
    **dict.fromkeys("·•∙", "*"),
    **dict.fromkeys("─━═╴╶╸╺", "-"),
    **dict.fromkeys("│┃║", "|"),
}
READER_LEFT = 141  # what a shell says of a program whose reader has ended, 128 + SIGPIPE
NARROWEST = 20


class ReaderLeft(BrokenPipeError):
    """Who reads stdout or stderr has ended. Any other broken pipe, as that of a dead worker, is an error."""


def lookalike(error: UnicodeError) -> tuple[str, int]:
    """ASCII for the letters that an encoding lacks: — becomes -, é becomes e, and 夜 the escape \\u591c."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(sign: str) -> str:
    letters = SIGNS.get(sign) or "".join(part for part in normalize("NFKD", sign) if not combining(part))
    return letters if letters.isascii() else sign.encode("ascii", "backslashreplace").decode()


codecs.register_error(LOOKALIKE, lookalike)


def shown(text: str) -> str:
    """The text as stdout can show it, which a table must know before it lays out its columns."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, LOOKALIKE).decode(encoding)


def shows_all() -> bool:
    """Whether stdout has every letter."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")


def say(*lines: object, file: TextIO | None = None, flush: bool = False) -> None:
    """Prints each line, to stdout or another stream. None of it steers the terminal: names of files and of tracks come
    from strangers."""
    for line in lines:
        print(printable(str(line), lines=True), file=file, flush=flush)


@contextmanager
def any_terminal() -> Iterator[None]:
    """Within it, any letter can be printed. If its reader ends, as `head` does, so does the program, quietly.
    Raises OSError at its end for what could not be written."""
    try:
        _set_up()
        try:
            yield
        except Exception:
            _print_nowhere()  # else a reader who left would hide the error
            raise
        finally:
            sys.stdout.flush()
    except OSError as error:
        _print_nowhere()
        if isinstance(error, ReaderLeft):
            sys.exit(READER_LEFT)
        raise


def _set_up() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell: the next file that opens would get its number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the end
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            for act in ("write", "flush"):  # its own: other streams keep theirs
                if act not in vars(stream):  # we may be within ourselves
                    setattr(stream, act, _tells_who_left(getattr(stream, act)))
            stream.reconfigure(errors=LOOKALIKE)  # flushes
    if os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        os.environ.setdefault("TTY_COMPATIBLE", "0")  # for rich: no bars that are drawn again and again


def _tells_who_left(act: Callable[..., Any]) -> Callable[..., Any]:
    """The act of a stream, which raises ReaderLeft where its pipe is broken."""

    @functools.wraps(act)
    def told(*what: Any) -> Any:
        try:
            return act(*what)
        except BrokenPipeError as error:
            raise ReaderLeft(*error.args) from error

    return told


def _print_nowhere() -> None:
    """Leads streams that cannot be written nowhere: the interpreter flushes them at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


def columns(most: int) -> int:
    """The width for text; 100 where there is no terminal."""
    return max(min(shutil.get_terminal_size((100, 24)).columns, most), NARROWEST)


def fold(text: str, width: int) -> str:
    """The text, whose lines that are longer than the width continue on the next one, further in."""
    lines = []
    for line in text.splitlines():
        further_in = " " * (len(line) - len(line.lstrip()) + 4)
        lines += wrapped(line, width, further_in) or [""]
    return "\n".join(lines)


def wrapped(text: str, width: int, further_in: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=further_in, break_long_words=False, break_on_hyphens=False)
