"""A melody and its accompaniment in one stream: the performance encoding twice, on one clock."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.tokenizers.performance.tokens import PerformanceTokenizer, Steps
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.vocab import EventRange, Ids, Vocab

VOICE = 53  # General MIDI's voice, counted from 0: the program of a melody's notes


class MelodyTokenizer(PerformanceTokenizer):
    """Notes of program `VOICE` are the melody; all others come back as a piano."""

    name = "performance-melody"
    pitched = ("NOTE_ON", "NOTE_OFF", "MELODY_ON", "MELODY_OFF")
    programs = True
    # the rules of performances are for one part
    ruled = False
    melody = VOICE
    vocab = Vocab(
        "performance-melody/1",
        (
            *PerformanceTokenizer.vocab.events,
            EventRange("MELODY_ON", 0, 127),
            EventRange("MELODY_OFF", 0, 127),
            EventRange("MELODY_VELOCITY", 0, 31),
        ),
    )

    grammar, idiom, trace = Tokenizer.grammar, Tokenizer.idiom, Tokenizer.trace

    def __init__(self, state: str = "") -> None:
        super().__init__(state)
        vocab = self.vocab
        self.others0 = vocab.n_events  # here all events are music
        self.strikes = vocab.mask("NOTE_ON", "MELODY_ON")
        self.is_melody = vocab.mask("MELODY_ON", "MELODY_OFF", "MELODY_VELOCITY")  # (V,)
        self.as_piano = np.arange(vocab.size)  # (V,) the melody's ids as those of the rest
        self.as_voice = np.arange(vocab.size)
        for event, of_melody in (("NOTE_ON", "MELODY_ON"), ("NOTE_OFF", "MELODY_OFF"), ("VELOCITY", "MELODY_VELOCITY")):
            rest, melody = np.flatnonzero(vocab.mask(event)), np.flatnonzero(vocab.mask(of_melody))
            self.as_piano[melody], self.as_voice[rest] = rest, melody

    def encode(self, score: Score) -> Ids:
        is_melody = score.program == VOICE
        melody = self.in_steps(super().encode(score.select(is_melody)))
        rest = self.in_steps(super().encode(score.select(~is_melody)))
        time = np.concatenate([melody[0], rest[0]])
        key = np.concatenate([self.as_voice[melody[1]], rest[1]])
        order = np.argsort(time, kind="stable")
        return self._emit(np.diff(time[order], prepend=0), key[order])

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """The two performances; a hanging note ends with the stream."""
        melody, rest = self.apart(ids)
        voice = self.as_melody(super().decode(self.as_piano[melody], quarter_s))
        return Score.merge([voice, super().decode(rest, quarter_s)], quarter_s)

    def as_melody(self, score: Score) -> Score:
        """All notes of a score as a melody."""
        return replace(score, program=np.array(VOICE))

    def apart(self, ids: NDArray[np.integer]) -> tuple[Ids, Ids]:
        time, key, end = self.in_steps(ids)
        melody, rest = (self._part(time[own], key[own], end) for own in (self.is_melody[key], ~self.is_melody[key]))
        return melody, rest

    def _part(self, time: Steps, key: Steps, end: int) -> Ids:
        last = int(time[-1]) if len(time) else 0
        return np.concatenate([self._emit(np.diff(time, prepend=0), key), self._shifts(end - last)])
