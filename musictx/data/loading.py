"""Which windows a process reads, and going on in the middle of an epoch."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class GlobalBatches(Sampler[list[int]]):
    """`n_items` new window numbers an epoch, in batches of `batch_size` for each of `world_size` processes.

    Row k of a global batch goes to process k // batch_size, so that the processes together read what a single one
    with their batches joined would. What is less than a global batch is left out. Lightning calls `set_epoch`.
    """

    def __init__(self, n_items: int, batch_size: int, rank: int = 0, world_size: int = 1) -> None:
        self.n_items, self.batch_size, self.rank, self.world_size = n_items, batch_size, rank, world_size
        self.epoch = 0
        self.first = 0  # batch of the next reading
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
    """A loader that knows how many batches of the epoch it has given; Lightning keeps that in its checkpoints."""

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
        self.batches, self.given = batches, 0
        self.stopped = (-1, 0)  # epoch, and how many of its batches were given by then

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        epoch, given = self.stopped
        self.given = self.batches.first = given if self.batches.epoch == epoch else 0
        for batch in super().__iter__():
            self.given += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.batches.epoch, "given": self.given}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self.stopped = state_dict["epoch"], state_dict["given"]
