"""Windows as the examples that an objective makes of them, in batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from musictx.objectives import Example, Objective
from musictx.tokenizers import Ids


class Examples(Dataset[Any]):
    """The examples of a data set's windows; what else comes with a window stays with it.

    The chance in number `index` is a function of (seed, index) alone, and not that which chose the window.
    """

    def __init__(self, windows: Dataset[Any], objective: Objective, seed: int) -> None:
        self.windows, self.objective, self.seed = windows, objective, seed

    def __getitem__(self, index: int) -> Any:
        item, rng = self.windows[index], np.random.default_rng((self.seed, index, 1))
        if isinstance(item, Tensor):
            return self.objective.example(item, rng)
        window, fresh = item
        return self.objective.example(window, rng), fresh

    def collate(self, items: Sequence[Any]) -> Any:
        """Of examples a batch; of examples with more a list, `[batch, that (B,)]`."""
        pad = self.objective.tokenizer.vocab.pad
        if isinstance(items[0], Example):
            return joined(items, pad)
        examples, fresh = zip(*items, strict=True)
        return [joined(examples, pad), torch.stack(fresh)]


def joined(examples: Sequence[Example], pad: int) -> Example:
    """Examples of any lengths as one batch, filled up with PAD."""
    columns = zip(*(example.inputs for example in examples), strict=True)
    inputs = tuple(pad_sequence(list(column), batch_first=True, padding_value=pad) for column in columns)
    return Example(inputs, pad_sequence([example.targets for example in examples], True, pad))


def scoring_batch(segments: Sequence[Ids], numbers: Sequence[int], objective: Objective) -> Example:
    """Some of `segments` as a batch; the chance in each is a function of its number alone."""
    examples = [
        objective.example(torch.from_numpy(segments[i].astype(np.int64)), np.random.default_rng(i)) for i in numbers
    ]
    return joined(examples, objective.tokenizer.vocab.pad)
