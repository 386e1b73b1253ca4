"""A language model as a LightningModule: next-token loss, AdamW, warm-up and cosine, validation NLL."""

from typing import Any

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor

from musictx.config.train import TrainerConfig
from musictx.model.transformer import Transformer
from musictx.tokenizers import Vocab
from musictx.training.schedule import warmup_cosine


class LanguageModelTraining(L.LightningModule):
    """Logs `train/loss`, `val/nll` (nats per token, over every token of the split) and the learning rate."""

    def __init__(self, model: Transformer, vocab: Vocab, config: TrainerConfig) -> None:
        super().__init__()
        self.model, self.vocab, self.config = model, vocab, config
        self._nll_sum = torch.zeros((), dtype=torch.float64)
        self._count = 0

    def training_step(self, batch: Tensor, _: int) -> Tensor:
        inputs, targets = batch[:, :-1], batch[:, 1:]  # (B, T)
        logits = self.model(inputs)  # (B, T, V)
        loss = F.cross_entropy(
            logits.flatten(0, 1).float(),
            targets.flatten(),
            ignore_index=self.vocab.pad,
            label_smoothing=self.config.label_smoothing,
        )
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Tensor, batch_idx: int) -> None:
        trainer = self.trainer
        last_step = 0 < trainer.max_steps <= trainer.global_step
        last_epoch = trainer.current_epoch + 1 == trainer.max_epochs
        if last_step or (last_epoch and batch_idx + 1 == trainer.num_training_batches):
            trainer.should_stop = True  # Lightning validates before it stops: the end counts, whatever the interval

    def validation_step(self, batch: Tensor, _: int) -> None:
        logits = self.model(batch[:, :-1])  # (B, T, V)
        targets = batch[:, 1:].flatten()
        pad = self.vocab.pad
        total = F.cross_entropy(logits.flatten(0, 1).float(), targets, ignore_index=pad, reduction="sum")
        self._nll_sum += total.double().cpu()
        self._count += int((targets != pad).sum())

    def on_validation_epoch_end(self) -> None:
        # per token of the whole split: a mean of batch means would weigh short pieces more
        self.log("val/nll", (self._nll_sum / self._count).float(), prog_bar=True)
        self._nll_sum.zero_()
        self._count = 0

    def configure_optimizers(self) -> OptimizerLRScheduler:
        matrices = [p for p in self.parameters() if p.dim() >= 2]
        vectors = [p for p in self.parameters() if p.dim() < 2]
        groups = [
            {"params": matrices, "weight_decay": self.config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.config.lr, betas=(0.9, 0.98))
        total = int(self.trainer.estimated_stepping_batches)
        warmup = min(self.config.warmup_steps, total)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup, total))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
