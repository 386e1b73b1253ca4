"""A language model as a LightningModule: loss, optimizer, schedule, validation NLL, carried state."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import lightning as L
import numpy as np
import torch
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.optim import Optimizer

from musictx.analysis.likelihood import carried_losses
from musictx.config.train import TrainConfig
from musictx.model.build import Model
from musictx.model.header import KEY, BundleHeader
from musictx.model.recall import Past
from musictx.model.recurrent import RecurrentState
from musictx.objectives import Example, Objective
from musictx.training.optimizer import build_optimizer, warmup_cosine, warmup_hold


class LanguageModelTraining(L.LightningModule):
    """Logs `train/loss` and `val/nll`, in nats per token; checkpoints have `header`.

    The chance in a batch depends only on (random seed, number of the batch, process): a resumed run draws the same.
    """

    def __init__(self, model: Model, objective: Objective, config: TrainConfig, header: BundleHeader) -> None:
        super().__init__()
        self.model, self.objective, self.header = model, objective, header
        self.config, self.random_seed, self.length = config.trainer, config.random_seed, config.data.length
        self.loss = torch.zeros(())  # of the last batch, per token: training/failure.py checks it
        self._step_total: Tensor | float = 0.0  # of the batches of this optimizer step so far: nats
        self._step_count: Tensor | float = 0.0  # and tokens, of a process on average
        self._nll_sum = torch.zeros((), dtype=torch.float64)
        self._count = 0
        self.state: RecurrentState | None = None  # of the last batch
        self._carried: dict[str, Any] | None = None  # that state, from a checkpoint

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        nll = float(self.trainer.callback_metrics["val/nll"]) if self.trainer.validating else None
        checkpoint[KEY] = replace(self.header, val_nll=nll).to_json()
        if self.state is not None:
            state = vars(self.state.detach())
            checkpoint["carried"] = state | {"past": state["past"] and vars(state["past"])}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._carried = checkpoint.get("carried")

    def on_train_start(self) -> None:
        if self._carried is not None:
            state = move_data_to_device(self._carried, self.device)
            self.state = RecurrentState(**state | {"past": state["past"] and Past(**state["past"])})
            self._carried = None

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        number = self.current_epoch * int(self.trainer.num_training_batches) + batch_idx
        L.seed_everything(
            int(np.random.SeedSequence((self.random_seed, number, self.global_rank)).generate_state(1)[0]),
            verbose=False,
        )

    def training_step(self, batch: Example | list[Any], _: int) -> Tensor:
        """The loss of examples; with a carried state of `[examples, mask (B,)]`, the mask of rows to reset."""
        example, fresh = batch if isinstance(batch, list) else (batch, None)
        model: Callable[..., Tensor] = self.model if fresh is None else partial(self.carry, fresh=fresh)
        if self.config.hide_source:
            example = self.hide(example)
        total, n = self.objective.loss(model, example)
        # per token of all processes: a mean of their means would give tokens of short pieces more weight
        count = self.trainer.strategy.reduce(n.float(), reduce_op="mean")
        self.loss = total.detach() / count
        self._step_total, self._step_count = self._step_total + total.detach(), self._step_count + count
        step_loss = self._step_total / self._step_count  # of the step's batches so far
        self.log("train/loss", step_loss, prog_bar=True, sync_dist=self.trainer.world_size > 1)
        return total / self._positions

    @property
    def _positions(self) -> int:
        """Positions of a batch in one process: one divisor for all, until the step counts tokens."""
        return self.config.batch_size * self.length

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Rescales gradients to per token of the whole step, as of one large batch."""
        # Lightning has summed means over positions, pads included, each divided by the number of batches
        scale = self._positions * self.config.accumulate / float(self._step_count)
        for p in self.parameters():
            if p.grad is not None:
                p.grad.mul_(scale)
        self._step_total, self._step_count = 0.0, 0.0

    def carry(self, ids: Tensor, fresh: Tensor) -> Tensor:
        """Logits (B, T, V) from the last batch's state, detached: truncated back-propagation through time."""
        model: Any = self.model  # carries a state: fit() refuses others
        if self.state is None or self.state.hidden[0].shape[1] != len(fresh):
            self.state = model.init_state(len(fresh), ids.shape[1])
        logits: Tensor = model.carry(ids, self.state.detach().reset(fresh))
        return logits

    def hide(self, example: Example) -> Example:
        """Replaces the source of some examples by PAD (Ho and Salimans 2022, section 3.2)."""
        at = self.objective.inputs.index("source")  # check_trainer has refused others
        inputs = list(example.inputs)
        without_source = torch.rand(len(inputs[at]), 1, device=inputs[at].device) < self.config.hide_source
        inputs[at] = inputs[at].masked_fill(without_source, self.objective.tokenizer.vocab.pad)
        return example._replace(inputs=inputs)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        trainer = self.trainer
        last_step = 0 < trainer.max_steps <= trainer.global_step
        last_epoch = trainer.current_epoch + 1 == trainer.max_epochs
        if last_step or (last_epoch and batch_idx + 1 == trainer.num_training_batches):
            trainer.should_stop = True  # Lightning validates before it stops, so the end is always validated

    def validation_step(self, batch: Example | list[Example], _: int) -> None:
        """Adds up the NLL of examples, or of a list of them through which a state is carried."""
        # batches of many lengths: to compile each would take longer than to score it
        with torch.compiler.set_stance("force_eager") if self.config.compile else nullcontext():
            if isinstance(batch, list):
                each = list(carried_losses(self.model, batch, self.objective))
                total = torch.cat([nats for nats, _ in each]).sum()
                count = torch.cat([tokens for _, tokens in each]).sum()
            else:
                total, count = self.objective.loss(self.model, batch)
        self._nll_sum += total.double().cpu()
        self._count += int(count)

    def on_validation_epoch_end(self) -> None:
        # per token of the whole split: a mean of batch means would give short pieces more weight
        sums = torch.stack([self._nll_sum, torch.tensor(self._count, dtype=torch.float64)]).to(self.device)
        nll_sum, count = self.trainer.strategy.reduce(sums, reduce_op="sum")
        self.log("val/nll", (nll_sum / count).float(), prog_bar=True)
        self._nll_sum.zero_()
        self._count = 0

    def configure_optimizers(self) -> OptimizerLRScheduler:
        config = self.config
        optimizer = build_optimizer(self.model, config.optimizer, config.lr, config.weight_decay)
        total = self.total_steps()
        steps = {"warmup_steps": min(config.warmup_steps, total), "total_steps": total}
        held = partial(warmup_hold, **steps, decay_share=config.decay_share)
        factor = held if config.schedule == "hold" else partial(warmup_cosine, **steps)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def total_steps(self) -> int:
        """Optimizer steps of the run."""
        # Lightning's own estimate would set up the loader before a checkpoint says where to begin
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        return self.config.total_steps(data.batches_per_epoch)
