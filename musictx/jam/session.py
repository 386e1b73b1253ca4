"""Time: a real clock and one that jumps, a thread that sends events on time, and the loop of a conversation."""

import time
from collections.abc import Callable, Iterable
from math import inf
from threading import Condition, Thread
from threading import Event as Flag
from typing import Any

from musictx.errors import UserError
from musictx.jam.conversation import Conversation
from musictx.jam.players import MessagePlayer, PortPlayer
from musictx.jam.recording import Playback
from musictx.tokenizers.tokenizer import Event

LONGEST_WAIT_S = 0.5  # so that Ctrl-C and a lost port are noticed


class RealClock:
    """Counts seconds of the session from its creation, and never goes back."""

    def __init__(self) -> None:
        self.start_s = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self.start_s

    def wait(self, until_s: float, arrival: Flag) -> None:
        """Waits until then, until a message arrives, or for `LONGEST_WAIT_S`."""
        seconds = min(until_s - self.now(), LONGEST_WAIT_S)
        if seconds > 0:
            arrival.wait(seconds)


class VirtualClock:
    """Jumps to the next moment with something to do: an hour of music takes only as long as drawing it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def wait(self, until_s: float, arrival: Flag) -> None:
        self.now_s = max(self.now_s, until_s) if until_s < inf else self.now_s


class Sender(Playback):
    """A playback with its own thread, so a slow model delays no event."""

    def __init__(self, emit: Callable[[Event], None], clock: RealClock) -> None:
        super().__init__(emit)
        self.clock, self.condition = clock, Condition()
        self.is_closed = False
        self.error: OSError | None = None
        self.thread = Thread(target=self._run, name="sender", daemon=True)
        self.thread.start()

    def schedule(self, events: Iterable[Event]) -> None:
        with self.condition:
            super().schedule(events)
            self.condition.notify()

    def silence(self, now_s: float) -> None:
        with self.condition:
            super().silence(now_s)

    def check(self, now_s: float) -> None:
        """Raises UserError once the port takes nothing more."""
        if self.error is not None:
            raise UserError(f"the output port takes no more messages ({self.error})", "connect it again")

    def close(self, now_s: float) -> None:
        """Ends the thread, then all notes."""
        with self.condition:
            self.is_closed = True
            self.condition.notify()
        self.thread.join()
        if self.error is None:
            self.silence(now_s)

    def _run(self) -> None:
        with self.condition:
            while not self.is_closed:
                try:
                    self.due(self.clock.now())
                except OSError as error:
                    self.error = error
                    return
                left_s = self.queue[0].at_s - self.clock.now() if self.queue else None
                if left_s is None or left_s > 0:
                    self.condition.wait(left_s)


def converse(
    conversation: Conversation,
    player: MessagePlayer | PortPlayer,
    clock: RealClock | VirtualClock,
    record: Callable[[float, Any], None],
) -> None:
    """Runs until the player is done and has the last reply. `record` gets every message of the player's."""
    while not (player.is_over and conversation.is_idle):
        for at_s, message in player.take(clock.now()):
            record(at_s, message)
            conversation.hear(at_s, message)
        conversation.work()
        conversation.playback.check(clock.now())
        clock.wait(min(conversation.next_s(), player.next_s), player.arrival)
