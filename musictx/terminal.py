"""Output for any terminal: look-alikes of missing letters, widths, closed streams."""

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
    """The reader of stdout or stderr has ended."""


def lookalike(error: UnicodeError) -> tuple[str, int]:
    """ASCII for letters that an encoding lacks: — becomes -, é becomes e, 夜 becomes \\u591c."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(sign: str) -> str:
    letters = SIGNS.get(sign) or "".join(part for part in normalize("NFKD", sign) if not combining(part))
    return letters if letters.isascii() else sign.encode("ascii", "backslashreplace").decode()


codecs.register_error(LOOKALIKE, lookalike)


def encodable(text: str) -> str:
    """The text with look-alikes of the letters that stdout lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, LOOKALIKE).decode(encoding)


def shows_all() -> bool:
    """Whether stdout has every letter."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")


def say(*lines: object, file: TextIO | None = None, flush: bool = False) -> None:
    """Prints lines as printable text."""
    for line in lines:
        print(printable(str(line), lines=True), file=file, flush=flush)


@contextmanager
def any_terminal() -> Iterator[None]:
    """Prints any letter, and exits quietly where the reader ends. Raises OSError for lost output."""
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
            for method in ("write", "flush"):  # its own: other streams keep theirs
                if method not in vars(stream):  # we may be within ourselves
                    setattr(stream, method, _with_reader_left(getattr(stream, method)))
            stream.reconfigure(errors=LOOKALIKE)  # flushes
    if os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        os.environ.setdefault("TTY_COMPATIBLE", "0")  # for rich: no bars that are drawn again and again


def _with_reader_left(method: Callable[..., Any]) -> Callable[..., Any]:
    """A stream's method, which raises ReaderLeft for a broken pipe."""

    @functools.wraps(method)
    def call(*arguments: Any) -> Any:
        try:
            return method(*arguments)
        except BrokenPipeError as error:
            raise ReaderLeft(*error.args) from error

    return call


def _print_nowhere() -> None:
    """Leads broken streams nowhere."""  # the interpreter flushes them at its end
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
    """The text with long lines wrapped, the continuation indented."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += wrap(line, width, indent) or [""]
    return "\n".join(lines)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
