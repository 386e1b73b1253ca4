"""A continuation: a primer and the new music after it, or a piece with its gap filled."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from musictx.generate.outcome import ChordSpan
from musictx.music.score import Filled, Score, same_fields


@dataclass(frozen=True, eq=False)
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

    def __eq__(self, other: object) -> bool:
        """Whether music and all facts about it are the same, without the file around it."""
        return same_fields(self, other)

    @property
    def new_notes(self) -> Score:
        return self.score.select(self._is_new)

    @property
    def given_notes(self) -> Score:
        """The notes that were there."""
        return self.score.select(~self._is_new)

    @property
    def _is_new(self) -> NDArray[np.bool_]:
        return self.score.onset_s >= self.new_from_s if self.is_new is None else self.is_new

    @property
    def new(self) -> float | Filled | NDArray[np.bool_]:
        """The new notes, in the form that pictures take."""
        return self.new_from_s if self.is_new is None else Filled(self.is_new, self.new_from_s, self.new_to_s)


def after_primer(music: Continuation) -> Continuation:
    """The new music alone, from time 0 on."""
    start_s = music.new_from_s
    lines = tuple(notes_after(line, start_s) for line in music.lines)
    chords = tuple(chord.later(-start_s) for chord in music.chords)
    return replace(music, score=notes_after(music.score, start_s), new_from_s=0.0, chords=chords, lines=lines)


def notes_after(score: Score, start_s: float) -> Score:
    """The notes that sound after a moment, cut there, in time from it."""
    sounds = score.offset_s > start_s + 1e-6
    score = replace(score, onset_s=np.where(sounds, np.maximum(score.onset_s, start_s), score.onset_s))
    return score.clip(start_s, score.duration_s + 1)
