"""The interface of an encoding."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, UserError
from musictx.music.score import Score
from musictx.tokenizers.vocab import Ids, Vocab

if TYPE_CHECKING:
    from musictx.tokenizers.grammar import Grammar
    from musictx.tokenizers.rules import Rules

Indices = NDArray[np.int64]
NotesByStep = dict[tuple[int, int, int], list[int]]  # (program, pitch, step) -> notes of the score that begin there


class Trace(NamedTuple):
    """The music of ids (T,), token by token."""

    score: Score  # (N,) decoded from the tokens
    time_s: NDArray[Any]  # (T,) the music's time at each token
    note: Indices  # (T,) the note of `score` that the token belongs to; -1: none, as for a wait
    struck_by: Indices  # (N,) the token that begins each note


def notes_by_step(score: Score, step_s: float) -> NotesByStep:
    """The notes of a score on a grid, by program, pitch and step."""
    notes: NotesByStep = defaultdict(list)
    step = np.rint(score.onset_s / step_s).astype(np.int64)
    for n, key in enumerate(zip(score.program.tolist(), score.pitch.tolist(), step.tolist(), strict=True)):
        notes[key].append(n)
    return notes


def _span(pitch: Indices) -> tuple[int, int] | None:
    sounding = pitch[pitch >= 0]
    return (int(sounding.min()), int(sounding.max())) if sounding.size else None


class Event(NamedTuple):
    """A note begins, or ends if the velocity is 0."""

    at_s: float
    pitch: int
    velocity: int


class Reader(Protocol):
    """Reads a reply id by id; `clock_s` is its time so far, in seconds."""

    clock_s: float

    def read(self, id_: int) -> list[Event]:
        """The events that are certain after one more id."""
        ...


class Idiom(Protocol):
    """Live playing of an encoding. `waits` (V,) marks ids that let time pass without a note."""

    waits: NDArray[np.bool_]

    def ids(self, score: Score, now_s: float) -> Ids:
        """The ids of a phrase that no note from `now_s` on can change."""
        ...

    def prefix(self, ids: Ids, seconds: float) -> Ids:
        """The ids of a reply up to `seconds`, with all notes released."""
        ...

    def reader(self) -> Reader: ...


class Tokenizer:
    """An encoding; `state` is learned from a corpus, as JSON. Raises UserError for a state without use."""

    name: str
    state: str
    vocab: Vocab
    pitched: tuple[str, ...] = ()  # the event types whose values are pitches
    group = 1  # ids come in groups of this many; windows and prompts are cut between groups
    voices = 0  # voices on a grid of sixteenths, one note each at a time; 0: any number of notes, at any time
    metrical = False  # it counts beats: read files with one tempo, which spaces beats evenly
    programs = False  # its ids say which instrument plays
    ruled = False  # it has a grammar: not every id may follow every other
    pace: NDArray[Any] | None = None  # (V,) how far each id moves the clock; None if an id does not say
    pitch: NDArray[np.int64]  # (V,) the pitch of every id; -1 where it has none, or several

    def __init__(self, state: str = "") -> None:
        if state:
            raise UserError(f"tokenizer {self.name} learns no BPE merges, and was given some")
        self.state, self.pitch = state, self.vocab.values(*self.pitched)

    @property
    def lo(self) -> int:
        """The lowest pitch of the vocabulary; 0 if unknown."""
        return (_span(self.pitch) or (0, 127))[0]

    @property
    def hi(self) -> int:
        """The highest pitch of the vocabulary; 127 if unknown."""
        return (_span(self.pitch) or (0, 127))[1]

    def encode(self, score: Score) -> Ids:
        """(T,) ids of the whole score, without BOS and EOS. Raises TokenError."""
        raise NotImplementedError

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """Any ids up to the first EOS as a Score. Raises TokenError for ids outside the vocabulary."""
        raise NotImplementedError

    def normalise(self, score: Score) -> Score:
        """The score as this encoding writes it."""
        return self.decode(self.encode(score), score.quarter_s)

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> float:
        """The duration of a stream of ids."""
        return self.decode(ids, quarter_s).duration_s

    def lines(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> list[Score]:
        """The notes of each voice, the highest first; none without voices."""
        return []

    def silence(self, seconds: float, quarter_s: float = 0.5) -> Ids:
        """Ids that let so much time pass; none where notes carry their times."""
        return np.zeros(0, dtype=np.uint16)

    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None:
        """The lowest and the highest pitch in a window of ids; None without any."""
        return _span(self.pitch[ids])

    def transpose(self, ids: Ids, semitones: int) -> Ids:
        """A window with every pitch moved; the caller keeps it within `lo` … `hi`."""
        return np.where(self.pitch[ids] >= 0, ids + np.int32(semitones), ids).astype(np.uint16)

    def stretch(self, ids: Ids, factor: float) -> Ids:
        """Ids with their clock slowed by `factor`. Raises ConfigError for other factors."""
        if factor != 1.0:
            why = f"{self.name} counts beats and has no clock"
            raise ConfigError("stretch", got=factor, why=why, allowed="[1.0]")
        return ids

    def grammar(
        self,
        rules: "Rules",
        prompts: Sequence[NDArray[np.integer]],
        quarter_s: Sequence[float],
        on_grid: Sequence[bool] = (),
    ) -> "Grammar":
        """The grammar after one prompt a row, at its tempo `quarter_s`. Raises ConfigError for rules that it cannot
        keep."""
        from musictx.tokenizers.grammar import Free
        from musictx.tokenizers.rules import Rules

        if rules != Rules():
            why = f"all tokens of {self.name} are legal at any time"
            raise ConfigError("rules", why=why, hint="leave the rules out")
        return Free(self, len(prompts))

    def idiom(self, quarter_s: float) -> Idiom:
        """Live playing at a tempo. Raises UserError if a note is known only with later ids."""
        raise UserError(f"a bundle of {self.name} tokens cannot play live", "give one of performance or chorale")

    def trace(self, ids: Ids, quarter_s: float) -> Trace:
        """The note of each id. Raises UserError if the encoding does not say."""
        raise UserError(f"{self.name} does not say which token belongs to which note", "give its tokenizer a trace")
