"""The chorale encoding, live: a grid of sixteenths, of which a step sounds when the last of its voices is known."""

import numpy as np

from musictx.notes.grid import REST, STEPS_PER_QUARTER, VELOCITY
from musictx.notes.score import Score
from musictx.tokenizers.chorale.fingers import four_voices
from musictx.tokenizers.idiom import Event
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.vocab import Ids


class GridIdiom:
    """Obeys `musictx.tokenizers.idiom.Idiom`."""

    def __init__(self, tokenizer: Tokenizer, quarter_s: float) -> None:
        self.tokenizer, self.voices, self.step_s = tokenizer, tokenizer.voices, quarter_s / STEPS_PER_QUARTER
        self.waits = tokenizer.pitch == REST

    def ids(self, score: Score, now_s: float) -> Ids:
        ids = self.tokenizer.encode(four_voices(score))
        return ids if np.isinf(now_s) else ids[: max(round(now_s / self.step_s), 0) * self.voices]

    def heard(self, ids: Ids, seconds: float) -> Ids:
        begun = int(np.ceil(seconds / self.step_s - 1e-6))
        return ids[: min(begun, len(ids) // self.voices) * self.voices]

    def reader(self) -> "GridReader":
        return GridReader(self.tokenizer, self.step_s)


class GridReader:
    """Obeys `musictx.tokenizers.idiom.Reader`."""

    def __init__(self, tokenizer: Tokenizer, step_s: float) -> None:
        self.pitch, self.voices, self.step_s, self.steps = tokenizer.pitch, tokenizer.voices, step_s, 0
        self.chord: list[int] = []
        self.sounding: set[int] = set()

    @property
    def clock_s(self) -> float:
        return self.steps * self.step_s

    def read(self, id_: int) -> list[Event]:
        self.chord.append(int(self.pitch[id_]))
        if len(self.chord) < self.voices:
            return []
        at_s, now = self.clock_s, set(self.chord) - {REST}
        ends = [Event(at_s, pitch, 0) for pitch in sorted(self.sounding - now)]
        begins = [Event(at_s, pitch, VELOCITY) for pitch in sorted(now - self.sounding)]
        self.sounding, self.chord, self.steps = now, [], self.steps + 1
        return ends + begins
