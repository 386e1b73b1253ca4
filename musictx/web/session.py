"""What one person has at the page: music to begin with, what came of it, and the way back."""

from __future__ import annotations

from typing import NamedTuple

from musictx.accompanying import Accompanied
from musictx.notes.meter import Meter
from musictx.notes.score import Score
from musictx.sampling.music import Continuation
from musictx.web.limits import MOST_STEPS

NAME_LENGTH = 60  # of music that came of music that came of music …


class Heard(NamedTuple):
    """Notes and their bars."""

    score: Score
    meter: Meter


class Music(NamedTuple):
    """Something to begin with as the model of that name hears it, and what a person should know of it."""

    name: str
    score: Score
    meter: Meter
    note: str = ""
    model: str = ""
    played: Heard | None = None  # as it sounds, what another model would hear it from; None: the score itself
    written: Heard | None = None  # at its first tempo, for models that count beats; None: as it sounds
    tracks: int = 1  # that sound, without the drums
    drums: bool = False  # there were some, which are left out


class Step(NamedTuple):
    """Music, and its continuations, or its melody with voices, if there are any yet."""

    music: Music
    takes: tuple[Continuation | Accompanied, ...] = ()
    chosen: int = 0

    @property
    def score(self) -> Score:
        """What is heard: the chosen continuation, or the music itself."""
        return self.takes[self.chosen].score if self.takes else self.music.score

    @property
    def name(self) -> str:
        return f"{self.music.name}-{self.chosen + 1}" if self.takes else self.music.name

    @property
    def filled(self) -> bool:
        """Whether the takes are the music with a region written anew."""
        return bool(self.takes) and self.takes[0].is_new is not None

    @property
    def as_music(self) -> Music:
        """What is heard as music to begin with."""
        if not self.takes:
            return self.music
        name = self.name if len(self.name) <= NAME_LENGTH else self.music.name
        return Music(name, self.score, self.music.meter, model=self.music.model)


class Session(NamedTuple):
    """The steps a person took, the newest last. Every change returns a new Session."""

    steps: tuple[Step, ...] = ()

    @property
    def now(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def push(self, step: Step) -> Session:
        return Session((*self.steps, step)[-MOST_STEPS:])

    def undo(self) -> Session:
        return Session(self.steps[:-1])

    def choose(self, variation: int) -> Session:
        """Another of the newest continuations; one that does not exist changes nothing."""
        if self.now is None or not 0 <= variation < len(self.now.takes):
            return self
        return Session((*self.steps[:-1], self.now._replace(chosen=variation)))

    def go_on(self) -> Session:
        """The chosen continuation as music to begin with; without one nothing changes."""
        if self.now is None or not self.now.takes:
            return self
        return self.push(Step(self.now.as_music))
