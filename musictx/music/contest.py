"""The JSON of MIREX's symbolic music generation: piano music in 4/4 on sixteenths, four bars that twelve more follow.

A prompt is {"prompt": [{"start": 16, "pitch": 72, "duration": 6}, …]}: sixteenths from the beginning of an upbeat bar,
which may be empty, and four bars. A generation has the notes of the twelve bars after them, from 80 to 271.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from musictx.errors import MidiError
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.score import UNITS

BAR = 16  # sixteenths
NEW_BARS = 12
FROM, TO = 5 * BAR, (5 + NEW_BARS) * BAR  # of the new bars
PLACES = "1/16"  # of a beat
SIXTEENTH = UNITS // 4
MOST_BYTES, MOST_NOTES = 2**20, 10_000
FIELDS = {"start": (0, FROM - 1), "pitch": (0, 127), "duration": (1, TO)}
SHAPE = 'give {"prompt": [{"start": 16, "pitch": 72, "duration": 6}, …]}'


def read_prompt(path: Path) -> Notation:
    """The five bars of a prompt, one keyboard. Raises MidiError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        found = json.loads(data[:MOST_BYTES].decode("utf-8")) if len(data) <= MOST_BYTES else None
    except OSError as error:
        raise MidiError(path, f"it cannot be read ({error.strerror})", SHAPE) from None
    except (ValueError, RecursionError):
        raise MidiError(path, "it is no JSON", SHAPE) from None
    rows = found.get("prompt") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_NOTES:
        raise MidiError(path, f"it has no list of 1 to {MOST_NOTES:,} notes", SHAPE)
    notes = {_note(row, n, path) for n, row in enumerate(rows, 1)}
    bars = tuple(Bar(at * SIXTEENTH, 4, 4) for at in range(0, FROM, BAR))
    return Notation((Part("Piano", 0, tuple(sorted(notes))),), bars, FROM * SIXTEENTH, keys=())


def _note(row: Any, number: int, path: Path) -> Note:
    values: list[Any] = [row.get(name) if isinstance(row, dict) else None for name in FIELDS]
    for (name, (low, high)), value in zip(FIELDS.items(), values, strict=True):
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise MidiError(
                path, f"note {number} has {name} {repr(value)[:40]}", f"give a whole number, {low} to {high}"
            )
    start, pitch, duration = values
    return Note(start * SIXTEENTH, duration * SIXTEENTH, pitch)


def generation(notes: Iterable[Note]) -> str:
    """The JSON of the notes that begin in the twelve bars, cut at their end, without those whose key is down."""
    rows, until = [], dict[int, int]()  # where each pitch ends
    for onset, length, pitch in sorted(notes):
        start = onset // SIXTEENTH
        duration = min(max(round(length / SIXTEENTH), 1), TO - start)
        if max(FROM, until.get(pitch, FROM)) <= start < TO:
            rows.append({"start": start, "pitch": pitch, "duration": duration})
            until[pitch] = start + duration
    return json.dumps({"generation": rows})
