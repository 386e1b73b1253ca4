"""Lightning's Trainer, set up for a run."""

import logging
import warnings

import lightning as L
from lightning.pytorch.callbacks import EMAWeightAveraging, LearningRateMonitor
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy

from musictx.config.train import TrainerConfig
from musictx.training.checkpoints import WholeFiles
from musictx.training.throughput import Throughput

# true of every run here, and nothing a person could act on
NOISE = (
    "does not have many workers",
    "is deprecated",
    "is smaller than the logging interval",
    "in eval mode at the start",
    "It is recommended to use `self.log",
    "You're using the WeightAveraging callback with a model that overrides",  # fsdp and an average are refused together
)


def build_trainer(config: TrainerConfig, batches_per_epoch: int, folder: str) -> L.Trainer:
    """Without loggers and the callbacks that write to the run's folder: those follow when it is there."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in NOISE:
        warnings.filterwarnings("ignore", f".*{message}")
    callbacks: list[L.Callback] = [Throughput(), LearningRateMonitor("step")]
    if config.ema_decay is not None:
        callbacks.append(EMAWeightAveraging(decay=config.ema_decay))
    return L.Trainer(
        accelerator=config.accelerator,
        strategy=_strategy(config),
        devices=config.devices,
        num_nodes=config.num_nodes,
        use_distributed_sampler=False,  # the data shares itself out
        precision=config.precision,  # type: ignore[arg-type]
        max_epochs=config.max_epochs,
        max_steps=config.max_steps,
        accumulate_grad_batches=config.accumulate,
        gradient_clip_val=config.grad_clip,
        val_check_interval=config.validate_every or batches_per_epoch,
        check_val_every_n_epoch=None,  # counts batches across epochs
        limit_val_batches=2 if config.smoke else 1.0,
        num_sanity_val_steps=0,
        log_every_n_steps=config.log_every,
        default_root_dir=folder,
        logger=False,
        callbacks=callbacks,
        plugins=[WholeFiles()],
        enable_checkpointing=False,  # ours are callbacks of our own
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def _strategy(config: TrainerConfig) -> Strategy | str:
    if config.strategy == "ddp":
        # every process makes the same batches of its share: there are no buffers that could come apart
        return DDPStrategy(broadcast_buffers=False)
    if config.strategy == "fsdp":
        # FSDP of PyTorch's second making: LanguageModelTraining.configure_model says what is shared out together
        world_size = config.devices * config.num_nodes
        return ModelParallelStrategy(world_size, tensor_parallel_size=1, save_distributed_checkpoint=False)
    return "auto"
