"""Windows that go on where the last one ended: what truncated back-propagation through time is fed."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from musictx.data.dataset import RandomCrops
from musictx.errors import ConfigError
from musictx.tokenizers import Ids

Window = tuple[Tensor, Tensor]


class CarriedWindows(Dataset[Window]):
    """Item `step * batch_size + row` of an epoch goes on from the item one `batch_size` before it.

    An epoch is every piece once, in an order and with augmentations that follow from (seed, epoch) alone, cut into
    windows and dealt to the rows in runs of equal length. With each window comes whether its row begins anew: a new
    piece, or the first step of an epoch. Borrows augmentation from `crops`.
    """

    def __init__(self, crops: RandomCrops, batch_size: int) -> None:
        self.crops, self.batch_size = crops, batch_size
        windows = sum(self._windows(len(piece)) for piece in (crops.split[i] for i in range(len(crops.split))))
        if windows < batch_size:
            raise ConfigError(
                f"trainer.batch_size={batch_size}: the training pieces make {windows} windows of "
                f"data.length={crops.length}, and each row needs one; lower either"
            )
        self.steps = -(-windows // batch_size)
        self.epoch = lru_cache(maxsize=1)(self._epoch)  # (piece as drawn, its window) of an epoch

    def __len__(self) -> int:
        return self.steps * self.batch_size

    def _windows(self, n_ids: int) -> int:
        return -(-(n_ids + 1) // self.crops.length)  # BOS … last event are inputs

    def _epoch(self, epoch: int) -> tuple[list[Ids], list[tuple[int, int]]]:
        crops = self.crops
        rng = np.random.default_rng((crops.seed, epoch))
        vocab, pieces = crops.tokenizer.vocab, []
        for i in rng.permutation(len(crops.split)):
            ids = crops.augment(np.asarray(crops.split[int(i)]), float(rng.choice(crops.stretch)), rng)
            pieces.append(np.array([vocab.bos, *ids.tolist(), vocab.eos], dtype=np.uint16))
        return pieces, [(p, k) for p, ids in enumerate(pieces) for k in range(self._windows(len(ids) - 2))]

    def __getitem__(self, index: int) -> Window:
        """(length + 1,) int64: ids, filled up with PAD; and () bool: forget what came before."""
        epoch, rest = divmod(index, len(self))
        step, row = divmod(rest, self.batch_size)
        pieces, windows = self.epoch(epoch)
        at, length, pad = row * self.steps + step, self.crops.length, self.crops.tokenizer.vocab.pad
        if at >= len(windows):  # the last row is shorter: nothing is seen twice
            return torch.full((length + 1,), pad), torch.tensor(True)
        piece, k = windows[at]
        ids = pieces[piece][k * length : (k + 1) * length + 1].astype(np.int64)
        padded = np.pad(ids, (0, length + 1 - len(ids)), constant_values=pad)
        return torch.from_numpy(padded), torch.tensor(k == 0 or step == 0)
