"""One person's session at the page: the music to begin with, dropped, played or chosen, its continuations, and undo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from musictx.config.web import MOST_STEPS
from musictx.errors import UserError
from musictx.generate.accompanying import Accompanied
from musictx.generate.draw import Continuation
from musictx.generate.result import Music, Place
from musictx.model.packaged import FOLDER
from musictx.music.grid import grid_to_score
from musictx.music.project import NAME, Line, Project
from musictx.music.read import read_bytes, read_tracks, whole
from musictx.music.score import Meter, Score

NAME_LENGTH = 60  # limits the name of a continuation of a continuation of …


class Reading(NamedTuple):
    """Notes and their bars, remarks on the rest of the file, and the file."""

    score: Score
    meter: Meter
    remarks: str = ""
    project: Project | None = None


class PageMusic(NamedTuple):
    """Music to begin with, as the model of that name hears it, and a remark on it."""

    name: str
    score: Score
    meter: Meter
    note: str = ""
    model: str = ""
    played: Reading | None = None  # as it sounds, for other models; None: the score itself
    written: Reading | None = None  # at its first tempo, for models that count beats; None: as it sounds
    project: Project | None = None  # the file that new music goes into

    def reading(self, in_beats: bool) -> Reading:
        """The notes before any model has heard them; `in_beats`: at their first tempo."""
        return (in_beats and self.written) or self.played or Reading(self.score, self.meter, project=self.project)


class Step(NamedTuple):
    """Music, and its continuations or harmonisations if there are any yet."""

    music: PageMusic
    takes: tuple[Continuation | Accompanied, ...] = ()
    chosen: int = 0

    @property
    def score(self) -> Score:
        """The notes that the person hears: the chosen continuation, or the music itself."""
        return self.takes[self.chosen].score if self.takes else self.music.score

    @property
    def name(self) -> str:
        return f"{self.music.name}-{self.chosen + 1}" if self.takes else self.music.name

    @property
    def filled(self) -> bool:
        """Whether the takes are the music with new music in a region."""
        return bool(self.takes) and self.takes[0].is_new is not None

    @property
    def continued(self) -> bool:
        """Whether the takes are continuations of the music."""
        return bool(self.takes) and not (self.filled or self.accompanied)

    @property
    def accompanied(self) -> bool:
        """Whether the takes are the music with voices around it."""
        return bool(self.takes) and isinstance(self.takes[0], Accompanied)

    @property
    def to_continue(self) -> PageMusic:
        """The music that Continue continues: the notes that the person hears; after a continuation the same music once
        more."""
        return self.music if self.continued else self.as_music

    @property
    def to_accompany(self) -> PageMusic:
        """The music that Accompany accompanies: the notes that the person hears; after an accompaniment the same
        melody."""
        return self.music if self.accompanied else self.as_music

    @property
    def meter(self) -> Meter:
        """The bars in which the notes that the person hears are counted."""
        return self.music.reading(in_beats=True).meter if self.accompanied else self.music.meter

    @property
    def as_music(self) -> PageMusic:
        """The same notes as music to begin with."""
        if not self.takes:
            return self.music
        name = self.name if len(self.name) <= NAME_LENGTH else self.music.name
        project = Project(self.midi, place.project.clock) if (place := self.place) is not None else None
        return PageMusic(name, self.score, self.meter, model=self.music.model, project=project)

    @property
    def place(self) -> Place | None:
        """Where the chosen take lies in a person's file."""
        take = self.takes[self.chosen] if self.takes else None
        return take.place if isinstance(take, Music) else None

    @property
    def midi(self) -> bytes:
        """The bytes of a MIDI file: the person's own, with the new notes in it."""
        take = self.takes[self.chosen] if self.takes else None
        if isinstance(take, Music):
            return take.midi()
        if self.music.project is not None:
            return self.music.project.data
        return Project.new(self.score.quarter_s, self.music.meter.signature).beside([Line(NAME, self.score)])


def are_same(one: Step | None, other: Step | None) -> bool:
    """Whether they are one step, whichever variation is chosen."""
    if one is None or other is None:
        return one is other
    return one.music is other.music and one.takes is other.takes


class Session(NamedTuple):
    """The steps a person took, the newest last. Every change returns a new Session."""

    steps: tuple[Step, ...] = ()

    @property
    def now(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def push(self, step: Step) -> Session:
        return Session((*self.steps, step)[-MOST_STEPS:])

    def arrive(self, step: Step, before: Session) -> Session:
        """With a step that was asked for in the session `before`, on top if the person did nothing meanwhile. A later
        choice stays on top, and the step is the one below. New music out of a step that they undid is left out."""
        if are_same(self.now, before.now):
            return self.push(step)
        if step.takes and not any(are_same(each, before.now) for each in self.steps):
            return self
        return Session((*self.steps[:-1], step, *self.steps[-1:])[-MOST_STEPS:])

    def undo(self) -> Session:
        return Session(self.steps[:-1])

    def choose(self, variation: int) -> Session:
        """Chooses another of the newest continuations; one that does not exist changes nothing."""
        if self.now is None or not 0 <= variation < len(self.now.takes):
            return self
        return Session((*self.steps[:-1], self.now._replace(chosen=variation)))

    def go_on(self) -> Session:
        """Begins with the chosen continuation; without one nothing changes."""
        if self.now is None or not self.now.takes:
            return self
        return self.push(Step(self.now.as_music))


CHANGE = Lock()


@dataclass
class Visit:
    """One person at the page. Their actions may overlap, and each of them changes the session as it then is."""

    session: Session = field(default_factory=Session)

    def change(self, how: Callable[[Session], Session]) -> Session:
        """The session after a change of it."""
        with CHANGE:
            self.session = how(self.session)
            return self.session


SCRIPT = (Path(__file__).parent / "keyboard.js").read_text(encoding="utf-8")
MOST_NOTES, MOST_S = 2000, 120.0
SHORTEST_S = 0.03


def read_played(notes: Any) -> PageMusic:
    """[onset_s, offset_s, pitch, velocity] for each note; time begins with the first. Raises UserError."""
    if not isinstance(notes, list) or not notes:
        raise UserError("nothing was played", "play a few notes, then take them")
    if len(notes) > MOST_NOTES:
        raise UserError(f"{len(notes)} notes were played", f"play at most {MOST_NOTES}")
    if not all(isinstance(note, list) and len(note) == 4 and all(map(is_number, note)) for note in notes):
        raise UserError("the keyboard sent something that is not music", "reload the page and play again")
    onset_s, offset_s, pitch, velocity = np.array(notes, dtype=np.float64).T
    onset_s, offset_s = onset_s - onset_s.min(), offset_s - onset_s.min()
    offset_s = np.maximum(offset_s, onset_s + SHORTEST_S)
    if offset_s.max() > MOST_S:
        raise UserError(f"{offset_s.max():.0f} s were played", f"play at most {MOST_S:g} s")
    score = Score(onset_s, offset_s, pitch.clip(0, 127).round(), velocity.clip(1, 127).round())
    return PageMusic("played", score, Meter(score.quarter_s))


def is_number(value: object) -> TypeGuard[float]:
    """Whether a browser's value is a number that can be seconds."""
    return isinstance(value, int | float) and abs(value) < 1e9


SHIPPED = {  # file name -> title
    "chorale": "The opening of a chorale",
    "elise": "Beethoven: Für Elise",
    "gymnopedie": "Satie: Gymnopédie",
}

OLD_HUNDREDTH = np.array(
    [
        [67, 67, 66, 64, 62, 67, 69, 71, 71],
        [62, 62, 62, 59, 59, 59, 60, 62, 62],
        [59, 59, 57, 55, 54, 52, 57, 55, 55],
        [55, 55, 50, 52, 47, 52, 54, 55, 55],
    ],
    np.int16,
).T  # (quarters, voices)
PRELUDE = ((60, 64, 67, 72, 76), (60, 62, 69, 74, 77), (59, 62, 67, 74, 77), (60, 64, 67, 72, 76))
ODE = (64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64)


def examples() -> dict[str, PageMusic]:
    """The music of the page by its title."""
    shipped = {}
    for name, title in SHIPPED.items():
        path = FOLDER / f"{name}.mid"
        tracks = read_tracks(data := read_bytes(path), path)
        project = Project(whole(data), tracks.tempo_map)
        shipped[title] = PageMusic(name, tracks.merge(), tracks.meter(), project=project)
    beat_s = 0.5 * np.arange(len(ODE))
    made = {
        "Old Hundredth, in four voices": grid_to_score(np.repeat(OLD_HUNDREDTH, 4, axis=0)),
        "Prelude in C, broken chords": _prelude(),
        "Ode to Joy": Score(beat_s, beat_s + 0.45, np.array(ODE), np.full(len(ODE), 80)),
    }
    return shipped | {
        title: PageMusic(title.partition(",")[0], score, Meter(score.quarter_s)) for title, score in made.items()
    }


def _prelude() -> Score:
    """Each bar plays the same eight notes twice and sustains the two lowest."""
    step_s, order = 0.2, (0, 1, 2, 3, 4, 2, 3, 4)
    pitch = np.array([bar[k] for bar in PRELUDE for _ in range(2) for k in order])
    onset_s = step_s * np.arange(len(pitch))
    ring = np.tile([8, 7, 1, 1, 1, 1, 1, 1], len(pitch) // 8)
    return Score(onset_s, onset_s + step_s * ring - 0.02, pitch, np.tile([72, 66] + [60] * 6, len(pitch) // 8))
