"""Arcs from a note to the notes that the model looked at while it made it."""

import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from musictx.errors import UserError
from musictx.heads import look, repeats
from musictx.model.build import can
from musictx.notes.score import Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.trace import Trace
from musictx.viz.arcs import Head, draw_arcs

MOST_TOKENS = 1024  # that the model sees before the note
MOTIF_NOTES = 4


class Point(NamedTuple):
    """A place in a roll."""

    seconds: float
    pitch: float


class Reader:
    """Reads attention out of a model of its own, since the read-out hangs hooks into it that drawing must not meet."""

    def __init__(self, model: object, tokenizer: Tokenizer) -> None:
        self.model: Any = copy.deepcopy(model) if can(model, "readout") else None
        self.tokenizer = tokenizer

    @property
    def layers(self) -> int:
        n: int = self.model.config.n_layers if self.model else 0
        return n

    def draw(self, score: Score, name: str, note: int, layer: int | None, path: Path) -> None:
        """Arcs of the note number `note`, of all heads' mean or of each head of a layer. Raises UserError."""
        if self.model is None:
            raise UserError("this model has no attention over its past to look at")
        if layer is not None and not 0 <= layer < self.layers:
            raise UserError(f"layer {layer}: this model has layers 0 to {self.layers - 1}")
        traced = self.traced(score)
        note = int(np.clip(note, 1, max(len(traced.score) - 1, 1)))
        if note >= len(traced.score):
            raise UserError("there is one note only, which has nothing before it to look at")
        ids = self.tokenizer.encode(score)
        most = self.model.reach or MOST_TOKENS
        seen = look(self.model, self.tokenizer, ids, traced, note, max_tokens=min(most, MOST_TOKENS))
        heads = [Head("mean of all heads", seen.weight.mean((0, 1)))]
        if layer is not None:
            heads = [Head(f"head {h}", weight) for h, weight in enumerate(seen.weight[layer])]
        runs = repeats(traced.score, MOTIF_NOTES).get(note)
        where = f"note {note + 1} of {len(traced.score)}, at {traced.score.onset_s[note]:.2f} s"
        draw_arcs(f"{name}: {where}", traced.score, note, heads, [] if runs is None else list(runs), path)

    def traced(self, score: Score) -> Trace:
        return self.tokenizer.trace(self.tokenizer.encode(score), score.quarter_s)

    def nearest(self, score: Score, at: Point) -> int:
        """The note at a place, or the one closest to it; a semitone counts as much as a twentieth of a second."""
        notes = self.traced(score).score
        away_s = np.maximum(np.maximum(notes.onset_s - at.seconds, at.seconds - notes.offset_s), 0)
        return int((away_s + 0.05 * np.abs(notes.pitch - at.pitch)).argmin())
