"""The names of notes, G sharp or A flat, by the music around them and the signature."""

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any, cast

import numpy as np

from musictx.errors import UserError
from musictx.music.harmony import FIFTHS, NATURALS
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Key
from musictx.music.score import UNITS

Name = tuple[str, int, int]  # step, alteration, octave
CENTER = 2  # fifths from a major key's tonic to the middle of its scale
IMPORTING = Lock()
UNUSED = ("miditok", "pandas")  # partitura imports them where they are, and PyTorch with them: six seconds of a core
MOST_ALTERED = 2  # a double sharp or flat


def missing(package: str) -> UserError:
    return UserError(f"a score needs the package {package}, which is not installed", "pip install 'musictx[score]'")


def check_packages() -> None:
    """Raises UserError where a package that writes scores is not installed."""
    for package in ("music21", "partitura"):
        if find_spec(package) is None:
            raise missing(package)


@contextmanager
def _importing() -> Iterator[None]:
    """Imports partitura without `UNUSED`. Raises UserError where it is not installed."""
    with IMPORTING:
        hidden = [] if "partitura" in sys.modules else [name for name in UNUSED if name not in sys.modules]
        sys.modules.update(cast(Any, dict.fromkeys(hidden)))  # an import of one raises ImportError now
        try:
            yield
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "partitura":
                raise
            raise missing("partitura") from None
        finally:
            for name in hidden:
                sys.modules.pop(name, None)


def key_of(notation: Notation) -> Key:
    """The signature with which the fewest notes need an accidental, or of several the one of the fewest signs: right
    for 112 of 120 scores, where Krumhansl's profiles (1990) are for 97."""
    of_class = Counter(note.pitch % 12 for part in notation.parts for note in part.notes)

    def altered(sharps: int) -> int:
        scale = {(7 * sharps + pitch) % 12 for pitch in NATURALS.values()}
        return sum(count for pitch, count in of_class.items() if pitch not in scale)

    return Key(0, min(sorted(range(-6, 7), key=abs), key=altered))


def spelled(notation: Notation) -> list[list[Name]]:
    """The name of each note of each part, by the notes around it (ps13, Meredith 2006) and the signature, which says
    C sharp or D flat. Raises UserError where partitura is not installed."""
    with _importing():
        from partitura.musicanalysis import estimate_spelling
    table, parts = _table(notation)
    found = estimate_spelling(table) if parts else []  # of chord symbols alone
    places = np.array([FIFTHS.index(each["step"]) - 1 + 7 * int(each["alter"]) for each in found])  # (N,) fifths from C
    begins, onset = [key.onset for key in notation.keys], table["onset_beat"] * UNITS
    of_key = np.array([max(bisect_right(begins, at) - 1, 0) for at in onset])  # (N,)
    for k, key in enumerate(notation.keys):
        if (mine := of_key == k).any():
            places[mine] += 12 * round((key.sharps + CENTER - places[mine].mean()) / 12)
    names: list[list[Name]] = [[] for _ in notation.parts]
    for n, place, pitch in zip(parts, places.tolist(), table["pitch"].tolist(), strict=True):
        names[n].append(_named(place, pitch))
    return names


def _named(place: int, pitch: int) -> Name:
    """A pitch by its place on the line of fifths, 0 is C."""
    alter = (place + 1) // 7
    if abs(alter) > MOST_ALTERED:
        return _named(place + (12 if alter < 0 else -12), pitch)
    step = FIFTHS[(place + 1) % 7]
    return step, alter, (pitch - alter - NATURALS[step]) // 12 - 1


def _table(notation: Notation) -> tuple[Any, list[int]]:
    """The notes as partitura takes them, and the part of each."""
    rows = [(note, n) for n, part in enumerate(notation.parts) for note in part.notes]
    columns = [("onset_beat", "f4"), ("duration_beat", "f4"), ("pitch", "i4"), ("id", "U12")]
    table = [(t.onset / UNITS, t.length / UNITS, t.pitch, str(k)) for k, (t, _) in enumerate(rows)]
    return np.array(table, columns), [n for _, n in rows]
