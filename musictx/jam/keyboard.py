"""The player's hands and foot: MIDI messages as the notes of a phrase."""

from collections import Counter
from typing import Any

import numpy as np

from musictx.music.channels import DRUM_CHANNEL
from musictx.music.score import Score
from musictx.music.ticks import PEDAL, PEDAL_DOWN

ALL_OFF = (120, 123)  # controllers: all sound off, all notes off


class Keyboard:
    """The phrase since the last `forget`, in seconds of the session, without drums and notes outside `lo` … `hi`.

    A key released under the pedal sounds until the pedal comes up or the key is struck again.
    """

    def __init__(self, lo: int, hi: int, quarter_s: float) -> None:
        self.lo, self.hi, self.quarter_s = lo, hi, quarter_s
        self.outside = 0  # notes outside the range, in all
        self.down: Counter[int] = Counter()  # keys that are down, by pitch: two channels may press one
        self.pedal = False
        self.last_s = 0.0  # the newest key or pedal; a clock and a wheel change no phrase
        self.free_s = 0.0  # when the last key was released
        self.forget()

    def forget(self) -> None:
        """Ends the phrase: the next note begins another."""
        self.start_s: float | None = None
        self.notes: list[tuple[float, float, int, int]] = []  # onset, offset, pitch, velocity
        self.sounding: dict[int, tuple[float, int]] = {}  # pitch -> onset, velocity of a sounding note

    @property
    def hands_up(self) -> bool:
        return not self.down

    def hear(self, at_s: float, message: Any) -> bool:
        """Takes a mido message. True if it begins a note."""
        at_s = max(at_s, self.last_s)
        if message.type == "control_change":
            if message.control == PEDAL:
                self._press(at_s, message.value >= PEDAL_DOWN)
            elif message.control in ALL_OFF:
                for pitch in list(self.down.elements()):
                    self._release(at_s, pitch)
        elif message.type in ("note_on", "note_off") and message.channel != DRUM_CHANNEL:
            if message.type == "note_on" and message.velocity > 0:
                self._strike(at_s, message.note, message.velocity)
                return True
            if message.note in self.down:
                self._release(at_s, message.note)
        return False

    def score(self, until_s: float) -> Score:
        """The phrase from its first note on; notes that still sound end at `until_s`."""
        start_s = self.start_s or 0.0
        sounding = [(onset, until_s, pitch, velocity) for pitch, (onset, velocity) in self.sounding.items()]
        columns = np.array(self.notes + sounding, dtype=np.float64).reshape(-1, 4).T
        onset, offset = columns[:2] - start_s
        return Score(onset, np.maximum(offset, onset), columns[2], columns[3], self.quarter_s)

    def _strike(self, at_s: float, pitch: int, velocity: int) -> None:
        self.last_s = at_s
        self.down[pitch] += 1
        if not self.lo <= pitch <= self.hi:
            self.outside += 1
            return
        if self.start_s is None:
            self.start_s = at_s
        self._end(at_s, pitch)
        self.sounding[pitch] = at_s, velocity

    def _release(self, at_s: float, pitch: int) -> None:
        self.last_s = at_s
        self.down[pitch] -= 1
        if self.down[pitch] > 0:  # another channel presses it
            return
        del self.down[pitch]
        if self.hands_up:
            self.free_s = at_s
        if not self.pedal:
            self._end(at_s, pitch)

    def _press(self, at_s: float, down: bool) -> None:
        self.last_s = at_s
        self.pedal = down
        if not down:
            for pitch in [p for p in self.sounding if p not in self.down]:
                self._end(at_s, pitch)

    def _end(self, at_s: float, pitch: int) -> None:
        if pitch in self.sounding:
            onset_s, velocity = self.sounding.pop(pitch)
            self.notes.append((onset_s, at_s, pitch, velocity))
