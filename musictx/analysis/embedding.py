"""Embeddings of passages: the mean of a layer over the tokens of each."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from musictx.errors import ConfigError, TokenError, counted
from musictx.model.build import can, kind_of
from musictx.model.readout import each_reading
from musictx.model.transformer import Block
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer
from musictx.waiting import Waiting

Vectors = NDArray[np.float32]  # (N, C), a row a passage
FEWEST = 4  # notes of a passage that says anything
ROWS, MOST_IDS = 8, 4096  # passages in a batch, and their ids where one has not more alone


class Passage(NamedTuple):
    from_s: float
    score: Score  # from time 0


def passages(score: Score, length_s: float, every_s: float) -> Iterator[Passage]:
    """Passages of at least `FEWEST` notes, on quarters, one every `every_s` seconds; a short piece is one passage."""
    last_s = max(score.duration_s - length_s, 0.0)
    for k in range(int(last_s / every_s) + 1):
        from_s = round(k * every_s / score.quarter_s) * score.quarter_s
        part = score.clip(from_s, from_s + length_s)
        if len(part) >= FEWEST:
            yield Passage(from_s, part)


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Numbers of passages of like length, the longest first, in batches."""
    order, groups = sorted(range(len(lengths)), key=lambda n: -lengths[n]), list[list[int]]()
    while order:
        rows = min(max(MOST_IDS // max(lengths[order[0]], 1), 1), ROWS)
        groups.append(order[:rows])
        order = order[rows:]
    return groups


class LayerReached(Exception):
    """Ends a forward pass at a layer."""


class Embedder:
    """A model that embeds passages. Raises ConfigError for a model without such a layer of attention."""

    def __init__(self, model: Any, tokenizer: Tokenizer, layer: int | None = None, bundle: object = ...) -> None:
        """`layer` counts the blocks before it; `bundle` is a person's word for the model."""
        n_layers = model.config.n_layers if can(model, "readout") else 0
        if n_layers < 2:
            why = f"a model of kind {kind_of(model)} has no layer to read"
            raise ConfigError("bundle", got=bundle, why=why, allowed="a Transformer of 2 layers or more")
        self.model, self.tokenizer = model, tokenizer
        # the last layers lose a passage in another key (docs/results/labels.md)
        self.layer = min(max(round(n_layers * 2 / 3), 1), n_layers - 1) if layer is None else layer
        if not 1 <= self.layer < n_layers:
            raise ConfigError("layer", got=layer, allowed=f"1 to {n_layers - 1}")

    def ids(self, score: Score) -> NDArray[np.int64] | None:
        """The ids of a passage; None if encoding or model cannot take it."""
        try:
            ids = self.tokenizer.encode(score).astype(np.int64)
        except TokenError:
            return None
        return ids if 0 < len(ids) <= (getattr(self.model, "reach", None) or len(ids)) else None

    def passages(self, score: Score, length_s: float, most: int | None = None) -> list[Passage]:
        """Readable passages that overlap by half; at most `most`, spread over the music."""
        candidates = [each for each in passages(score, length_s, length_s / 2) if self.ids(each.score) is not None]
        spread = np.linspace(0, len(candidates) - 1, min(most or len(candidates), len(candidates))).round().astype(int)
        return [candidates[n] for n in spread]

    @torch.inference_mode()
    def embed(self, ids: Sequence[NDArray[np.int64]], waiting: Waiting | None = None) -> Vectors:
        """(N, C) of the ids of N passages."""
        device, pad = next(self.model.parameters()).device, self.tokenizer.vocab.pad
        groups, vectors = batches([len(each) for each in ids]), dict[int, Vectors]()
        progress = Waiting(f"listening to {counted(len(ids), 'passage')}", sum(map(len, ids)))
        for numbers in groups:
            batch = pad_sequence([torch.as_tensor(ids[n]) for n in numbers], True, pad)  # (B, T)
            hidden = self.layer_inputs(batch.to(device)).float().cpu()
            for n, row in zip(numbers, hidden, strict=True):  # (T, C): earlier tokens never see padding
                vectors[n] = row[: len(ids[n])].mean(0).numpy()
            if waiting is None:
                progress.advance(sum(len(ids[n]) for n in numbers))
            else:
                waiting.advance(len(numbers))
        return np.array([vectors[n] for n in range(len(ids))])

    def layer_inputs(self, batch: torch.Tensor) -> torch.Tensor:
        """(B, T, C) of ids (B, T)."""
        tensors: list[torch.Tensor] = []

        def capture(block: Block, inputs: tuple[Any, ...]) -> None:
            if block.layer == self.layer:
                tensors.append(inputs[0])
                raise LayerReached

        with each_reading(self.model, Block, capture), suppress(LayerReached):
            self.model(batch)
        return tensors[0]

    def vectors(self, scores: Sequence[Score], waiting: Waiting | None = None) -> Vectors:
        """(N, C) of passages."""
        return self.embed([self.tokenizer.encode(score).astype(np.int64) for score in scores], waiting)
