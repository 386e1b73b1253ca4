"""Arcs from a note to the notes of the model's attention."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.heads import attention_to_melody, attention_to_past, repeats
from musictx.errors import UserError
from musictx.generate.accompanying import Accompanied
from musictx.music.grid import REST, VOICES
from musictx.music.notation.notation import Notation
from musictx.music.score import UNITS, Score
from musictx.music.ticks import TempoMap
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.tokenizer import Trace
from musictx.viz.arcs import choose_heads, plot_arcs

MOST_TOKENS = 1024  # that the model sees before the note
MOTIF_NOTES = 4


@dataclass
class AttentionReader:
    """Reads the attention of a note to the music before it."""

    model: Any  # reading hangs hooks into it, which drawing must not meet; None without attention over its past
    tokenizer: Tokenizer
    first: ClassVar[int] = 1  # note that can look at something

    @property
    def layers(self) -> int:
        return int(self.model.config.n_layers) if self.model else 0

    def plot(self, score: Score, name: str, note: int, layer: int | None, path: Path) -> None:
        """Arcs of note number `note`, by the mean of all heads or each head of a layer. Raises UserError."""
        trace = self.trace(score)
        note = min(max(note, self.first), len(trace.score) - 1)
        heads, _ = choose_heads(self.look(score, trace, note), layer)
        where = f"note {note + 1} of {len(trace.score)}, at {trace.score.onset_s[note]:.2f} s"
        plot_arcs(f"{name}: {where}", trace.score, note, heads, self.motif(trace, note), path)

    def look(self, score: Score, trace: Trace, note: int) -> NDArray[Any]:
        """The weight (layers, heads, N) on each of N notes. Raises UserError for a note without any before it."""
        if trace.struck_by[note] == 0:
            raise UserError("this note is the first, which has nothing before it to look at", "click a later one")
        ids = self.ids(score)
        most = min(self.model.reach or MOST_TOKENS, MOST_TOKENS)
        return attention_to_past(self.model, self.tokenizer, ids, trace, note, max_tokens=most).weight

    def ids(self, score: Score) -> Ids:
        return self.tokenizer.encode(score)

    def motif(self, trace: Trace, note: int) -> list[NDArray[Any]]:
        """The earlier places of the motif that leads to the note."""
        return list(repeats(trace.score, MOTIF_NOTES).get(note, []))

    def trace(self, score: Score) -> Trace:
        """The notes with their ids. Raises UserError."""
        if self.model is None:
            raise UserError("this model has no attention that the page shows")
        return self.tokenizer.trace(self.ids(score), score.quarter_s)

    def nearest(self, score: Score, seconds: float, pitch: float) -> int:
        """The note nearest to a place of a roll; a semitone counts as a twentieth of a second."""
        notes = self.trace(score).score
        away_s = np.maximum(np.maximum(notes.onset_s - seconds, seconds - notes.offset_s), 0)
        return int((away_s + 0.05 * np.abs(notes.pitch - pitch)).argmin())


@dataclass
class ScoreReader(AttentionReader):
    """Reads the attention of a note in a score, whose ids are bars of parts."""

    notation: Notation
    clock: TempoMap  # of the file

    def ids(self, score: Score) -> Ids:
        assert isinstance(self.tokenizer, ScoreTokenizer)
        return self.tokenizer.encode_notation(self.notation)

    def trace(self, score: Score) -> Trace:
        """The notes at the seconds of the file."""
        trace = super().trace(replace(score, quarter_s=float(UNITS)))  # a unit lasts a second
        notes, ticks = trace.score, self.clock.ticks_per_quarter / UNITS
        on_s, off_s, time_s = (
            self.clock.seconds(np.rint(self.notation.swing.played(units) * ticks).astype(np.int64))
            for units in (notes.onset_s, notes.offset_s, trace.time_s)
        )
        return trace._replace(score=replace(notes, onset_s=on_s, offset_s=off_s), time_s=time_s)


@dataclass
class MelodyReader(AttentionReader):
    """Reads the attention of an accompaniment's note to the melody."""

    take: Accompanied
    first: ClassVar[int] = 0

    def ids(self, score: Score, transpose: int = 0) -> Ids:
        assert isinstance(self.tokenizer, ChoraleTokenizer)
        return self.tokenizer.encode_grid(np.where(self.take.grid == REST, REST, self.take.grid + transpose))

    def look(self, score: Score, trace: Trace, note: int) -> NDArray[Any]:
        voice = VOICES.index(self.take.melody_voices)
        if trace.struck_by[note] % self.tokenizer.voices == voice:
            raise UserError("this note is one of the melody, which was given", "click another")
        ids = self.ids(score, self.take.transposed)
        return attention_to_melody(self.model, self.tokenizer, ids, trace, note, "cpu", voice).weight

    def motif(self, trace: Trace, note: int) -> list[NDArray[Any]]:
        return []
