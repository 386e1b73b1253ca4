"""Lightning's Trainer for a run, and its loggers: a CSV file, TensorBoard, Weights & Biases."""

import logging
import os
import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import lightning as L
from lightning.pytorch.callbacks import EarlyStopping, EMAWeightAveraging, LearningRateMonitor
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from lightning.pytorch.strategies import DDPStrategy

from musictx.config.train import LoggerConfig, TrainConfig, TrainerConfig
from musictx.errors import ConfigError
from musictx.training.checkpoints import WholeFiles
from musictx.training.metrics import MetricsFile
from musictx.training.progress import Throughput
from musictx.training.run_folder import TENSORBOARD, RunFolder


def check_logger(config: LoggerConfig) -> None:
    """Raises ConfigError for an unknown or missing logger, and for wandb online without a valid key."""
    if config.name not in ("csv", "tensorboard", "wandb"):
        raise ConfigError("LoggerConfig.name", got=config.name, allowed="csv, tensorboard or wandb")
    if config.name == "tensorboard" and find_spec("tensorboard") is None:
        why, hint = "it is not installed", "pip install 'musictx[tensorboard]', or leave it out"
        raise ConfigError("logger", got="tensorboard", why=why, hint=hint)
    if config.name == "wandb" and wandb_mode(config) == "online":
        import wandb

        try:
            has_key = wandb.login(prompt=False)
        except wandb.errors.Error as error:
            raise _no_wandb(error) from None
        if not has_key:
            hint = "run `wandb login`, or set mode=offline or WANDB_API_KEY"
            raise ConfigError("logger", got="wandb", why="it has no API key", hint=hint)


def build_loggers(config: TrainConfig, folder: Path, wandb_id: str, from_step: int = 0) -> list[Logger]:
    """The loggers of a run whose config passed `check_logger`; a resumed run makes the steps from `from_step` on again.
    Raises ConfigError where wandb does not answer."""
    metrics, choice = MetricsFile(RunFolder(folder).metrics_file, from_step), config.logger
    if choice.name == "tensorboard":
        again = from_step or None  # what was shown from there on goes
        board = TensorBoardLogger(folder, None, TENSORBOARD, default_hp_metric=False, purge_step=again)
        return [metrics, board]
    if choice.name != "wandb":
        return [metrics]
    mode = wandb_mode(choice)
    logger = WandbLogger(
        name=config.name, project=choice.project, save_dir=folder, offline=mode == "offline", mode=mode, id=wandb_id
    )
    import wandb

    try:
        logger.experiment.config.update(asdict(config), allow_val_change=True)
    except wandb.errors.Error as error:
        raise _no_wandb(error) from None
    return [metrics, logger]


def close_logger(config: LoggerConfig, failed: bool) -> None:
    """Ends wandb's process, which writes into the run's folder."""
    if config.name == "wandb":
        import wandb

        wandb.finish(exit_code=int(failed))


def _no_wandb(error: Exception) -> ConfigError:
    reason = " ".join(str(error).split()).rstrip(".")
    return ConfigError("logger", got="wandb", why=reason, hint="mend the key or the network, or give mode=offline")


def wandb_mode(config: LoggerConfig) -> str:
    """The mode: the setting, else WANDB_MODE, else online. Raises ConfigError for another word."""
    mode = config.mode or os.environ.get("WANDB_MODE") or "online"
    if mode not in ("online", "offline", "disabled"):
        why = "" if config.mode else "the environment variable WANDB_MODE says so"
        raise ConfigError("mode", got=mode, why=why, allowed="online, offline or disabled")
    return mode


# these warnings come in every run here, and a person can do nothing about them
NOISE = (
    "does not have many workers",
    "is deprecated",
    "is smaller than the logging interval",
    "in eval mode at the start",
    "It is recommended to use `self.log",
)


def build_trainer(config: TrainerConfig, batches_per_epoch: int, folder: str) -> L.Trainer:
    """A Trainer without the loggers and callbacks that write to the run's folder, which does not exist yet."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in NOISE:
        warnings.filterwarnings("ignore", f".*{message}")
    callbacks: list[L.Callback] = [Throughput(), LearningRateMonitor("step")]
    if config.ema_decay is not None:
        # buffers are tables, some of whole numbers: they have no average
        callbacks.append(EMAWeightAveraging(decay=config.ema_decay, use_buffers=False))
    if config.patience is not None:
        callbacks.append(EarlyStopping("val/nll", patience=config.patience, check_on_train_epoch_end=False))
    return L.Trainer(
        accelerator=config.accelerator,
        # no buffer differs between the processes
        strategy=DDPStrategy(broadcast_buffers=False) if config.strategy == "ddp" else "auto",
        devices=config.devices,
        num_nodes=config.num_nodes,
        use_distributed_sampler=False,  # GlobalBatches gives each process its share
        precision=config.precision,  # type: ignore[arg-type]
        max_epochs=config.epochs,
        max_steps=config.max_steps,
        accumulate_grad_batches=config.accumulate,
        gradient_clip_val=config.grad_clip,
        val_check_interval=config.validate_every or batches_per_epoch,
        check_val_every_n_epoch=None,  # counts batches across epochs
        num_sanity_val_steps=0,
        log_every_n_steps=config.log_every,
        default_root_dir=folder,
        logger=False,
        callbacks=callbacks,
        plugins=[WholeFiles()],
        enable_checkpointing=False,  # training/checkpoints.py saves
        enable_progress_bar=False,
        enable_model_summary=False,
    )
