"""The chorale encoding, live: at most four voices, sixteenth by sixteenth."""

from dataclasses import replace

import numpy as np

from musictx.music.grid import N_VOICES, REST, STEPS_PER_QUARTER, VELOCITY, in_steps
from musictx.music.score import Score
from musictx.tokenizers.tokenizer import Event, Tokenizer
from musictx.tokenizers.vocab import Ids


class GridIdiom:
    """An `Idiom`."""

    def __init__(self, tokenizer: Tokenizer, quarter_s: float) -> None:
        self.tokenizer, self.voices, self.step_s = tokenizer, tokenizer.voices, quarter_s / STEPS_PER_QUARTER
        self.waits = tokenizer.pitch == REST

    def ids(self, score: Score, now_s: float) -> Ids:
        ids = self.tokenizer.encode(steal_voices(score))
        return ids if np.isinf(now_s) else ids[: max(round(now_s / self.step_s), 0) * self.voices]

    def prefix(self, ids: Ids, seconds: float) -> Ids:
        n_steps = int(np.ceil(seconds / self.step_s - 1e-6))
        return ids[: min(n_steps, len(ids) // self.voices) * self.voices]

    def reader(self) -> "GridReader":
        return GridReader(self.tokenizer, self.step_s)


class GridReader:
    """A `Reader`."""

    def __init__(self, tokenizer: Tokenizer, step_s: float) -> None:
        self.pitch, self.voices, self.step_s = tokenizer.pitch, tokenizer.voices, step_s
        self.steps, self.clock_s = 0, 0.0
        self.chord: list[int] = []
        self.sounding: set[int] = set()

    def read(self, id_: int) -> list[Event]:
        self.chord.append(int(self.pitch[id_]))
        if len(self.chord) < self.voices:
            return []
        at_s, now = self.clock_s, set(self.chord) - {REST}
        ends = [Event(at_s, pitch, 0) for pitch in sorted(self.sounding - now)]
        begins = [Event(at_s, pitch, VELOCITY) for pitch in sorted(now - self.sounding)]
        self.sounding, self.chord, self.steps = now, [], self.steps + 1
        self.clock_s = self.steps * self.step_s
        return ends + begins


def steal_voices(score: Score) -> Score:
    """The notes on sixteenths, at most four at once: a fifth ends the oldest, as synthesizers steal voices."""
    step_s, (onset, offset) = score.quarter_s / STEPS_PER_QUARTER, in_steps(score)
    keep, sounding = np.zeros(len(score), dtype=bool), list[int]()
    for step in np.unique(onset):
        sounding = [i for i in sounding if offset[i] > step]
        # pitch -> the last note of it in this step
        onsets = {int(score.pitch[i]): i for i in np.flatnonzero(onset == step).tolist()}
        high_first = [onsets[pitch] for pitch in sorted(onsets, reverse=True)]
        # of a chord of more, the highest three and the lowest
        chord = high_first if len(high_first) <= N_VOICES else [*high_first[: N_VOICES - 1], high_first[-1]]
        for k, i in enumerate(chord):
            endings = [j for j in sounding if score.pitch[j] == score.pitch[i]]
            if not endings and len(sounding) + k == N_VOICES:
                endings = sounding[:1]
            for j in endings:
                offset[j] = step
                sounding.remove(j)
        sounding += chord
        keep[chord] = True
    return replace(score.select(keep), onset_s=onset[keep] * step_s, offset_s=offset[keep] * step_s)
