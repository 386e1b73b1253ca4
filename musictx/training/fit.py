"""One training run: a store and a config in, a folder with the best model's bundle out."""

import math
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from signal import SIGTERM
from threading import RLock
from typing import Any

import lightning as L
import numpy as np
import psutil
import torch
from lightning.pytorch.utilities.exceptions import SIGTERMException
from numpy.typing import NDArray

from musictx.config.train import TrainConfig
from musictx.data.datamodule import MusicData
from musictx.data.store import Store
from musictx.errors import ConfigError, UserError, counted, is_out_of_memory
from musictx.generate.draw import OF_SCORES
from musictx.model.build import Model, build_model, describe_model, memory_of, meta_model, model_config
from musictx.model.bundle import load_bundle, save_bundle
from musictx.model.header import read_header
from musictx.model.packaged import bundle_path
from musictx.objectives import build_objective
from musictx.terminal import say
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.score import ScoreTokenizer
from musictx.training.checkpoints import Checkpoints, damage_error, step_of
from musictx.training.failure import Guard, less_memory
from musictx.training.metrics import Metrics
from musictx.training.module import LanguageModelTraining
from musictx.training.precision import check_precision, emulation
from musictx.training.preflight import carries, check_trainer
from musictx.training.progress import build_progress
from musictx.training.run_folder import RunFolder, make_record
from musictx.training.samples import Samples
from musictx.training.start import header_of, ids_of_bundle, keys_of, sized_as_bundle, with_initial_weights
from musictx.training.trainer import build_loggers, build_trainer, check_logger, close_logger
from musictx.viz.curves import plot_curves

_RANDOM = RLock()  # PyTorch's random numbers are one row for the whole process: a training has them to itself
COPIES = 3  # of the weights, at least: gradients, and an optimizer's averages


def fit(config: TrainConfig) -> Path:
    """Trains or resumes a run, and returns its bundle: of the best validation, or with `trainer.keep=last` of the last.

    Raises ConfigError, StoreError, BundleError, TrainingError; SIGTERMException on SIGTERM, KeyboardInterrupt on Ctrl-C
    before there is a model.
    """
    config = sized_as_bundle(replace(config, out=config.resume or config.out))
    check_trainer(config)
    check_logger(config.logger)
    world_size = config.trainer.devices * config.trainer.num_nodes
    with own_random_numbers(config.random_seed), ExitStack() as holding:
        store = Store(Path(config.data.path), config.tokenizer.name)
        settings = config.objective, config.objective_settings
        objective = build_objective(*settings, store.tokenizer, config.model.cycle)
        model = with_initial_weights(new_model(config, objective.tokenizer), config, objective.tokenizer)
        check_precision(config.trainer, model)
        batches = config.trainer.batch_size, config.random_seed, carries(config), world_size
        data = MusicData(config.data, store, objective, *batches, cycle=model.cycle)
        header = header_of(config, model, store.manifest, objective)
        training = LanguageModelTraining(model, objective, config, header)
        trainer = build_trainer(config.trainer, data.batches_per_epoch, str(RunFolder(Path(config.out)).checkpoints))
        trainer.strategy.setup_environment()  # the processes connect: one of them opens the folder for all
        return _run(config, data, training, trainer, holding)


@contextmanager
def own_random_numbers(seed: int) -> Iterator[None]:
    """Waits for the training of another thread, which draws from the same generator."""
    if not _RANDOM.acquire(blocking=False):
        say("another training runs in this process: this one begins when it ends", flush=True)
        _RANDOM.acquire()
    try:
        L.seed_everything(seed, verbose=False)
        yield
    finally:
        _RANDOM.release()


def new_model(config: TrainConfig, tokenizer: Tokenizer) -> Model:
    """A new model of the tokenizer's ids. Raises ConfigError; UserError for one too large for this machine."""
    pace = tokenizer.pace
    if pace is None and config.model.clock == "time":
        raise ConfigError("clock", got="time", why=f"{tokenizer.name} tokens carry no time", allowed="index")
    settings = build_model_config(config, tokenizer.vocab.size, tokenizer.vocab.pad)
    keys = keys_of(tokenizer)
    keyboard = config.model.keyboard
    if keys is None and keyboard != "none":
        if config.init_from is not None:  # its ids are the reason, not a setting
            ids_of_bundle(config, read_header(bundle_path(config.init_from)), tokenizer)
        why = f"{tokenizer.name} tokens do not strike and release keys in seconds"
        raise ConfigError("keyboard", got=keyboard, why=why, allowed="none, or tokenizer=performance")
    check_memory(settings)
    return build_model(settings, None if pace is None else torch.from_numpy(pace), keys)


def check_memory(settings: Any) -> None:
    """Raises UserError for a model too large for this machine, before it is built."""
    model_bytes = COPIES * memory_of(meta_model(settings))
    machine_bytes = psutil.virtual_memory().total
    if model_bytes > machine_bytes:
        sizes = f"{model_bytes / 1e9:,.0f} GB, this machine has {machine_bytes / 1e9:,.0f}"
        raise UserError(f"weights, gradients and averages take {sizes}", "give a smaller model")


def build_model_config(config: TrainConfig, vocab_size: int, pad: int = -1) -> Any:
    """The model's config from the settings of its kind; `pad` -1: none. Raises ConfigError for impossible sizes."""
    settings = asdict(config.model)
    before = read_header(bundle_path(config.init_from)).model.get("trained_length") if config.init_from else None
    length = max(config.data.length, before or 0)
    ids = {"vocab_size": vocab_size, "pad": pad}
    return model_config(settings.pop("kind"), settings, **ids, attention=config.attention.impl, trained_length=length)


def _run(
    config: TrainConfig, data: MusicData, training: LanguageModelTraining, trainer: L.Trainer, holding: ExitStack
) -> Path:
    """Trains in the run's folder, from the start or from its last checkpoint."""
    run, objective, every = RunFolder(Path(config.out)), training.objective, config.trainer.sample_every
    continues = objective.inputs == ("ids",) and objective.continues
    samples = every is not None and continues and not isinstance(data.store.tokenizer, ScoreTokenizer)
    start: tuple[Path | None, str] = None, ""
    if trainer.is_global_zero:
        if config.init_from is not None:
            before = read_header(bundle_path(config.init_from))
            say(f"init_from={config.init_from}: {before.origin}")
            if before.added and before.added != training.header.added[: len(before.added)]:
                types, name = ", ".join(row[0] for row in before.added), before.objective["name"]
                say(f"its ids of objective={name} are left out ({types}): objective={name} keeps them")
        say(describe_model(training.model))
        if slow := emulation(config.trainer):
            say(slow)
        epochs, steps = config.trainer.max_epochs, config.trainer.max_steps
        total = config.trainer.total_steps(data.batches_per_epoch)
        if epochs is not None and steps != -1:
            first = f"steps={steps}" if total == steps else f"epochs={epochs}"
            say(f"of two limits, trainer.max_{first} ends the training, after {counted(total, 'step')}")
        if every is not None and not samples:
            why = OF_SCORES if continues else f"a model of objective={config.objective} cannot continue music"
            say(f"trainer.sample_every={every}: no samples, since {why}")
        if run.checkpoints.is_dir():
            with run.lock():  # refuse before anything in it changes
                pass
        go_on_from = run.open(config, make_record(data.store, config.trainer.accelerator), total)
        holding.enter_context(run.lock())
        start = go_on_from, run.record().wandb_id
    go_on_from, wandb_id = trainer.strategy.broadcast(start)

    checkpoints = Checkpoints(run.checkpoints, config.trainer.checkpoint_every, config.trainer.keep)
    tokenizer = objective.tokenizer
    guard = Guard(run.path, tokenizer.vocab.size)
    displays: list[L.Callback] = [build_progress()] if config.trainer.progress_bar else []
    if every is not None and samples:
        displays.append(Samples(run.samples, every, data.store, tokenizer, config.random_seed))
    try:
        trainer.loggers = build_loggers(config, run.path, wandb_id, step_of(go_on_from) if go_on_from else 0)
        trainer.callbacks += [guard, *displays, checkpoints]  # type: ignore[attr-defined]
        trainer.fit(training, datamodule=data, ckpt_path=go_on_from, weights_only=True)
    except SIGTERMException:
        say(f"\nstopped by SIGTERM after step {checkpoints.saved}: the same command resumes from there")
        raise SIGTERMException(128 + SIGTERM) from None
    except SystemExit:  # Lightning raises this for Ctrl-C
        if checkpoints.best_nll is None:
            raise KeyboardInterrupt from None
        say(f"\ninterrupted: the {config.trainer.keep} model so far is kept, and the same command resumes the run")
        save_bundle(run.bundle, *load_bundle(checkpoints.best))
        return run.bundle
    except (RuntimeError, ValueError, MemoryError) as error:
        if go_on_from is not None and re.search("loading state_dict|loaded state dict", str(error)):
            raise damage_error(go_on_from, "it is of another model, or its optimizer of another musictx") from None
        if not is_out_of_memory(error):
            raise
        raise less_memory(config, guard.validating) from None
    finally:
        if trainer.is_global_zero and not (run.last_checkpoint.exists() or run.failed):
            close_logger(config.logger, failed=True)
            run.undo()  # the same command can be given again
    if trainer.is_global_zero:
        save_bundle(run.bundle, *load_bundle(checkpoints.best))
        plot_losses(run.metrics(), run.curves, config.name, tokenizer.vocab.size)
        run.close()
        close_logger(config.logger, failed=False)
    return run.bundle


POINTS = 40
Floats = NDArray[np.float64]


def plot_losses(rows: list[Metrics], path: Path, name: str, choices: int) -> None:
    """Draws training loss and validation NLL over optimizer steps, beside the NLL of a guess among `choices`."""
    keys = {"training": "train/loss", "validation": "val/nll"}
    curves = {label: points for label, key in keys.items() if len((points := curve(rows, key))[0])}
    blind = math.log(choices)
    plot_curves(curves, path, "optimizer steps", "nats per token", name, [(blind, f"guessing blindly {blind:.2f}")])


def curve(rows: list[Metrics], key: str) -> tuple[Floats, Floats, Floats, Floats]:
    """(W,) each: step, mean, lowest and highest of the values in each of at most 40 groups of rows."""
    points = np.array([(int(row["step"]) + 1, float(row[key])) for row in rows if key in row]).reshape(-1, 2)
    parts = np.array_split(points, min(POINTS, max(len(points), 1)))
    table = [(p[:, 0].mean(), p[:, 1].mean(), p[:, 1].min(), p[:, 1].max()) for p in parts if len(p)]
    step, mean, low, high = np.array(table).reshape(-1, 4).T
    return step, mean, low, high
