"""Makes the two piano seeds inside the package from the notes below, with a little of a player's timing and touch.

    python studies/seeds.py musictx/bundles

Both compositions are in the public domain (Beethoven died in 1827, Satie in 1925).
No edition and no recording was used.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from musictx.config.app import in_one_line
from musictx.music.score import Score
from musictx.music.write import write_midi


class Piece(NamedTuple):
    """Voices of notes: `E5` lasts a unit, `E5:2` two, `B3+D4` is a chord, `-` a rest, `|` a bar line for the eye."""

    right: str
    left: str
    unit_s: float
    units: int  # in a bar
    upbeat: int  # units before the first bar
    signature: tuple[int, int]
    quarter: int  # units


ELISE = Piece(  # Beethoven, Bagatelle WoO 59, 1810: bars 1 to 8
    "E5 D#5 | E5 D#5 E5 B4 D5 C5 | A4:2 - C4 E4 A4 | B4:2 - E4 G#4 B4 | C5:2 - E4 E5 D#5 "
    "| E5 D#5 E5 B4 D5 C5 | A4:2 - C4 E4 A4 | B4:2 - E4 C5 B4 | A4:3",
    "-:2 | -:6 | A2 E3 A3 -:3 | E2 E3 G#3 -:3 | A2 E3 A3 -:3 | -:6 | A2 E3 A3 -:3 | E2 E3 G#3 -:3 | A2 E3 A3",
    unit_s=0.21,
    units=6,
    upbeat=2,
    signature=(3, 8),
    quarter=4,
)
GYMNOPEDIE = Piece(  # Satie, first Gymnopédie, 1888: bars 3 to 8
    "-:3 | -:3 | - F#5 A5 | G5 F#5 C#5 | B4 C#5 D5 | A4:3",
    "G2 B3+D4+F#4:2 | D2 A3+C#4+F#4:2 | G2 B3+D4+F#4:2 | D2 A3+C#4+F#4:2 | G2 B3+D4+F#4:2 | D2 A3+C#4+F#4:2",
    unit_s=0.79,
    units=3,
    upbeat=0,
    signature=(3, 4),
    quarter=1,
)


def notes(voice: str) -> np.ndarray:
    """(N, 3) onset and length in units, pitch."""
    found, now = [], 0
    for word in voice.replace("|", "").split():
        names, _, length = word.partition(":")
        units = int(length or 1)
        found += [(now, units, pretty_midi.note_name_to_number(name)) for name in names.split("+") if name != "-"]
        now += units
    return np.array(found)


def play(piece: Piece) -> Score:
    """The tempo varies over four bars, notes begin slightly off the beat, and notes of the left hand ring to the end of
    their bar, as with the pedal. The upbeat begins at 0."""
    right, left = notes(piece.right), notes(piece.left)
    left[:, 1] = piece.units - (left[:, 0] - piece.upbeat) % piece.units
    onset, length, pitch = np.concatenate([right, left]).T
    phrase = 2 * np.pi * (onset - piece.upbeat) / (4 * piece.units)
    uneven = np.sin(12.9898 * np.arange(1, len(onset) + 1))  # without an audible pattern
    onset_s = seconds(onset, piece) + 0.012 * (1 + uneven)
    offset_s = seconds(onset + length, piece) + 0.03 * uneven
    loud = np.where(np.arange(len(onset)) < len(right), 58, 42) + 8 * np.sin(phrase / 2) ** 2 + 5 * uneven
    return Score(onset_s, offset_s, pitch, np.rint(loud), piece.unit_s * piece.quarter)


def seconds(units: np.ndarray, piece: Piece) -> np.ndarray:
    """Times in seconds: slower at the ends of a phrase of four bars and faster within, by at most a tenth."""
    period = 4 * piece.units

    def swing(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return 0.1 * period / (2 * np.pi) * np.sin(2 * np.pi * (t - piece.upbeat) / period)

    return piece.unit_s * (units + swing(units) - swing(np.zeros(1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where they go, such as musictx/bundles")
    folder = parser.parse_args().folder
    for name, piece in {"elise": ELISE, "gymnopedie": GYMNOPEDIE}.items():
        score, path = play(piece), folder / f"{name}.mid"
        write_midi(score, path, piece.signature)
        print(f"{path}: {len(score)} notes, {score.duration_s:.1f} s")


if __name__ == "__main__":
    in_one_line(main)
