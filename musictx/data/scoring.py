"""Segments for scoring, in which every token of a split is a target once: whole pieces, blocks, or windows that
overlap (`stride`)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from musictx.data.dataset import batch_of
from musictx.data.store import Split
from musictx.errors import ConfigError, StoreError
from musictx.objectives import Example, Objective
from musictx.tokenizers import Ids, Tokenizer


class Segment(NamedTuple):
    piece: int  # number in the split
    ids: Ids  # (inputs + 1,)
    context: int = 0  # first targets, which belong to another segment


def check_segment(segment: int | None, cycle: int, stride: int | None = None) -> None:
    """Raises ConfigError for a segment or stride below 1 or of no whole cycles, and for a stride that skips tokens."""
    if segment is not None and segment < 1:
        raise ConfigError("segment", got=segment, allowed="1 or more, or null for whole pieces")
    if stride is not None and segment is None:
        why, hint = "segment=null scores whole pieces", "give segment= too, or leave it out"
        raise ConfigError("stride", got=stride, why=why, hint=hint)
    if stride is not None and segment is not None and not 1 <= stride <= segment:
        raise ConfigError("stride", got=stride, allowed=f"1 to segment={segment}, or null")
    for name, value, other in (("segment", segment, "null for whole pieces"), ("stride", stride, "null")):
        if value is not None and value % cycle:
            why = f"the model counts places in cycles of {cycle} tokens"
            raise ConfigError(name, got=value, why=why, allowed=f"a multiple of {cycle}, or {other}")


def check_stride(stride: int | None, objective: Objective) -> None:
    """Raises ConfigError for a stride with an objective that is not continuous."""
    if stride is not None and not objective.continuous:
        why = "examples of this objective do not continue one another"
        raise ConfigError("stride", got=stride, why=why, allowed="null")


def scoring_segments(
    split: Split, tokenizer: Tokenizer, segment: int | None, cycle: int = 1, stride: int | None = None
) -> list[Segment]:
    """BOS and the events of each piece, whole (`segment` None) or in inputs of `segment` ids, `stride` ids apart.
    Raises ConfigError; StoreError for an empty split."""
    check_segment(segment, cycle, stride)
    if not len(split.ids):
        raise StoreError("the split has no tokens to score", "give another split, or prepare the data again")
    segments = []
    for number, piece in enumerate(split):
        ids = np.concatenate([[tokenizer.vocab.bos], piece]).astype(np.uint16)
        length = segment or len(ids)
        step = stride or length
        ends = len(ids) - 1 - length + step  # a segment that began here would have no target of its own
        for start in range(0, max(ends, min(len(piece), 1)), step):
            segments.append(Segment(number, ids[start : start + length + 1], length - step if start else 0))
    return segments


def batch_segments(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Numbers of segments of similar length, in batches of at most `batch_tokens` ids or one segment. Raises
    ConfigError."""
    check_budget(batch_tokens)
    batches: list[list[int]] = [[]]
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batches[-1] and lengths[i] * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
        batches[-1].append(i)
    return batches


def check_budget(batch_tokens: int) -> None:
    if batch_tokens < 1:
        raise ConfigError("score_batch_tokens", got=batch_tokens, allowed="1 or more")


def carried_batches(segments: Sequence[Segment], batch_tokens: int) -> list[list[list[int]]]:
    """Batches of pieces for a model that carries its state: each a list of steps, a step the numbers of its segments. A
    row continues that of the step before; the last rows end first. Raises ConfigError."""
    check_budget(batch_tokens)
    pieces: dict[int, list[int]] = {}
    for i, segment in enumerate(segments):
        pieces.setdefault(segment.piece, []).append(i)
    longest = sorted(pieces.values(), key=len, reverse=True)
    rows = max(batch_tokens // max(len(segment.ids) - 1 for segment in segments), 1)
    groups = [longest[first : first + rows] for first in range(0, len(longest), rows)]
    return [[[p[step] for p in group if step < len(p)] for step in range(len(group[0]))] for group in groups]


def scoring_batch(segments: Sequence[Segment], numbers: Sequence[int], objective: Objective) -> Example:
    """The batch of some segments; the chance in each depends only on its number."""
    examples, pad = [], objective.tokenizer.vocab.pad
    for i in numbers:
        ids = torch.from_numpy(segments[i].ids.astype(np.int64))
        example = objective.example(ids, np.random.default_rng(i))
        if segments[i].context:
            targets = example.targets.clone()
            targets[: segments[i].context] = pad
            example = example._replace(targets=targets)
        examples.append(example)
    return batch_of(examples, pad)
