"""Windows of ids for training, as examples in batches: random crops, or consecutive ones for a carried state."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from musictx.data.store import Split
from musictx.errors import ConfigError, counted
from musictx.objectives import Example, Objective
from musictx.tokenizers import Ids, Tokenizer

FASTEST, SLOWEST = 0.75, 1.33  # beyond these a stretched clock is another piece of music


class RandomCrops(Dataset[Tensor]):
    """Endless windows of `length + 1` ids; number `index` depends only on (random seed, index).

    A window begins with BOS, or with the token before a group of the tokenizer, or before a `cycle`. The end of an
    unfinished piece teaches no EOS. Raises ConfigError for lengths and factors that the tokenizer cannot take.
    """

    def __init__(
        self,
        split: Split,
        tokenizer: Tokenizer,
        length: int,
        random_seed: int,
        transpose: int = 0,
        stretch: Sequence[float] = (1.0,),
        cycle: int = 1,
    ) -> None:
        if not stretch or not all(SLOWEST >= factor >= FASTEST for factor in stretch):  # refuses NaN too
            allowed = f"factors from {FASTEST} to {SLOWEST}, [1.0] for none"
            raise ConfigError("stretch", got=list(stretch), allowed=allowed)
        self.period = max(cycle, tokenizer.group)
        if length < self.period:
            why = f"windows begin every {self.period} ids"
            raise ConfigError("length", got=length, why=why, allowed=f"{self.period} or more")
        for factor in stretch:  # refuse here, not in the middle of a run
            tokenizer.stretch(np.zeros(0, np.uint16), factor)
        self.split, self.tokenizer, self.length = split, tokenizer, length
        self.random_seed, self.transpose, self.stretch = random_seed, transpose, tuple(stretch)

    def __getitem__(self, index: int) -> Tensor:
        """(length + 1,) int64: BOS, events, EOS, filled up with PAD."""
        rng = np.random.default_rng((self.random_seed, index))
        factor = float(rng.choice(self.stretch))
        token = int(rng.integers(self.split.offsets[-1]))
        number = int(np.searchsorted(self.split.offsets, token, side="right")) - 1
        piece = self.split[number]
        # a faster clock needs fewer ids for the same music: read some more
        n_ids = self.length if factor >= 1 else int(self.length / factor) + 1
        last = max(len(piece) - n_ids + 1, 0)
        last += -last % self.period  # EOS is inside from here on
        # slides over both ends: the model sees first and last tokens as often as the others
        start = int(np.clip(rng.integers(-n_ids, max(len(piece), last + 1)), 0, last))
        start -= start % self.period
        body = self.augment(np.asarray(piece[max(start - 1, 0) : start + n_ids]), factor, rng)
        vocab = self.tokenizer.vocab
        begin = [] if start else [vocab.bos]
        end = [self.end_of(number)] if start + n_ids > len(piece) else []
        window = np.array([*begin, *body.tolist(), *end], dtype=np.int64)
        # a stretched piece may have more ids than a window: the model must see its end too
        from_end = bool(end) and (start > 0 or (len(window) > self.length + 1 and rng.random() < 0.5))
        window = window[-self.length - 1 :] if from_end else window[: self.length + 1]
        return torch.from_numpy(np.pad(window, (0, self.length + 1 - len(window)), constant_values=vocab.pad))

    def end_of(self, number: int) -> int:
        """The id after a piece: EOS, or PAD if the piece is unfinished."""
        vocab = self.tokenizer.vocab
        return vocab.pad if number in self.split.unfinished else vocab.eos

    def augment(self, ids: Ids, factor: float, rng: np.random.Generator) -> Ids:
        """Stretches, then transposes within the vocabulary."""
        if factor != 1.0:
            ids = self.tokenizer.stretch(ids, factor)
        span = self.tokenizer.pitch_range(ids)
        if self.transpose and span:
            low = max(-self.transpose, self.tokenizer.lo - span[0])
            high = min(self.transpose, self.tokenizer.hi - span[1])
            ids = self.tokenizer.transpose(ids, int(rng.integers(low, high + 1)))
        return ids


class Examples(Dataset[Any]):
    """The examples of a data set's windows; the chance in number `index` depends only on (random seed, index)."""

    def __init__(self, windows: Dataset[Any], objective: Objective, random_seed: int) -> None:
        self.windows, self.objective, self.random_seed = windows, objective, random_seed

    def __getitem__(self, index: int) -> Any:
        item, rng = self.windows[index], np.random.default_rng((self.random_seed, index, 1))
        if isinstance(item, Tensor):
            return self.objective.example(item, rng)
        window, fresh = item
        return self.objective.example(window, rng), fresh

    def collate(self, items: Sequence[Any]) -> Any:
        """Examples as a batch; with flags as `[batch, flags (B,)]`."""
        pad = self.objective.tokenizer.vocab.pad
        if isinstance(items[0], Example):
            return batch_of(items, pad)
        examples, fresh = zip(*items, strict=True)
        return [batch_of(examples, pad), torch.stack(fresh)]


def batch_of(examples: Sequence[Example], pad: int) -> Example:
    """Examples of any lengths as one batch, filled up with PAD."""
    columns = zip(*(example.inputs for example in examples), strict=True)
    inputs = tuple(pad_sequence(list(column), batch_first=True, padding_value=pad) for column in columns)
    return Example(inputs, pad_sequence([example.targets for example in examples], True, pad))


Window = tuple[Tensor, Tensor]


class CarriedWindows(Dataset[Window]):
    """Consecutive windows: item `step * batch_size + row` of an epoch continues the item one `batch_size` before it.

    An epoch is every piece once, in an order and with augmentations by `crops` that depend only on (random seed,
    epoch). Each row gets a run of equal length; a flag resets its state at a new piece or epoch.
    """

    def __init__(self, crops: RandomCrops, batch_size: int) -> None:
        self.crops, self.batch_size = crops, batch_size
        windows = sum(self._windows(len(piece)) for piece in crops.split)
        if windows < batch_size:
            there = f"{counted(windows, 'window')} of length={crops.length}"
            why = f"the training pieces make {there}, and each row needs one"
            raise ConfigError("batch_size", got=batch_size, why=why, hint="lower one of them")
        self.steps = -(-windows // batch_size)
        self.epoch = lru_cache(maxsize=1)(self._epoch)  # (number of the piece, number of its window) of an epoch

    def __len__(self) -> int:
        return self.steps * self.batch_size

    def _windows(self, n_ids: int) -> int:
        return -(-(n_ids + 1) // self.crops.length)  # BOS … last event are inputs

    def _epoch(self, epoch: int) -> tuple[list[Ids], list[tuple[int, int]]]:
        crops = self.crops
        rng = np.random.default_rng((crops.random_seed, epoch))
        vocab, pieces = crops.tokenizer.vocab, []
        for i in rng.permutation(len(crops.split)):
            ids = crops.augment(np.asarray(crops.split[int(i)]), float(rng.choice(crops.stretch)), rng)
            pieces.append(np.array([vocab.bos, *ids.tolist(), crops.end_of(int(i))], dtype=np.uint16))
        return pieces, [(p, k) for p, ids in enumerate(pieces) for k in range(self._windows(len(ids) - 2))]

    def __getitem__(self, index: int) -> Window:
        """(length + 1,) int64: ids and PAD; () bool: whether the state is reset."""
        epoch, rest = divmod(index, len(self))
        step, row = divmod(rest, self.batch_size)
        pieces, windows = self.epoch(epoch)
        at, length, pad = row * self.steps + step, self.crops.length, self.crops.tokenizer.vocab.pad
        if at >= len(windows):  # the last row is shorter: no window comes twice
            return torch.full((length + 1,), pad), torch.tensor(True)
        piece, k = windows[at]
        ids = pieces[piece][k * length : (k + 1) * length + 1].astype(np.int64)
        window = np.pad(ids, (0, length + 1 - len(ids)), constant_values=pad)
        return torch.from_numpy(window), torch.tensor(k == 0 or step == 0)
