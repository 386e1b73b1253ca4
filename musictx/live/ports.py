"""MIDI ports through mido, opened by name; what is missing is told in one line."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mido

from musictx.errors import ConfigError
from musictx.model.shipped import KNOWN_SEEDS

INPUT, OUTPUT = "input", "output"


def open_input(name: str, virtual: bool, callback: Callable[[Any], None]) -> Any:
    """A port whose messages go to `callback`, in a thread of the system's. Raises ConfigError."""
    return _open(INPUT, name, virtual, callback=callback)


def open_output(name: str, virtual: bool) -> Any:
    """A port that messages are sent to. Raises ConfigError."""
    return _open(OUTPUT, name, virtual)


def _open(kind: str, name: str, virtual: bool, **options: Any) -> Any:
    """The port of that name, or the one port whose name has these words in it; a virtual one is made, for others to
    connect to."""
    opening, listing = (
        (mido.open_input, mido.get_input_names) if kind == INPUT else (mido.open_output, mido.get_output_names)
    )
    file = "a MIDI file that ends in .mid" + (f", or {KNOWN_SEEDS}" if kind == INPUT else "")
    try:
        with _quiet():
            if virtual:
                return opening(name, virtual=True, **options)
            names = list(dict.fromkeys(listing()))
            if (found := _choose(names, name)) is not None:
                return opening(found, **options)
    except ImportError as error:
        raise ConfigError(
            f"{kind}={name}: MIDI ports need the package python-rtmidi ({error}): pip install 'musictx[jam]', or give "
            f"{file}"
        ) from None
    except (OSError, NotImplementedError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(f"{kind}={name} cannot be opened ({reason}): give another port, or {file}") from None
    there = f"choose one of {', '.join(map(repr, names))}" if names else "there are none: connect one"
    raise ConfigError(f"{kind}={name}: no such MIDI {kind} port; {there}, or give {file}")


def _choose(names: list[str], name: str) -> str | None:
    if name in names:
        return name
    alike = [n for n in names if name.lower() in n.lower()]
    return alike[0] if len(alike) == 1 else None


@contextmanager
def _quiet() -> Iterator[None]:
    """ALSA and JACK print their own words to stderr, past Python, wherever they find no device or no server."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
