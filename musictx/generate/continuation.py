"""A continuation: a primer and the new music after it, or a piece with its gap filled."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from musictx.generate.outcome import ChordSpan
from musictx.music.score import Filled, Score


@dataclass(frozen=True)
class Continuation:
    """Music after its primer, or a piece with its gap filled."""

    score: Score  # all of its notes
    new_from_s: float  # when the new music begins
    stopped: str = ""  # why it is shorter than requested; "" if it is not
    mean_log_p: float = 0.0  # nats a token, by the model itself, without filters or guidance
    unheard: int = 0  # the primer's oldest tokens, further back than the model looks
    is_new: NDArray[np.bool_] | None = None  # (N,) the notes that fill a gap; None: those from `new_from_s` on are new
    new_to_s: float = np.inf  # when a fill ends
    chords: tuple[ChordSpan, ...] = ()  # of the request
    became: str = ""  # the effect of the request, in words
    lines: tuple[Score, ...] = ()  # the notes of each voice of `score`, from the highest down, if the model has voices
    held: int = 0  # new notes that came although the guard made them less likely

    @property
    def new_notes(self) -> Score:
        return self.score.select(self.score.onset_s >= self.new_from_s if self.is_new is None else self.is_new)

    @property
    def new(self) -> float | Filled | NDArray[np.bool_]:
        """The new notes, in the form that pictures take."""
        return self.new_from_s if self.is_new is None else Filled(self.is_new, self.new_from_s, self.new_to_s)

    @property
    def without_primer(self) -> Self:
        """The new music alone, from time 0 on."""
        start_s = self.new_from_s
        lines = tuple(notes_after(line, start_s) for line in self.lines)
        chords = tuple(chord.later(-start_s) for chord in self.chords)
        return replace(self, score=notes_after(self.score, start_s), new_from_s=0.0, chords=chords, lines=lines)


def notes_after(score: Score, start_s: float) -> Score:
    """The notes that sound after a moment, cut there, in time from it."""
    sounds = score.offset_s > start_s + 1e-6
    score = replace(score, onset_s=np.where(sounds, np.maximum(score.onset_s, start_s), score.onset_s))
    return score.clip(start_s, score.duration_s + 1)
