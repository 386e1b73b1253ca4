"""Labels of notes as ids: after each id that strikes a note comes the id of its label, which no model reads."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.tokenizers import EventRange, Tokenizer, with_added
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.performance.events import STEPS_PER_S
from musictx.tokenizers.vocab import Ids

LABEL = "LABEL"
MOST_LABELS = 100  # `Score.program` numbers them


def with_labels(tokenizer: Tokenizer, labels: int) -> Tokenizer:
    """The tokenizer with an id for each label. Raises ConfigError for an encoding that does not strike each note in
    seconds."""
    if not isinstance(tokenizer, PerformanceTokenizer) or tokenizer.melody is not None:
        why = "its ids do not strike each note by an id"
        raise ConfigError("TokenizerConfig.name", got=tokenizer.name, why=why, allowed="performance")
    return with_added(tokenizer, [EventRange(LABEL, 0, labels - 1)])


def strikes(tokenizer: Tokenizer, ids: NDArray[Any]) -> NDArray[np.intp]:
    """(K,) where the ids (T,) strike a note."""
    return np.flatnonzero(tokenizer.vocab.mask("NOTE_ON")[ids])


def labels_of(tokenizer: Tokenizer, ids: NDArray[Any], score: Score) -> NDArray[np.int64]:
    """(K,) the label of each note that the ids of a whole score strike: `score.program` numbers labels. Of notes of one
    pitch in one step the encoding writes one, with the smallest label."""
    order = np.argsort(-score.program.astype(int), kind="stable")
    pitch, step = score.pitch[order].tolist(), steps(score)[order].tolist()
    known = dict(zip(zip(pitch, step, strict=True), score.program[order].tolist(), strict=True))
    return np.array([known[key] for key in struck(tokenizer, ids)])


def steps(score: Score) -> NDArray[np.int64]:
    """(N,) the step of the encoding's clock at which each note begins."""
    found: NDArray[np.int64] = np.rint(score.onset_s * STEPS_PER_S).astype(np.int64)
    return found


def struck(tokenizer: Tokenizer, ids: NDArray[Any]) -> list[tuple[int, int]]:
    """Pitch and step of each note that a piece's ids strike, in order."""
    assert tokenizer.pace is not None  # `with_labels` refuses others
    at = strikes(tokenizer, ids)
    step = np.rint(np.cumsum(tokenizer.pace[ids])[at] * STEPS_PER_S).astype(int)
    return list(zip(tokenizer.pitch[ids[at]].tolist(), step.tolist(), strict=True))


def marked(tokenizer: Tokenizer, ids: Ids, labels: NDArray[Any]) -> Ids:
    """The ids with the label of each note (K,) after its strike; none where it is -1."""
    at, known = strikes(tokenizer, ids), labels >= 0
    first = tokenizer.vocab.offsets[LABEL]
    return np.insert(ids, at[known] + 1, first + labels[known]).astype(np.uint16)


def unmarked(tokenizer: Tokenizer, ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The ids without labels, and the label of each note (K,); -1 where it was cut off."""
    label = tokenizer.vocab.values(LABEL)[ids]  # (T,)
    after = np.append(label[1:], -1) if len(ids) else label
    return ids[label < 0], after[strikes(tokenizer, ids)]
