"""The player: a person at a MIDI port, or a file that plays itself."""

import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Flag
from typing import Any

import mido

from musictx.errors import ConfigError, MidiError, UserError
from musictx.jam.recording import TimedMessage, note_offs
from musictx.model.packaged import KNOWN_SEEDS
from musictx.music.project import Project
from musictx.music.read import read_bytes, read_tracks, whole


class MessagePlayer:
    """Plays messages, each at its time."""

    def __init__(self, messages: Iterable[TimedMessage]) -> None:
        self.messages, self.arrival = deque(messages), Flag()

    @property
    def next_s(self) -> float:
        """The time of the next message; infinity if unknown."""
        return self.messages[0][0] if self.messages else inf

    @property
    def is_over(self) -> bool:
        """Whether no message will ever come."""
        return not self.messages

    def take(self, now_s: float) -> list[TimedMessage]:
        """The new messages up to now, in order of time."""
        messages = []
        while self.next_s <= now_s:
            messages.append(self.messages.popleft())
        return messages

    def close(self) -> None:
        """Does nothing; a port has it too."""


class FilePlayer(MessagePlayer):
    """Plays the notes and pedals of a MIDI file. Raises MidiError for a damaged file, UserError for a silent one."""

    def __init__(self, path: Path) -> None:
        data = read_bytes(path)
        tracks = read_tracks(data, path)
        if not len(tracks.merge()):
            raise UserError(f"{path}: the file has no notes to play", "give one with music in it, other than drums")
        self.quarter_s = tracks.quarter_s
        self.project = Project(whole(data, path), tracks.tempo_map)
        try:
            super().__init__(_messages(whole(data, path)))
        except Exception as error:  # damage can make mido raise anything
            detail = " ".join(str(error).split())[:100] or type(error).__name__
            raise MidiError(path, f"damaged MIDI file ({detail})", "write it again with another program") from None


def _messages(data: bytes) -> list[TimedMessage]:
    now_s, out = 0.0, list[TimedMessage]()
    for message in mido.MidiFile(file=io.BytesIO(data), clip=True):
        now_s += message.time
        if not message.is_meta and hasattr(message, "channel"):
            out.append((now_s, message))
    return out + note_offs(out, now_s)


class PortPlayer:
    """A person at a MIDI port; `arrival` is set while messages wait for `take`. Raises ConfigError."""

    next_s, is_over = inf, False

    def __init__(self, name: str, virtual: bool, clock: Callable[[], float]) -> None:
        self.clock, self.arrival = clock, Flag()
        self.queue: SimpleQueue[TimedMessage] = SimpleQueue()
        self.port = open_port("input", name, virtual, callback=self._receive)

    def _receive(self, message: Any) -> None:
        self.queue.put((self.clock(), message))
        self.arrival.set()

    def take(self, now_s: float) -> list[TimedMessage]:
        self.arrival.clear()
        return [self.queue.get() for _ in range(self.queue.qsize())]

    def close(self) -> None:
        self.port.close()


def open_port(kind: str, name: str, virtual: bool, **options: Any) -> Any:
    """Opens the `input` or `output` whose name contains these words, or creates a virtual one. Raises ConfigError.

    With `callback`, messages go there in a thread of the system's.
    """
    opening, listing = getattr(mido, f"open_{kind}"), getattr(mido, f"get_{kind}_names")
    file = "a MIDI file that ends in .mid" + (f", or {KNOWN_SEEDS}" if kind == "input" else "")
    try:
        with _quiet():
            if virtual:
                return opening(name, virtual=True, **options)
            names = list(dict.fromkeys(listing()))
            matches = [name] if name in names else [each for each in names if name.lower() in each.lower()]
            if len(matches) == 1:
                return opening(matches[0], **options)
    except ImportError as error:
        why = f"MIDI ports need the package python-rtmidi ({error})"
        raise ConfigError(kind, got=name, why=why, hint=f"pip install 'musictx[jam]', or give {file}") from None
    except (OSError, NotImplementedError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        why = f"it cannot be opened ({reason})"
        raise ConfigError(kind, got=name, why=why, allowed=f"another port, or {file}") from None
    why, there = f"no such MIDI {kind} port", f"one of {', '.join(map(repr, names))}, or "
    if not names:
        why, there = f"there is no MIDI {kind} port to connect to", ""
    raise ConfigError(kind, got=name, why=why, allowed=there + file)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences stderr: without a device or server, ALSA and JACK print messages there, past Python."""
    sys.stderr.flush()
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
