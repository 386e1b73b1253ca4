"""Whose turn it is: a state machine of the player's messages and a clock, which schedules the notes to play."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from musictx.jam.keyboard import Keyboard
from musictx.jam.partner import Partner
from musictx.jam.recording import Playback
from musictx.tokenizers import Ids
from musictx.tokenizers.tokenizer import Event, Idiom, Reader

SETTLE_S = 0.03  # messages may come this late, and a chord's notes this far apart
LOOK_S = 0.05  # how often the model reads the growing phrase
FAR_S = 10.0  # beyond now: for the end of notes that still sound
PREPARE_S = 0.4  # so long before its turn the model begins to draw, so that the first note waits for its time
AHEAD_S = 1.0  # music is drawn this long before it sounds
STUMBLE_S = 0.03  # notes later than this delay all that follow: the model was too slow


@dataclass
class Reply:
    """A reply so far: its turn is at `due_s`, its first sound at `origin_s`."""

    phrase: Ids  # that it replies to
    due_s: float
    length_s: float
    reader: Reader
    opening: list[Event] | None = None  # the first events, drawn before they may sound
    ids: list[int] = field(default_factory=list)
    sounding: set[int] = field(default_factory=set)
    origin_s: float | None = None
    is_whole: bool = False  # to its end


@dataclass
class Conversation:
    """`hear` takes messages, `work` does one due step, and `next_s` is the time of the next one."""

    keyboard: Keyboard
    idiom: Idiom
    partner: Partner
    playback: Playback
    clock: Callable[[], float]
    pause_s: float  # without a key down, which ends a phrase
    reply_s: float | None  # length of a reply; None: as long as the phrase
    reply: Reply | None = None
    look_s: float = inf  # when the model reads the phrase next
    interruptions: int = 0

    @property
    def due_s(self) -> float:
        """The end of the pause; infinity if there is none."""
        keys = self.keyboard
        return keys.free_s + self.pause_s if keys.start_s is not None and keys.hands_up else inf

    @property
    def is_idle(self) -> bool:
        """Whether nothing will happen until the player plays."""
        return self.reply is None and self.due_s == inf

    @property
    def prepare_s(self) -> float:
        """The time to begin a reply: before its turn, but not while messages may still come."""
        return min(self.due_s, max(self.keyboard.last_s + LOOK_S, self.due_s - PREPARE_S))

    def next_s(self) -> float:
        reply = self.reply
        if reply is None:
            return min(self.look_s, self.prepare_s)
        if reply.origin_s is None:
            return reply.due_s if reply.opening is not None else -inf
        return reply.origin_s + (reply.length_s if reply.is_whole else reply.reader.clock_s - AHEAD_S)

    def hear(self, at_s: float, message: Any) -> None:
        """Takes a mido message. A note ends a reply that sounds; a changed phrase takes back one that does not."""
        is_onset = self.keyboard.hear(at_s, message)
        if self.reply is not None and self.reply.origin_s is None:
            if is_onset or not np.array_equal(self._phrase(self.reply.due_s), self.reply.phrase):
                self.partner.take_back()
                self.reply = None
        elif is_onset and self.reply is not None:
            self.playback.silence(self.clock())
            self.interruptions += 1
            self._end(at_s)
        self.look_s = min(self.look_s, at_s + LOOK_S)

    def work(self) -> None:
        """Draws at most one token of a reply, or looks at the phrase."""
        now_s = self.clock()
        if self.reply is not None:
            self._play(self.reply, now_s)
        elif now_s >= self.prepare_s:
            self._begin()
        elif now_s >= self.look_s:
            self._look(now_s)

    def _look(self, now_s: float) -> None:
        keys = self.keyboard
        if keys.start_s is not None:
            self.partner.hear(self.idiom.ids(keys.score(now_s + FAR_S), now_s - SETTLE_S - keys.start_s))
        certain_s = keys.last_s + LOOK_S
        self.look_s = certain_s if certain_s > now_s else inf

    def _phrase(self, until_s: float) -> Ids:
        return self.idiom.ids(self.keyboard.score(until_s), inf)

    def _begin(self) -> None:
        keys, due_s = self.keyboard, self.due_s
        assert keys.start_s is not None
        phrase = self._phrase(due_s)
        self.partner.hear(phrase)
        self.partner.begin()
        length_s = self.reply_s or keys.free_s - keys.start_s
        self.reply, self.look_s = Reply(phrase, due_s, length_s, self.idiom.reader()), inf

    def _play(self, reply: Reply, now_s: float) -> None:
        if now_s < self.next_s():
            return
        if reply.opening is not None and reply.origin_s is None:
            self.playback.begin(now_s - reply.due_s)
            self.keyboard.forget()
            reply.origin_s = now_s
            self._schedule(reply, reply.opening)
        elif reply.is_whole:
            self._end(now_s)
        else:
            self._draw(reply)

    def _draw(self, reply: Reply) -> None:
        id_ = self.partner.draw(opening=reply.opening is None)
        reply.ids.append(id_)
        events = reply.reader.read(id_)
        reply.is_whole = reply.reader.clock_s >= reply.length_s
        if reply.origin_s is None:
            if events or reply.is_whole:
                reply.opening = events
            return
        now_s = self.clock()  # drawing took time
        if events and now_s - reply.origin_s - events[0].at_s > STUMBLE_S:
            reply.origin_s = now_s - events[0].at_s
        self._schedule(reply, events)

    def _schedule(self, reply: Reply, events: list[Event]) -> None:
        assert reply.origin_s is not None
        events = [event for event in events if event.at_s < reply.length_s]
        for event in events:
            (reply.sounding.add if event.velocity else reply.sounding.discard)(event.pitch)
        if reply.is_whole:
            events += [Event(reply.length_s, pitch, 0) for pitch in sorted(reply.sounding)]
        self.playback.schedule(Event(reply.origin_s + at_s, pitch, v) for at_s, pitch, v in events)

    def _end(self, at_s: float) -> None:
        reply, self.reply = self.reply, None
        assert reply is not None
        duration_s = at_s - reply.origin_s if reply.origin_s is not None else 0.0
        ids = np.array(reply.ids, dtype=np.uint16)
        self.partner.end(self.idiom.prefix(ids, min(max(duration_s, 0.0), reply.length_s)))
