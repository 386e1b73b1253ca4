"""Score <-> ids. `build_tokenizer(name)` is the door; both encodings obey the `Tokenizer` protocol."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.notes.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.vocab import Ids, Vocab


class Tokenizer(Protocol):
    """What data, sampling and evaluation know of an encoding."""

    name: str
    group: int  # ids come in groups of this many; windows and prompts are cut between groups
    vocab: Vocab
    lo: int  # lowest pitch of the vocabulary
    hi: int  # highest pitch of the vocabulary

    def normalise(self, score: Score) -> Score: ...
    def encode(self, score: Score) -> Ids: ...
    def decode(self, ids: NDArray[np.integer], quarter_s: float = ...) -> Score: ...
    def seconds(self, ids: NDArray[np.integer], quarter_s: float = ...) -> float: ...
    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None: ...
    def transpose(self, ids: Ids, semitones: int) -> Ids: ...
    def stretch(self, ids: Ids, factor: float) -> Ids: ...


TOKENIZERS: dict[str, type[PerformanceTokenizer] | type[ChoraleTokenizer]] = {
    "performance": PerformanceTokenizer,
    "chorale": ChoraleTokenizer,
}


def build_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name. Raises ConfigError naming the known ones."""
    if name not in TOKENIZERS:
        raise ConfigError(f"tokenizer {name!r} does not exist: choose one of {', '.join(TOKENIZERS)}")
    return TOKENIZERS[name]()


__all__ = ["Ids", "Tokenizer", "Vocab", "build_tokenizer"]
