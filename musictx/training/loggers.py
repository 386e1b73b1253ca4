"""Where a run's numbers go: a CSV file, and Weights & Biases without ever asking a question."""

import os
from dataclasses import asdict
from pathlib import Path

from lightning.pytorch.loggers import Logger, WandbLogger

from musictx.config.train import LoggerConfig, TrainConfig
from musictx.errors import ConfigError
from musictx.training.folder import METRICS
from musictx.training.metrics import MetricsFile

MODES = ("online", "offline", "disabled")


def check_logger(config: LoggerConfig) -> None:
    """Raises ConfigError for an unknown logger, or wandb online without a key that could be one."""
    if config.name not in ("csv", "wandb"):
        raise ConfigError(f"logger.name={config.name}: choose csv or wandb")
    if config.name == "wandb" and wandb_mode(config) == "online":
        import wandb

        try:
            known = wandb.login(prompt=False)
        except wandb.errors.Error as error:
            raise _no_wandb(error) from None
        if not known:
            raise ConfigError(
                "logger=wandb has no API key: run `wandb login`, or set logger.mode=offline or WANDB_API_KEY"
            )


def build_loggers(config: TrainConfig, folder: Path, wandb_id: str) -> list[Logger]:
    """`metrics.csv`, and wandb where it is asked for: a run that goes on does so under its old id.

    For a config that passed `check_logger`. Raises ConfigError when wandb does not answer.
    """
    metrics, choice = MetricsFile(folder / METRICS), config.logger
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
    """Ends wandb's own process, which writes into the run's folder: the folder can be removed, another run begun."""
    if config.name == "wandb":
        import wandb

        wandb.finish(exit_code=int(failed))


def _no_wandb(error: Exception) -> ConfigError:
    said = " ".join(str(error).split()).rstrip(".")
    return ConfigError(f"logger=wandb cannot be used ({said}): mend the key or the network, or set logger.mode=offline")


def wandb_mode(config: LoggerConfig) -> str:
    """As configured, else WANDB_MODE, else online. Raises ConfigError for one that does not exist."""
    mode = config.mode or os.environ.get("WANDB_MODE") or "online"
    if mode not in MODES:
        where = "logger.mode" if config.mode else "the environment variable WANDB_MODE"
        raise ConfigError(f"{where}={mode}: choose one of {', '.join(MODES)}")
    return mode
