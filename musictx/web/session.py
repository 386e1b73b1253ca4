"""A person's session at the page: music, its continuations, and undo."""

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
from musictx.generate.continuation import Continuation
from musictx.generate.result import Music
from musictx.generate.score_music import ScoreMusic
from musictx.model.packaged import FOLDER
from musictx.music.grid import grid_to_score
from musictx.music.notation.notation import Notation
from musictx.music.project import NAME, Line, Project
from musictx.music.read import read_bytes, read_tracks, whole
from musictx.music.score import Meter, Score

NAME_LENGTH = 60  # limits the name of a continuation of a continuation of …


class Reading(NamedTuple):
    """Notes and bars of a file, remarks on the rest, and the file."""

    score: Score
    meter: Meter
    remarks: str = ""
    project: Project | None = None
    parts: tuple[Score, ...] = ()  # also drums


class PageMusic(NamedTuple):
    """Music to begin with, in the notes of a model, and a remark."""

    name: str
    score: Score
    meter: Meter
    note: str = ""
    model: str = ""
    seconds_reading: Reading | None = None  # as it sounds, for other models; None: the score itself
    beats_reading: Reading | None = None  # at its first tempo, for models that count beats; None: as it sounds
    project: Project | None = None  # the file that new music goes into
    notation: Notation | None = None  # the score, for a model of scores
    written: Notation | None = None  # as the person's file has it; None for MIDI

    def reading(self, in_beats: bool) -> Reading:
        """The notes of the file, or `in_beats` those at its first tempo."""
        return (
            (in_beats and self.beats_reading)
            or self.seconds_reading
            or Reading(self.score, self.meter, project=self.project)
        )


class Step(NamedTuple):
    """Music, and its takes, if there are any."""

    music: PageMusic
    takes: tuple[Continuation | Accompanied, ...] = ()
    chosen: int = 0

    @property
    def score(self) -> Score:
        """The notes of the chosen take, or of the music."""
        return self.takes[self.chosen].score if self.takes else self.music.score

    @property
    def name(self) -> str:
        return f"{self.music.name}-{self.chosen + 1}" if self.takes else self.music.name

    @property
    def is_fill(self) -> bool:
        """Whether the takes fill a region."""
        return bool(self.takes) and self.takes[0].is_new is not None and not self.is_accompaniment

    @property
    def is_continuation(self) -> bool:
        """Whether the takes continue the music."""
        return bool(self.takes) and not (self.is_fill or self.is_accompaniment)

    @property
    def is_accompaniment(self) -> bool:
        """Whether the takes have voices around the music, or hands beside it."""
        take = self.takes[0] if self.takes else None
        return isinstance(take, Accompanied) or (isinstance(take, ScoreMusic) and take.template.has_new_parts)

    @property
    def to_continue(self) -> PageMusic:
        """The music for Continue: the chosen notes, after a continuation the same music again."""
        return self.music if self.is_continuation else self.as_music

    @property
    def to_accompany(self) -> PageMusic:
        """The music for Accompany: the chosen notes, after an accompaniment the same melody."""
        return self.music if self.is_accompaniment else self.as_music

    @property
    def meter(self) -> Meter:
        """The bars of the chosen notes."""
        voices = bool(self.takes) and isinstance(self.takes[0], Accompanied)
        return self.music.reading(in_beats=True).meter if voices else self.music.meter

    @property
    def as_music(self) -> PageMusic:
        """The chosen notes as music to begin with."""
        if not self.takes:
            return self.music
        name = self.name if len(self.name) <= NAME_LENGTH else self.music.name
        file = self.file
        project = None if file is None else Project(self.midi, file.clock)
        written = self.notation if self.music.written is not None else None
        music = PageMusic(name, self.score, self.meter, model=self.music.model)
        return music._replace(project=project, notation=self.notation, written=written)

    @property
    def file(self) -> Project | None:
        """The person's file, into which the chosen take goes."""
        take = self.takes[self.chosen] if self.takes else None
        if isinstance(take, ScoreMusic):
            return take.source.project
        return take.place.project if isinstance(take, Music) and take.place is not None else None

    @property
    def notation(self) -> Notation | None:
        """The score of the chosen take, or of the music; None if no model of scores has it."""
        take = self.takes[self.chosen] if self.takes else None
        if take is None:
            return self.music.notation
        return take.notation if isinstance(take, ScoreMusic) else None

    @property
    def new_places(self) -> frozenset[tuple[int, int]]:
        """The staves of the score, from the top, and their bars that are new, from 0."""
        take = self.takes[self.chosen] if self.takes else None
        if not isinstance(take, ScoreMusic):
            return frozenset()
        slots = zip(take.notation.given_staves, take.template.slots, strict=True)
        return frozenset((n, bar) for n, slot in slots for drawn, bar in take.template.free if slot == drawn)

    @property
    def midi(self) -> bytes:
        """The bytes of the person's MIDI file with the new notes."""
        take = self.takes[self.chosen] if self.takes else None
        if isinstance(take, Music):
            return take.midi()
        if self.music.project is not None:
            return self.music.project.data
        return Project.new(self.score.quarter_s, self.music.meter.signature).beside([Line(NAME, self.score)])

    @property
    def heard(self) -> Score:
        """The notes of the MIDI file, drums and all, in the seconds of `score`."""
        file = self.music.project
        one_tempo = file is not None and len(file.clock.tempo) == 1  # also where the file itself changes its tempo
        return read_tracks(self.midi, self.name, one_tempo=one_tempo).merge(drums=True)


def are_same(one: Step | None, other: Step | None) -> bool:
    """Whether they are one step, whatever its variation."""
    if one is None or other is None:
        return one is other
    return one.music is other.music and one.takes is other.takes


class Session(NamedTuple):
    """The steps of a person, the newest last. Every change returns a new Session."""

    steps: tuple[Step, ...] = ()

    @property
    def now(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def push(self, step: Step) -> Session:
        return Session((*self.steps, step)[-MOST_STEPS:])

    def arrive(self, step: Step, before: Session) -> Session:
        """Adds a step of the session `before`: on top, below a later choice, or not at all if the person undid its
        music."""
        if are_same(self.now, before.now):
            return self.push(step)
        if step.takes and not any(are_same(each, before.now) for each in self.steps):
            return self
        return Session((*self.steps[:-1], step, *self.steps[-1:])[-MOST_STEPS:])

    def undo(self) -> Session:
        return Session(self.steps[:-1])

    def choose(self, variation: int) -> Session:
        """Chooses another take; one that does not exist changes nothing."""
        if self.now is None or not 0 <= variation < len(self.now.takes):
            return self
        return Session((*self.steps[:-1], self.now._replace(chosen=variation)))

    def go_on(self) -> Session:
        """Begins with the chosen take; without one nothing changes."""
        if self.now is None or not self.now.takes:
            return self
        return self.push(Step(self.now.as_music))


CHANGE = Lock()


@dataclass
class Visit:
    """One person at the page; their actions may overlap, and each changes the session of its moment."""

    session: Session = field(default_factory=Session)

    def change(self, how: Callable[[Session], Session]) -> Session:
        with CHANGE:
            self.session = how(self.session)
            return self.session


SCRIPT = (Path(__file__).parent / "keyboard.js").read_text(encoding="utf-8")
MOST_NOTES, MOST_S = 2000, 120.0
SHORTEST_S = 0.03


def read_phrase(notes: Any) -> PageMusic:
    """The music of [onset_s, offset_s, pitch, velocity] notes, from the first on. Raises UserError."""
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
    """Whether a browser's value can be seconds."""
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
    """The music of the page by title."""
    files = {}
    for name, title in SHIPPED.items():
        path = FOLDER / f"{name}.mid"
        tracks = read_tracks(data := read_bytes(path), path)
        project = Project(whole(data, path), tracks.tempo_map)
        files[title] = PageMusic(name, tracks.merge(), tracks.meter(), project=project)
    beat_s = 0.5 * np.arange(len(ODE))
    phrases = {
        "Old Hundredth, in four voices": grid_to_score(np.repeat(OLD_HUNDREDTH, 4, axis=0)),
        "Prelude in C, broken chords": _prelude(),
        "Ode to Joy": Score(beat_s, beat_s + 0.45, np.array(ODE), np.full(len(ODE), 80)),
    }
    return files | {
        title: PageMusic(title.partition(",")[0], score, Meter(score.quarter_s)) for title, score in phrases.items()
    }


def _prelude() -> Score:
    """Bars of eight notes twice, the two lowest sustained."""
    step_s, order = 0.2, (0, 1, 2, 3, 4, 2, 3, 4)
    pitch = np.array([bar[k] for bar in PRELUDE for _ in range(2) for k in order])
    onset_s = step_s * np.arange(len(pitch))
    ring = np.tile([8, 7, 1, 1, 1, 1, 1, 1], len(pitch) // 8)
    return Score(onset_s, onset_s + step_s * ring - 0.02, pitch, np.tile([72, 66] + [60] * 6, len(pitch) // 8))
