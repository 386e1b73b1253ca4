"""A store as Lightning's train and validation loaders."""

from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from musictx.config.train import DataConfig
from musictx.data.dataset import EpochIndices, RandomCrops, batch_segments, scoring_segments
from musictx.data.store import Store
from musictx.data.streams import CarriedWindows
from musictx.errors import ConfigError, StoreError


class MusicData(L.LightningDataModule):
    """Random augmented crops to train on, every validation token once to score.

    Raises StoreError when the store is missing, empty, or was made by another tokenizer; ConfigError.
    """

    def __init__(self, config: DataConfig, tokenizer: str, batch_size: int, seed: int, carry: bool = False) -> None:
        super().__init__()
        self.config, self.batch_size, self.seed = config, batch_size, seed
        self.store = Store(Path(config.path), tokenizer)
        self.tokenizer = self.store.tokenizer
        train = self.store.split("train")
        for name in ("train", "validation"):
            if not len(self.store.split(name).ids):
                raise StoreError(f"{self.store.path}: the {name} split holds no tokens; prepare the data again")
        self.crops = RandomCrops(train, self.tokenizer, config.length, seed, config.transpose, config.stretch)
        self.carried = CarriedWindows(self.crops, batch_size) if carry else None
        if self.carried is not None and config.windows_per_epoch is not None:
            raise ConfigError(
                "data.windows_per_epoch is for random windows: with data.carry an epoch is every piece once"
            )
        # an epoch reads as many tokens as the split holds
        random_windows = config.windows_per_epoch or max(-(-len(train.ids) // config.length), batch_size)
        self.n_items = random_windows if self.carried is None else len(self.carried)
        if self.n_items < batch_size:
            raise ConfigError(
                f"data.windows_per_epoch={self.n_items} is less than one batch: "
                f"give trainer.batch_size={batch_size} or more"
            )

    @property
    def batches_per_epoch(self) -> int:
        return self.n_items // self.batch_size

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(
            self.crops if self.carried is None else self.carried,
            self.batch_size,
            sampler=EpochIndices(self.n_items),
            num_workers=self.config.workers,
            drop_last=True,
            pin_memory=torch.cuda.is_available(),
        )

    def val_dataloader(self) -> DataLoader[Tensor]:
        segments = scoring_segments(self.store.split("validation"), self.tokenizer, self.config.segment)
        batches = batch_segments(segments, self.tokenizer.vocab.pad, self.config.score_batch_tokens)
        return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]
