"""A store as Lightning's train and validation loaders."""

from typing import Any

import lightning as L
import torch
from torch.utils.data import DataLoader

from musictx.config.train import DataConfig
from musictx.data.dataset import RandomCrops, batch_segments, check_segment, scoring_segments
from musictx.data.examples import Examples, scoring_batch
from musictx.data.loading import GlobalBatches, ResumableLoader
from musictx.data.store import Store
from musictx.data.streams import CarriedWindows
from musictx.errors import ConfigError, StoreError
from musictx.objectives import Example, Objective


class MusicData(L.LightningDataModule):
    """Random augmented crops to train on, every validation token once to score.

    Each of `world_size` processes makes batches of `batch_size` windows and scores its share of the validation.
    Raises StoreError when a split is empty; ConfigError.
    """

    def __init__(
        self,
        config: DataConfig,
        store: Store,
        objective: Objective,
        batch_size: int,
        seed: int,
        carry: bool = False,
        world_size: int = 1,
        cycle: int = 1,
    ) -> None:
        super().__init__()
        self.config, self.batch_size, self.seed = config, batch_size, seed
        self.world_size, global_batch = world_size, batch_size * world_size
        self.store, self.tokenizer, self.objective = store, store.tokenizer, objective
        self.cycle, group = cycle, self.tokenizer.group
        if cycle > 1 and (group == 1 or cycle % group):
            allowed = f"give a multiple of {group}" if group > 1 else "leave it out"
            raise ConfigError(f"model.cycle={cycle}: {self.tokenizer.name} ids come in groups of {group}; {allowed}")
        check_segment(config.segment, cycle)
        train = self.store.split("train")
        for name in ("train", "validation"):
            if not len(self.store.split(name).ids):
                raise StoreError(f"{self.store.path}: the {name} split holds no tokens; prepare the data again")
        self.crops = RandomCrops(train, self.tokenizer, config.length, seed, config.transpose, config.stretch, cycle)
        if config.grow_from is not None and config.grow_from % self.crops.period:
            raise ConfigError(
                f"data.grow_from={config.grow_from}: windows begin every {self.crops.period} ids; give a multiple of it"
            )
        self.carried = CarriedWindows(self.crops, global_batch) if carry else None
        if self.carried is not None and config.windows_per_epoch is not None:
            raise ConfigError("data.windows_per_epoch is for random windows: leave it out, or give data.carry=false")
        # an epoch reads as many tokens as the split holds
        random_windows = config.windows_per_epoch or max(-(-len(train.ids) // config.length), global_batch)
        self.n_items = random_windows if self.carried is None else len(self.carried)
        if self.n_items < global_batch:
            raise ConfigError(
                f"data.windows_per_epoch={self.n_items} is less than one batch: "
                f"give trainer.batch_size={batch_size} or more"
                if world_size == 1
                else f"data.windows_per_epoch={self.n_items} is less than one batch of {world_size} processes: "
                f"give {global_batch} or more"
            )

    @property
    def batches_per_epoch(self) -> int:
        return self.n_items // (self.batch_size * self.world_size)

    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def examples(self) -> Examples:
        """The examples of the training, by number."""
        return Examples(self.crops if self.carried is None else self.carried, self.objective, self.seed)

    def train_dataloader(self) -> DataLoader[Any]:
        batches = GlobalBatches(self.n_items, self.batch_size, self._rank(), self.world_size)
        return ResumableLoader(self.examples, batches, self.config.workers, self.examples.collate)

    def val_dataloader(self) -> DataLoader[Any]:
        segments = scoring_segments(self.store.split("validation"), self.tokenizer, self.config.segment, self.cycle)
        # the largest first: what does not fit in memory is seen at once
        numbers = batch_segments(segments, self.config.score_batch_tokens)[::-1]
        share = [scoring_batch(segments, n, self.objective) for n in numbers[self._rank() :: self.world_size]]
        if len(share) * self.world_size < len(numbers):  # all make the same number of forward passes, or none can go on
            inputs, targets = scoring_batch(segments, numbers[-1][:1], self.objective)
            share.append(Example(inputs, torch.full_like(targets, self.tokenizer.vocab.pad)))
        return DataLoader(share, batch_size=None, generator=torch.Generator())  # type: ignore[arg-type]
