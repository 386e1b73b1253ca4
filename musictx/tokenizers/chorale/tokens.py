"""Chorale encoding: a grid of sixteenths read S1 A1 T1 B1 S2 …, one pitch token per voice per step.

Huang et al. 2018 (arXiv 1809.04281), section 4.1.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import TokenError
from musictx.music.grid import N_VOICES, REST, STEPS_PER_QUARTER, Grid, grid_to_score, lines_of_grid, score_to_grid
from musictx.music.score import Score
from musictx.tokenizers.chorale.idiom import GridIdiom
from musictx.tokenizers.tokenizer import Tokenizer, Trace, notes_by_step
from musictx.tokenizers.vocab import EventRange, Ids, Vocab

if TYPE_CHECKING:
    from musictx.tokenizers.chorale.rules import GridRules
    from musictx.tokenizers.rules import Rules


class ChoraleTokenizer(Tokenizer):
    """Four-part music on a grid of sixteenths."""

    name = "chorale"
    pitched = ("PITCH",)
    group = N_VOICES  # windows begin with a soprano
    voices = N_VOICES
    metrical = True
    ruled = True
    vocab = Vocab("chorale/1", (EventRange("PITCH", 21, 108), EventRange("REST", 0, 0)))

    def __init__(self, state: str = "") -> None:
        super().__init__(state)
        self.rest = self.vocab.offsets["REST"]
        is_music = np.arange(self.vocab.size) < self.vocab.n_events
        self.pace: NDArray[Any] = np.where(is_music, 1 / N_VOICES, 0.0)  # (V,) sixteenths

    def encode(self, score: Score) -> Ids:
        """(T,) ids, T a multiple of 4. Raises TokenError for more than four notes at once."""
        return self.encode_grid(score_to_grid(score))

    def encode_grid(self, grid: NDArray[np.integer]) -> Ids:
        """(steps, 4) pitches as ids (4·steps,). Raises TokenError for a pitch outside the vocabulary."""
        sung = grid[grid != REST]
        if len(outside := sung[(sung < self.lo) | (sung > self.hi)]):
            what = f"pitch {outside[0]} is outside the {self.name} vocabulary, which has {self.lo} … {self.hi}"
            raise TokenError(what, "transpose the piece or use a performance model")
        return np.where(grid == REST, self.rest, grid - self.lo).astype(np.uint16).reshape(-1)

    def decode_grid(self, ids: NDArray[np.integer]) -> Grid:
        """Any ids up to the first EOS as a grid (steps, 4)."""
        pitch = self.pitch[self.vocab.music(ids)].astype(np.int16)
        return np.append(pitch, np.full(-len(pitch) % N_VOICES, REST, np.int16)).reshape(-1, N_VOICES)

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.6) -> Score:
        return grid_to_score(self.decode_grid(ids), quarter_s)

    def lines(self, ids: NDArray[np.integer], quarter_s: float = 0.6) -> list[Score]:
        return lines_of_grid(self.decode_grid(ids), quarter_s)

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.6) -> float:
        """The duration of a stream of ids, in whole steps."""
        return int((ids < self.vocab.n_events).sum()) // N_VOICES * quarter_s / STEPS_PER_QUARTER

    def silence(self, seconds: float, quarter_s: float = 0.6) -> Ids:
        """Ids that let so much time pass, to the nearest sixteenth."""
        steps = max(round(seconds / quarter_s * STEPS_PER_QUARTER), 0)
        return np.full(steps * N_VOICES, self.rest, dtype=np.uint16)

    def grammar(
        self,
        rules: "Rules",
        prompts: Sequence[NDArray[np.integer]],
        quarter_s: Sequence[float],
        on_grid: Sequence[bool] = (),
    ) -> "GridRules":
        from musictx.tokenizers.chorale.rules import GridRules

        return GridRules(self, rules, prompts, quarter_s)

    def idiom(self, quarter_s: float) -> GridIdiom:
        return GridIdiom(self, quarter_s)

    def trace(self, ids: Ids, quarter_s: float) -> Trace:
        step_s, score = quarter_s / STEPS_PER_QUARTER, self.decode(ids, quarter_s)
        notes, step = notes_by_step(score, step_s), np.arange(len(ids)) // self.voices
        note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
        for t, pitch in enumerate(self.pitch[ids].tolist()):
            if pitch == REST:
                continue
            if t >= self.voices and ids[t - self.voices] == ids[t]:
                note[t] = note[t - self.voices]
            else:
                note[t] = notes[0, pitch, int(step[t])].pop(0)
                first[note[t]] = t
        return Trace(score, step * step_s, note, first)
