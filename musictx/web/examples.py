"""A few bars to begin with, for people without a MIDI file at hand. All are long out of copyright."""

import numpy as np

from musictx.model.shipped import FOLDER
from musictx.notes.grid import grid_to_score
from musictx.notes.meter import Meter
from musictx.notes.read import read_bytes, read_tracks
from musictx.notes.score import Score
from musictx.web.session import Music

SHIPPED = {  # by the name of its file
    "chorale": "The opening of a chorale",
    "elise": "Beethoven: Für Elise",
    "gymnopedie": "Satie: Gymnopédie",
}

# soprano, alto, tenor, bass of each quarter
OLD_HUNDREDTH = (
    (67, 62, 59, 55),
    (67, 62, 59, 55),
    (66, 62, 57, 50),
    (64, 59, 55, 52),
    (62, 59, 54, 47),
    (67, 59, 52, 52),
    (69, 60, 57, 54),
    (71, 62, 55, 55),
    (71, 62, 55, 55),
)
PRELUDE = ((60, 64, 67, 72, 76), (60, 62, 69, 74, 77), (59, 62, 67, 74, 77), (60, 64, 67, 72, 76))
ODE = (64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64)


def examples() -> dict[str, Music]:
    made = {"Old Hundredth, in four voices": _hymn(), "Prelude in C, broken chords": _prelude(), "Ode to Joy": _ode()}
    music = {name: Music(name.partition(",")[0], score, Meter(score.quarter_s)) for name, score in made.items()}
    return {title: _shipped(name) for name, title in SHIPPED.items()} | music


def _shipped(name: str) -> Music:
    path = FOLDER / f"{name}.mid"
    tracks = read_tracks(read_bytes(path), path)
    return Music(name, tracks.merge(), tracks.meter())


def _hymn() -> Score:
    return grid_to_score(np.repeat(np.array(OLD_HUNDREDTH, dtype=np.int16), 4, axis=0))


def _prelude() -> Score:
    """Each bar twice the same eight notes: the two lowest are held, the others ring."""
    step_s, order = 0.2, (0, 1, 2, 3, 4, 2, 3, 4)
    pitch = np.array([bar[k] for bar in PRELUDE for _ in range(2) for k in order])
    onset_s = step_s * np.arange(len(pitch))
    ring = np.tile([8, 7, 1, 1, 1, 1, 1, 1], len(pitch) // 8)
    return Score(onset_s, onset_s + step_s * ring - 0.02, pitch, np.tile([72, 66] + [60] * 6, len(pitch) // 8))


def _ode() -> Score:
    beats = np.arange(len(ODE), dtype=np.float64)
    return Score(0.5 * beats, 0.5 * beats + 0.45, np.array(ODE), np.full(len(ODE), 80))
