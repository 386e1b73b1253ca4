"""The label of a piece: a linear layer on the mean of what the model makes of each token."""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.errors import ConfigError
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.labels import LABEL, strikes, unmarked


class Classify(NextToken):
    """Obeys `musictx.objectives.Objective`. The tokenizer has the labels as ids, so the rows of these ids in the
    model's head are the linear layer. The mean of their logits is the layer on the mean. Raises ConfigError for a store
    without labels."""

    name = "classify"  # what `objective=` calls it
    case = "piece"
    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self.added = tokenizer.vocab.added
        if [row.type for row in self.added] != [LABEL]:
            hint = "train with data.path=FOLDER, which has a folder for each label"
            raise ConfigError("objective", got=self.name, why="these tokens have no labels", hint=hint)
        self.labels = slice(tokenizer.vocab.offsets[LABEL], tokenizer.vocab.size)  # of the logits
        self.choices = tokenizer.vocab.size - self.labels.start

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        """Inputs (T,): the ids without labels. Targets (T,): the label of each note, where it is struck."""
        ids, labels = unmarked(self.tokenizer, window.numpy())
        ids = ids[: len(window) - 1]
        at = strikes(self.tokenizer, ids)
        out = torch.full((2, len(window) - 1), self.pad)
        out[0, : len(ids)] = torch.from_numpy(ids)
        known = labels[: len(at)]
        out[1, at] = torch.from_numpy(np.where(known >= 0, known + self.labels.start, self.pad))
        return Example((out[0],), out[1])

    def answers(self, model: Callable[..., Tensor], example: Example) -> tuple[Tensor, Tensor, Tensor]:
        """Of a batch: the logits of each window (N, K), its label (N,) and its row (N,). The logits of a piece are the
        mean over its windows. A window without a note has no label."""
        (ids,), targets = example
        logits = model(ids)[..., self.labels].float()  # (B, T, K)
        read = (ids != self.pad).unsqueeze(-1)
        mean = (logits * read).sum(1) / read.sum(1).clamp(min=1)
        label = targets.masked_fill(targets == self.pad, -1).amax(1)  # all notes of a piece have its label
        row = torch.nonzero(label >= 0).squeeze(1)
        return mean[row], label[row] - self.labels.start, row

    def of_piece(self, model: Callable[..., Tensor], example: Example) -> tuple[Tensor, Tensor]:
        """Of windows of one piece: logits (1, K) and its label (1,); nothing, (0, K) and (0,), without a note."""
        logits, label, _ = self.answers(model, example)
        return logits.mean(0, keepdim=True)[: len(label)], label[:1]

    def loss(self, model: Callable[..., Tensor], example: Example, by_row: bool = False) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the labels, in float32."""
        logits, label, row = self.answers(model, example)
        nats = F.cross_entropy(logits, label, reduction="none")  # (N,)
        if not by_row:
            return nats.sum(), torch.ones_like(nats).sum()
        zero = nats.new_zeros(len(example.targets), dtype=torch.float64)
        return zero.index_add(0, row, nats.double()), zero.index_add(0, row, torch.ones_like(nats).double())
