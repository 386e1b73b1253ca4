"""What one encoding gives: ids of music and music of ids, how it is spoken live, and which note each token is about."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError
from musictx.music.score import Score
from musictx.tokenizers.vocab import Ids, Vocab

if TYPE_CHECKING:
    from musictx.tokenizers.grammar import Grammar
    from musictx.tokenizers.rules import Rules

Indices = NDArray[np.int64]
Waiting = dict[tuple[int, int, int], list[int]]  # (program, pitch, step) -> notes of the score that are struck then


class Trace(NamedTuple):
    """The music of a piece's ids (T,), token by token."""

    score: Score  # (N,) as the tokens say it
    time_s: NDArray[Any]  # (T,) of the music when the token stands
    note: Indices  # (T,) the note of `score` that it belongs to; -1: none, as for a wait
    struck_by: Indices  # (N,) the token that begins each note


def waiting_notes(score: Score, step_s: float) -> Waiting:
    """The notes of a score on a grid, by what their tokens say of them."""
    waiting: Waiting = defaultdict(list)
    step = np.rint(score.onset_s / step_s).astype(np.int64)
    for n, key in enumerate(zip(score.program.tolist(), score.pitch.tolist(), step.tolist(), strict=True)):
        waiting[key].append(n)
    return waiting


class Event(NamedTuple):
    """A note begins, or ends where the velocity is 0."""

    at_s: float
    pitch: int
    velocity: int


class Reader(Protocol):
    """A reply, read id by id; its times are seconds from where it begins, `clock_s` how far it has come."""

    @property
    def clock_s(self) -> float: ...

    def read(self, id_: int) -> list[Event]:
        """What is known to sound after one more id."""
        ...


class Idiom(Protocol):
    """`waits` (V,): True for ids that let time pass without a note."""

    waits: NDArray[np.bool_]

    def ids(self, score: Score, now_s: float) -> Ids:
        """The ids of a phrase that no note from `now_s` on can change; all of them at infinity."""
        ...

    def heard(self, ids: Ids, seconds: float) -> Ids:
        """What has been heard of a reply's ids so many seconds after its beginning, all notes let go."""
        ...

    def reader(self) -> Reader: ...


class Tokenizer:
    """`state` is what it has learnt from a corpus, as JSON. Raises ConfigError for one where nothing is learnt."""

    name: str
    state: str
    vocab: Vocab
    pitched: tuple[str, ...] = ()  # the event types whose values are pitches
    group = 1  # ids come in groups of this many; windows and prompts are cut between groups
    voices = 0  # parts on a grid of sixteenths, one note each at a time; 0: notes of any number, at any time
    metrical = False  # it counts beats: read files with one tempo, which spaces beats evenly
    programs = False  # its ids say which instrument plays
    melody: int | None = None  # the program of the notes that are a melody, where ids tell it from the rest: `apart`
    ruled = False  # it has a grammar: not every id may follow every other
    pace: NDArray[Any] | None = None  # (V,) how far each id moves the clock; None where ids alone do not say
    pitch: NDArray[np.int64]  # (V,) of every id; -1 where it has none, or several

    def __init__(self, state: str = "") -> None:
        if state:
            raise ConfigError(f"tokenizer {self.name} learns no BPE merges, and was given some")
        self.state, self.pitch = state, self.vocab.values(*self.pitched)

    @property
    def lo(self) -> int:
        """The lowest pitch of the vocabulary; 0 where no id is known to have one."""
        known = self.pitch[self.pitch >= 0]
        return int(known.min()) if known.size else 0

    @property
    def hi(self) -> int:
        """The highest pitch of the vocabulary; 127 where no id is known to have one."""
        known = self.pitch[self.pitch >= 0]
        return int(known.max()) if known.size else 127

    def encode(self, score: Score) -> Ids:
        """(T,) ids of the whole score, without BOS and EOS. Raises TokenError for music it cannot say."""
        raise NotImplementedError

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """Any ids up to the first EOS as a Score: what is no music is left out. Raises TokenError for ids outside the
        vocabulary."""
        raise NotImplementedError

    def normalise(self, score: Score) -> Score:
        """The score as this encoding hears it."""
        return self.decode(self.encode(score), score.quarter_s)

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> float:
        """How much time a stream of ids takes."""
        return self.decode(ids, quarter_s).duration_s

    def silence(self, seconds: float, quarter_s: float = 0.5) -> Ids:
        """Ids that let so much time pass; none where it is the next note that says when it comes."""
        return np.zeros(0, dtype=np.uint16)

    def apart(self, ids: NDArray[np.integer]) -> tuple[Ids, Ids]:
        """A window's melody and the rest of it, each with waits of its own and as long as the window. Raises
        ConfigError where ids do not tell them apart."""
        raise ConfigError(f"{self.name} ids do not tell a melody from the rest: choose tokenizer=performance_melody")

    def certain(self, ids: Ids) -> Ids:
        """A window's ids without a wait at its end that would be longer if the window were: of that, only whole shifts
        are certain."""
        cut_short = self.pace is not None and len(ids) > 0 and 0 < self.pace[ids[-1]] < self.pace.max()
        return ids[: len(ids) - cut_short]

    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None:
        """Lowest and highest pitch in a window of ids; None when there is none."""
        pitch = self.pitch[ids]
        pitch = pitch[pitch >= 0]
        return (int(pitch.min()), int(pitch.max())) if pitch.size else None

    def transpose(self, ids: Ids, semitones: int) -> Ids:
        """A window of ids, every pitch moved; the caller keeps it within `lo` … `hi`."""
        return np.where(self.pitch[ids] >= 0, ids + np.int32(semitones), ids).astype(np.uint16)

    def stretch(self, ids: Ids, factor: float) -> Ids:
        """Ids with their clock slowed. Raises TokenError where beats are counted: there only factor 1 is allowed."""
        if factor != 1.0:
            raise TokenError(f"stretch {factor}: {self.name} counts beats and has no clock; set data.stretch=[1.0]")
        return ids

    def grammar(
        self, rules: "Rules", prompts: Sequence[NDArray[np.integer]], quarter_s: Sequence[float], device: Any
    ) -> "Grammar":
        """Which ids may come next, after a prompt a row, at that row's tempo. Raises ConfigError for rules that it
        cannot keep; `build_grammar` is the door."""
        from musictx.tokenizers.grammar import Free
        from musictx.tokenizers.rules import Rules

        if rules != Rules():
            raise ConfigError(f"rules.…: all tokens of {self.name} are legal at any time; leave the rules out")
        return Free(self, len(prompts), device)

    def idiom(self, quarter_s: float) -> Idiom:
        """How it is spoken live. Raises ConfigError where a note is known only when more of the music is."""
        raise ConfigError(f"a bundle of {self.name} tokens cannot play live: give one of performance or chorale")

    def trace(self, ids: Ids, quarter_s: float) -> Trace:
        """Which note each of the ids is about that `encode` made. Raises ConfigError where that cannot be told."""
        raise ConfigError(f"{self.name} does not tell which token belongs to which note: give its tokenizer a trace")
