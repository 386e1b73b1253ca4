"""Score <-> ids. `build_tokenizer(name, state)` is the door; all encodings obey the `Tokenizer` protocol."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.notes.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import EventGrammar, GridGrammar
from musictx.tokenizers.miditok import KINDS, MAX_IDS, MidiTokTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.vocab import EventRange, Ids, Vocab


class Tokenizer(Protocol):
    """What data, sampling and evaluation know of an encoding."""

    name: str
    group: int  # ids come in groups of this many; windows and prompts are cut between groups
    voices: int  # parts on a grid of sixteenths, one note each at a time; 0: notes of any number, at any time
    vocab: Vocab
    lo: int  # lowest pitch of the vocabulary
    hi: int  # highest pitch of the vocabulary
    state: str  # what it has learnt from a corpus, as JSON: the merges of BPE; "" when nothing
    pace: NDArray[Any] | None  # (V,) how far each id moves the clock; None where ids alone do not say
    metrical: bool  # it counts beats: read files with one tempo, which spaces beats evenly
    programs: bool  # its ids say which instrument plays

    @property
    def grammar(self) -> EventGrammar | GridGrammar | None:
        """What each id does to the music; None where any id may follow any other."""
        ...

    def normalise(self, score: Score) -> Score: ...
    def encode(self, score: Score) -> Ids: ...
    def decode(self, ids: NDArray[np.integer], quarter_s: float = ...) -> Score: ...
    def seconds(self, ids: NDArray[np.integer], quarter_s: float = ...) -> float: ...
    def silence(self, seconds: float, quarter_s: float = ...) -> Ids: ...
    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None: ...
    def transpose(self, ids: Ids, semitones: int) -> Ids: ...
    def stretch(self, ids: Ids, factor: float) -> Ids: ...


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "performance": PerformanceTokenizer,
    "chorale": ChoraleTokenizer,
}


def build_tokenizer(name: str, state: str = "", added: Iterable[Iterable[Any]] = ()) -> Tokenizer:
    """The tokenizer of that name, with what it has learnt, and with ids that an objective adds, (type, min, max) each.
    Raises ConfigError naming the known ones, for a package that is not installed, and for a state that is not this
    tokenizer's."""
    return with_added(_by_name(name, state), (EventRange(*row) for row in added))


def _by_name(name: str, state: str) -> Tokenizer:
    if name in KINDS:
        return MidiTokTokenizer(name, state)
    if name not in TOKENIZERS:
        known = ", ".join([*TOKENIZERS, *KINDS])
        raise ConfigError(f"tokenizer {name!r} does not exist: choose one of {known}")
    if state:
        raise ConfigError(f"tokenizer {name} learns no BPE merges, and was given some")
    return TOKENIZERS[name]()


def with_added(tokenizer: Tokenizer, added: Iterable[EventRange]) -> Tokenizer:
    """The tokenizer with more ids after all of its own, which no music is written with: they mean something to an
    objective alone, take no time and are never drawn. Its stores stay as they are. Raises ConfigError for a type that
    is there already, and for more ids than MAX_IDS."""
    rows = tuple(added)
    if not rows:
        return tokenizer
    vocab = replace(tokenizer.vocab, added=rows)
    types = [row.type for row in vocab.table]
    if twice := sorted({type for type in types if types.count(type) > 1}):
        raise ConfigError(f"added ids {', '.join(twice)}: the vocabulary has these already; give them other names")
    if min(row.hi - row.lo for row in rows) < 0 or vocab.size > MAX_IDS:
        raise ConfigError(f"added ids {', '.join(map(str, rows))}: give types with 1 id or more, {MAX_IDS} ids in all")
    grown: Any = copy.copy(tokenizer)
    grown.vocab = vocab
    if tokenizer.pace is not None:
        grown.pace = np.pad(tokenizer.pace, (0, vocab.size - len(tokenizer.pace)))
    if tokenizer.grammar is not None:
        grown.grammar = tokenizer.grammar.of(vocab)
    done: Tokenizer = grown
    return done


def knows_one_piano(tokenizer: Tokenizer) -> bool:
    """Whether its notes have neither voices nor instruments."""
    return not (tokenizer.voices or tokenizer.programs)


__all__ = ["EventRange", "Ids", "Tokenizer", "Vocab", "build_tokenizer", "knows_one_piano", "with_added"]
