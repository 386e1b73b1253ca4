"""Windows of pieces with labels: every piece comes as often, and is judged as a whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from musictx.data.datamodule import MusicData
from musictx.data.dataset import RandomCrops
from musictx.data.scoring import scoring_batch, scoring_segments
from musictx.data.store import Split
from musictx.objectives import Example
from musictx.tokenizers import Ids
from musictx.tokenizers.labels import marked, unmarked


class LabelledCrops(RandomCrops):
    """Random windows; each note keeps its label when the window is transposed or stretched."""

    def draw(self, rng: np.random.Generator) -> int:
        return int(rng.integers(len(self.split)))

    def augment(self, ids: Ids, factor: float, rng: np.random.Generator) -> Ids:
        music, labels = unmarked(self.tokenizer, ids)
        return marked(self.tokenizer, super().augment(music, factor, rng), labels)


class LabelledData(MusicData):
    """As `MusicData`, but a batch of the validation is one piece."""

    windows = LabelledCrops

    def pieces(self, split_name: str) -> Iterator[Example]:
        """Windows of each piece, as long as those of training and spread over it, at most `score_batch_tokens` ids."""
        length, split = self.config.length, self.store.split(split_name)
        most = max(self.config.score_batch_tokens // length, 1)
        for name, piece in zip(split.names, split, strict=True):
            alone = Split(piece, np.array([0, len(piece)]), [name])
            windows = scoring_segments(alone, self.tokenizer, length, self.cycle)
            spread = np.linspace(0, len(windows) - 1, min(most, len(windows))).round().astype(int)
            yield scoring_batch(windows, spread.tolist(), self.objective)

    def val_dataloader(self) -> DataLoader[Any]:
        pieces: Any = list(self.pieces("validation"))
        return DataLoader(pieces, batch_size=None, generator=torch.Generator())
