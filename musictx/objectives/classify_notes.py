"""The label of each note, from the music up to it."""

from collections.abc import Callable

import torch
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.classify import Classify


class ClassifyNotes(Classify):
    """As `Classify`, but a note's logits are those of the id that strikes it. A causal model knows no later note."""

    name = "classify_notes"
    case = "note"

    def answers(self, model: Callable[..., Tensor], example: Example) -> tuple[Tensor, Tensor, Tensor]:
        """Of a batch: the logits of each note (N, K), its label (N,) and its row (N,)."""
        (ids,), targets = example
        row, at = torch.nonzero(targets != self.pad, as_tuple=True)
        return model(ids)[row, at, self.labels].float(), targets[row, at] - self.labels.start, row

    def of_piece(self, model: Callable[..., Tensor], example: Example) -> tuple[Tensor, Tensor]:
        """Of windows of one piece: the logits of all its notes (N, K) and their labels (N,)."""
        logits, label, _ = self.answers(model, example)
        return logits, label
