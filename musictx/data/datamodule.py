"""A store as Lightning's train and validation loaders, for several processes and for resuming in mid-epoch."""

from collections.abc import Callable, Iterator
from typing import Any

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from musictx.config.train import DataConfig
from musictx.data.dataset import CarriedWindows, Examples, RandomCrops
from musictx.data.scoring import (
    batch_segments,
    carried_batches,
    check_segment,
    check_stride,
    scoring_batch,
    scoring_segments,
)
from musictx.data.store import AGAIN, Store
from musictx.errors import ConfigError, StoreError
from musictx.objectives import Example, Objective


class MusicData(L.LightningDataModule):
    """Augmented windows for training, and every validation token once. Raises ConfigError; StoreError for an empty
    split.

    Each of `world_size` processes makes batches of `batch_size` windows and scores its share of the validation.
    """

    def __init__(
        self,
        config: DataConfig,
        store: Store,
        objective: Objective,
        batch_size: int,
        random_seed: int,
        carry: bool = False,
        world_size: int = 1,
        cycle: int = 1,
    ) -> None:
        super().__init__()
        self.config, self.batch_size, self.random_seed = config, batch_size, random_seed
        self.world_size, global_batch = world_size, batch_size * world_size
        self.store, self.tokenizer, self.objective = store, store.tokenizer, objective
        self.cycle, group = cycle, self.tokenizer.group
        if cycle > 1 and (group == 1 or cycle % group):
            why = f"{self.tokenizer.name} ids come in groups of {group}"
            hint = f"give a multiple of {group}" if group > 1 else "leave it out, or give model=small"
            raise ConfigError("cycle", got=cycle, why=why, hint=hint)
        check_stride(config.stride, objective)
        check_segment(config.segment, cycle, config.stride)
        train = self.store.split("train")
        for name in ("train", "validation"):
            if not len(self.store.split(name).ids):
                raise StoreError(f"{self.store.path}: the {name} split has no tokens", AGAIN)
        self.crops = RandomCrops(
            train, self.tokenizer, config.length, random_seed, config.transpose, config.stretch, cycle
        )
        self.carried, windows = CarriedWindows(self.crops, global_batch) if carry else None, config.windows_per_epoch
        if self.carried is not None and windows is not None:
            raise ConfigError("windows_per_epoch", got=windows, why="it is for random windows", hint="leave it out")
        # an epoch reads as many tokens as the split has
        default = max(-(-len(train.ids) // config.length), global_batch) if self.carried is None else len(self.carried)
        self.n_items = default if windows is None else windows
        if self.n_items < global_batch:
            why = "less than one batch of all processes"
            raise ConfigError("windows_per_epoch", got=self.n_items, why=why, allowed=f"{global_batch} or more")

    @property
    def batches_per_epoch(self) -> int:
        return self.n_items // (self.batch_size * self.world_size)

    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def examples(self) -> Examples:
        """The training examples by number."""
        return Examples(self.crops if self.carried is None else self.carried, self.objective, self.random_seed)

    def train_dataloader(self) -> DataLoader[Any]:
        batches = GlobalBatches(self.n_items, self.batch_size, self._rank(), self.world_size)
        return ResumableLoader(self.examples, batches, self.config.workers, self.examples.collate)

    def val_dataloader(self) -> DataLoader[Any]:
        """Every validation token once; with `data.stride` and a carried state a batch is a list of consecutive
        examples."""
        split, budget = self.store.split("validation"), self.config.score_batch_tokens
        share: list[Any]
        if self.carried is not None and self.config.stride is not None:  # in one process: training/preflight.py
            segments = scoring_segments(split, self.tokenizer, self.config.segment)
            batches = carried_batches(segments, budget)
            share = [[scoring_batch(segments, numbers, self.objective) for numbers in steps] for steps in batches]
            return DataLoader(share, batch_size=None, generator=torch.Generator())  # type: ignore[arg-type]
        segments = scoring_segments(split, self.tokenizer, self.config.segment, self.cycle, self.config.stride)
        # the largest first: too little memory shows at once
        numbers = batch_segments([len(segment.ids) for segment in segments], budget)[::-1]
        share = [scoring_batch(segments, n, self.objective) for n in numbers[self._rank() :: self.world_size]]
        if len(share) * self.world_size < len(numbers):  # all processes must make equally many forward passes
            inputs, targets = scoring_batch(segments, numbers[-1][:1], self.objective)
            share.append(Example(inputs, torch.full_like(targets, self.tokenizer.vocab.pad)))
        return DataLoader(share, batch_size=None, generator=torch.Generator())  # type: ignore[arg-type]


class GlobalBatches(Sampler[list[int]]):
    """`n_items` new window numbers an epoch, in whole batches of `batch_size` for each of `world_size` processes.

    Row k of a global batch goes to process k // batch_size, as if one process read them all. Lightning calls
    `set_epoch`.
    """

    def __init__(self, n_items: int, batch_size: int, rank: int = 0, world_size: int = 1) -> None:
        self.n_items, self.batch_size, self.rank, self.world_size = n_items, batch_size, rank, world_size
        self.epoch = 0
        self.first = 0  # the batch that the next iteration starts with
        self.sampler = self  # where Lightning looks for `set_epoch`

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.n_items // (self.batch_size * self.world_size)

    def __iter__(self) -> Iterator[list[int]]:
        first, self.first = self.first, 0
        for batch in range(first, len(self)):
            start = self.epoch * self.n_items + (batch * self.world_size + self.rank) * self.batch_size
            yield list(range(start, start + self.batch_size))


class ResumableLoader(DataLoader[Any]):
    """A loader that counts its batches in this epoch; Lightning keeps the count in checkpoints."""

    def __init__(
        self,
        dataset: Dataset[Any],
        batches: GlobalBatches,
        workers: int = 0,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        super().__init__(
            dataset,
            batch_sampler=batches,
            num_workers=workers,
            collate_fn=collate,
            pin_memory=torch.cuda.is_available(),
            generator=torch.Generator(),  # leaves the global one alone
        )
        self.batches, self.count = batches, 0
        self.checkpoint = (-1, 0)  # its epoch, and the count in it

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        epoch, count = self.checkpoint
        self.count = self.batches.first = count if self.batches.epoch == epoch else 0
        for batch in super().__iter__():
            self.count += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.batches.epoch, "given": self.count}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self.checkpoint = state_dict["epoch"], state_dict["given"]
