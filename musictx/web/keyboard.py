"""A phrase played at the page's keyboard: what the browser sends, checked, as music."""

from pathlib import Path
from typing import Any

import numpy as np

from musictx.errors import UserError
from musictx.notes.meter import Meter
from musictx.notes.score import Score
from musictx.web.session import Music

SCRIPT = (Path(__file__).parent / "keyboard.js").read_text(encoding="utf-8")
MOST_NOTES, MOST_S = 2000, 120.0
SHORTEST_S = 0.03


def read_played(notes: Any) -> Music:
    """[onset_s, offset_s, pitch, velocity] for each note; time begins with the first. Raises UserError."""
    if not isinstance(notes, list) or not notes:
        raise UserError("nothing was played: play a few notes, then take them")
    if len(notes) > MOST_NOTES:
        raise UserError(f"{len(notes)} notes were played: up to {MOST_NOTES} are taken")
    if not all(isinstance(note, list) and len(note) == 4 and all(map(_finite, note)) for note in notes):
        raise UserError("the keyboard sent something that is no music: reload the page and play again")
    onset_s, offset_s, pitch, velocity = np.array(notes, dtype=np.float64).T
    onset_s, offset_s = onset_s - onset_s.min(), offset_s - onset_s.min()
    offset_s = np.maximum(offset_s, onset_s + SHORTEST_S)
    if offset_s.max() > MOST_S:
        raise UserError(f"{offset_s.max():.0f} s were played: up to {MOST_S:g} s are taken")
    score = Score(onset_s, offset_s, pitch.clip(0, 127).round(), velocity.clip(1, 127).round())
    return Music("played", score, Meter(score.quarter_s))


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e9
