"""Where a run's numbers go: a CSV file, or Weights & Biases without ever asking a question."""

import os
from dataclasses import asdict
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger, Logger, WandbLogger

from musictx.config import LoggerConfig, TrainConfig
from musictx.errors import ConfigError

MODES = ("online", "offline", "disabled")


def check_logger(config: LoggerConfig) -> None:
    """Raises ConfigError for an unknown logger, or wandb online without a key."""
    if config.name not in ("csv", "wandb"):
        raise ConfigError(f"logger.name={config.name}: choose csv or wandb")
    if config.name == "wandb" and wandb_mode(config) == "online":
        import wandb

        if not wandb.login(prompt=False):
            raise ConfigError(
                "logger=wandb has no API key: run `wandb login`, or set logger.mode=offline or WANDB_API_KEY"
            )


def build_logger(config: TrainConfig, folder: Path) -> Logger:
    """The logger of a run whose config passed `check_logger`."""
    choice = config.logger
    if choice.name == "wandb":
        mode = wandb_mode(choice)
        logger = WandbLogger(
            name=config.name, project=choice.project, save_dir=folder, offline=mode == "offline", mode=mode
        )
        logger.experiment.config.update(asdict(config))
        return logger
    return CSVLogger(folder, name=None, version="")


def wandb_mode(config: LoggerConfig) -> str:
    """As configured, else WANDB_MODE, else online. Raises ConfigError for one that does not exist."""
    mode = config.mode or os.environ.get("WANDB_MODE") or "online"
    if mode not in MODES:
        raise ConfigError(f"logger.mode={mode}: choose one of {', '.join(MODES)}")
    return mode
