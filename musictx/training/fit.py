"""One training run: a store and a config in, a folder with the best model's bundle out."""

import logging
import math
import re
import shutil
import sys
import warnings
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import lightning as L
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging, LearningRateMonitor, ModelCheckpoint, TQDMProgressBar
from omegaconf import OmegaConf

from musictx.config.train import ModelConfig, TrainConfig
from musictx.data.datamodule import MusicData
from musictx.errors import ConfigError
from musictx.model.build import build_model, check_kind, describe_model, model_config, settings_of
from musictx.model.bundle import BundleHeader, save_bundle
from musictx.model.recurrent import RecurrentConfig
from musictx.model.transformer import TransformerConfig
from musictx.training.loggers import build_logger, check_logger, close_logger
from musictx.training.module import LanguageModelTraining
from musictx.training.optimizer import OPTIMIZERS
from musictx.training.throughput import Throughput

ACCELERATORS = ("cpu", "cuda")
PRECISIONS = ("32-true", "bf16-mixed", "bf16-true", "16-mixed")


def fit(config: TrainConfig) -> Path:
    """Trains, and returns the bundle of the epoch with the lowest validation NLL.

    Everything that can be wrong is looked at before the run's folder is made. Raises ConfigError, StoreError.
    """
    check_trainer(config)
    check_logger(config.logger)
    L.seed_everything(config.seed, verbose=False)
    if config.data.carry and config.model.kind != "recurrent":
        raise ConfigError(f"data.carry=true: model.kind={config.model.kind} has no state to carry; leave it out")
    carry = config.data.carry if config.data.carry is not None else config.model.kind == "recurrent"
    data = MusicData(config.data, config.tokenizer.name, config.trainer.batch_size, config.seed, carry)
    pace = data.tokenizer.pace
    if config.model.clock == "time" and pace is None:
        raise ConfigError(f"model.clock=time: {data.tokenizer.name} tokens do not tell time; choose model.clock=index")
    model = build_model(
        build_model_config(config, data.tokenizer.vocab.size), None if pace is None else torch.from_numpy(pace)
    )
    print(describe_model(model))
    folder = make_run_folder(Path(config.out), config.overwrite)
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.structured(config)))

    training = LanguageModelTraining(model, data.tokenizer.vocab, config.trainer)
    best = ModelCheckpoint(folder / "checkpoints", "best", monitor="val/nll", mode="min", enable_version_counter=False)
    try:
        _trainer(config, folder, best, data.batches_per_epoch).fit(training, datamodule=data)
    except SystemExit:  # what Lightning makes of Ctrl-C
        if best.best_model_score is None:
            raise KeyboardInterrupt from None
        print("\ninterrupted: the best model so far is kept")
    finally:
        if best.best_model_score is None:  # no model came of it: the same command can be given again
            close_logger(config.logger)
            shutil.rmtree(folder)

    assert best.best_model_score is not None  # the end of training is always validated
    state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
    training.load_state_dict(state)
    manifest = data.store.manifest
    header = BundleHeader(
        model={"kind": config.model.kind, **asdict(model.config)},
        tokenizer=manifest.tokenizer,
        tokenizer_state=manifest.tokenizer_state,
        vocab_fingerprint=manifest.vocab_fingerprint,
        corpus=manifest.corpus.name,
        licence=manifest.corpus.licence,
        val_nll=float(best.best_model_score),
        version=version("musictx"),
        notes={"name": config.name, "seed": config.seed, "citation": manifest.corpus.citation},
    )
    bundle = folder / "model.safetensors"
    save_bundle(bundle, model, header)
    return bundle


def check_trainer(config: TrainConfig) -> None:
    """Raises ConfigError for an accelerator that is unknown or not here, and for numbers that cannot be."""
    trainer, data = config.trainer, config.data
    for name, choice, known in (
        ("trainer.accelerator", trainer.accelerator, ACCELERATORS),
        ("trainer.precision", trainer.precision, PRECISIONS),
        ("trainer.optimizer", trainer.optimizer, OPTIMIZERS),
    ):
        if choice not in known:
            raise ConfigError(f"{name}={choice}: choose one of {', '.join(known)}")
    if trainer.accelerator == "cuda" and not torch.cuda.is_available():
        raise ConfigError("trainer.accelerator=cuda, but this machine has no CUDA device: use trainer=cpu")
    if trainer.accelerator == "cpu" and trainer.precision == "16-mixed":  # Lightning would take another unasked
        raise ConfigError("trainer.precision=16-mixed needs trainer.accelerator=cuda: use bf16-mixed or 32-true")
    above_0, below_1, most = sys.float_info.min, math.nextafter(1.0, 0.0), sys.float_info.max
    for name, value, low, high, allowed in (  # NaN is inside no limits; null means a default
        ("seed", config.seed, 0, 2**32 - 1, "0 to 4294967295"),
        ("trainer.lr", trainer.lr, above_0, most, "a number above 0"),
        ("trainer.weight_decay", trainer.weight_decay, 0, most, "0 or a number above it"),
        ("trainer.grad_clip", trainer.grad_clip, 0, most, "0 (off) or a number above it"),
        ("trainer.label_smoothing", trainer.label_smoothing, 0, below_1, "a share from 0 up to below 1"),
        ("trainer.ema_decay", trainer.ema_decay, above_0, below_1, "a share above 0 and below 1, or null for none"),
        ("trainer.scheduled_sampling", trainer.scheduled_sampling, 0, below_1, "a share from 0 up to below 1"),
        ("trainer.warmup_steps", trainer.warmup_steps, 0, most, "0 or more"),
        ("trainer.max_steps", None if trainer.max_steps == -1 else trainer.max_steps, 1, most, "1 or more, or -1"),
        ("trainer.max_epochs", trainer.max_epochs, 1, most, "1 or more"),
        ("trainer.batch_size", trainer.batch_size, 1, most, "1 or more"),
        ("trainer.accumulate", trainer.accumulate, 1, most, "1 or more"),
        ("trainer.validate_every", trainer.validate_every, 1, most, "1 or more, or null for once an epoch"),
        ("data.length", data.length, 2, most, "2 or more"),
        ("data.transpose", data.transpose, 0, most, "0 or more"),
        ("data.segment", data.segment, 1, most, "1 or more, or null for whole pieces"),
        ("data.windows_per_epoch", data.windows_per_epoch, 1, most, "1 or more, or null for one reading of the split"),
        ("data.score_batch_tokens", data.score_batch_tokens, 1, most, "1 or more"),
        ("data.workers", data.workers, 0, most, "0 or more"),
    ):
        if value is not None and not low <= value <= high:
            raise ConfigError(f"{name}={value}: give {allowed}")


def build_model_config(config: TrainConfig, vocab_size: int) -> TransformerConfig | RecurrentConfig:
    """The model group and the attention group as what this kind of model is built from. Raises ConfigError for
    settings that it lacks, or that another kind has."""
    given = asdict(config.model)
    kind = given.pop("kind")
    check_kind(kind)
    known, default = settings_of(kind), asdict(ModelConfig())
    for name, value in given.items():
        if name in known and value is None:
            raise ConfigError(f"model.{name} is not set: model.kind={kind} needs it")
        if name not in known and value != default[name]:
            raise ConfigError(f"model.{name}={value}: model.kind={kind} has no such setting; leave it out")
    settings = {name: value for name, value in given.items() if name in known}
    if "attention" in known:
        settings["attention"] = config.attention.impl
    return model_config(kind, {"vocab_size": vocab_size, **settings})


def make_run_folder(folder: Path, overwrite: bool) -> Path:
    """A new folder for the run. Raises ConfigError rather than mix two runs in one folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not overwrite:
            raise ConfigError(f"out={folder} exists already: give another out= or overwrite=true")
        # the demo's seeds and continuations lie in a run's folder too; anything else is a person's own
        ours = {"config.yaml", "metrics.csv", "checkpoints", "wandb", "model.safetensors"}
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else [folder.name]
        foreign = [n for n in names if n not in ours and not re.fullmatch(r"seed(-\d+)?\.(mid|wav|png)", n)]
        if foreign or "config.yaml" not in names:
            what = foreign[0] if foreign else "no config.yaml"
            raise ConfigError(f"out={folder} is not the folder of a run (it has {what}): give another out=")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _trainer(config: TrainConfig, folder: Path, best: ModelCheckpoint, batches_per_epoch: int) -> L.Trainer:
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    # true of every run here, and nothing a person could act on
    for message in ("does not have many workers", "exists and is not empty", "is deprecated"):
        warnings.filterwarnings("ignore", f".*{message}")
    warnings.filterwarnings("ignore", ".*is smaller than the logging interval.*")
    trainer = config.trainer
    callbacks: list[L.Callback] = [best, Throughput(), LearningRateMonitor("step")]
    if trainer.ema_decay is not None:
        callbacks.append(EMAWeightAveraging(decay=trainer.ema_decay))
    if trainer.progress_bar:
        callbacks.append(TQDMProgressBar(refresh_rate=10))
    return L.Trainer(
        accelerator=trainer.accelerator,
        devices=1,
        precision=trainer.precision,  # type: ignore[arg-type]
        max_epochs=trainer.max_epochs,
        max_steps=trainer.max_steps,
        accumulate_grad_batches=trainer.accumulate,
        gradient_clip_val=trainer.grad_clip,
        val_check_interval=trainer.validate_every or batches_per_epoch,
        check_val_every_n_epoch=None,  # counts batches across epochs
        num_sanity_val_steps=0,
        log_every_n_steps=10,
        logger=build_logger(config, folder),
        callbacks=callbacks,
        enable_progress_bar=trainer.progress_bar,
        enable_model_summary=False,
    )
