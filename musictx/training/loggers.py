"""Where a run's numbers go: a CSV file, or Weights & Biases without ever asking a question."""

import os
from dataclasses import asdict
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger, Logger, WandbLogger

from musictx.config import LoggerConfig, TrainConfig
from musictx.errors import ConfigError

MODES = ("online", "offline", "disabled")


def build_logger(config: TrainConfig, folder: Path) -> Logger:
    """The logger of a run. Raises ConfigError for an unknown one, or wandb online without a key."""
    choice = config.logger
    if choice.name == "csv":
        return CSVLogger(folder, name=None, version="")
    if choice.name == "wandb":
        mode = _wandb_mode(choice)
        logger = WandbLogger(
            name=config.name, project=choice.project, save_dir=folder, offline=mode == "offline", mode=mode
        )
        logger.experiment.config.update(asdict(config))
        return logger
    raise ConfigError(f"logger.name={choice.name}: choose csv or wandb")


def _wandb_mode(config: LoggerConfig) -> str:
    mode = config.mode or os.environ.get("WANDB_MODE") or "online"
    if mode not in MODES:
        raise ConfigError(f"logger.mode={mode}: choose one of {', '.join(MODES)}")
    if mode == "online":
        import wandb

        if not wandb.api.api_key:
            raise ConfigError(
                "logger=wandb has no API key: run `wandb login`, or set logger.mode=offline or WANDB_API_KEY"
            )
    return mode
