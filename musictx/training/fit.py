"""One training run: a store and a config in, a folder with the best model's bundle out. `trainer.smoke=true` does two
steps of everything, so that a mistake shows before the long run and not in it.
"""

import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from signal import SIGTERM
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import lightning as L
import numpy as np
import torch
from lightning.pytorch.utilities.exceptions import SIGTERMException
from numpy.typing import NDArray

from musictx.config.train import TrainConfig
from musictx.data.datamodule import MusicData
from musictx.data.store import Store
from musictx.errors import is_out_of_memory
from musictx.model.build import describe_model
from musictx.model.bundle import load_bundle, read_header, save_bundle
from musictx.model.lora import describe_adapters
from musictx.model.shipped import bundle_path
from musictx.training.batch_size import with_batch_size
from musictx.training.checkpoints import Checkpoints
from musictx.training.failure import FAILED, Guard, less_memory
from musictx.training.metrics import Row, read_metrics
from musictx.training.module import LanguageModelTraining
from musictx.training.preflight import carries, check_trainer
from musictx.training.progress import build_progress
from musictx.training.run_folder import (
    BUNDLE,
    CHECKPOINTS,
    CURVES,
    METRICS,
    check_free,
    close_run,
    held,
    is_unfinished,
    last_checkpoint,
    make_record,
    open_run,
    read_record,
    undo_run,
)
from musictx.training.samples import Samples
from musictx.training.start import header_of, objective_of, sized_as_bundle, starting_model
from musictx.training.trainer import build_loggers, build_trainer, check_logger, close_logger
from musictx.viz.curves import draw_curves


def fit(config: TrainConfig) -> Path:
    """Trains, and returns the bundle of the validation with the lowest NLL, or with `trainer.keep=last` of the last.

    The same config goes on with a run that was stopped, from its last checkpoint and as if it had not been. All that
    can be wrong is looked at before the run's folder is made. Raises ConfigError, StoreError, BundleError,
    TrainingError; SIGTERMException when it was told to end, KeyboardInterrupt when there is no model by then.
    """
    config = sized_as_bundle(replace(config, out=config.resume or config.out))
    check_trainer(config)
    check_logger(config.logger)
    L.seed_everything(config.seed, verbose=False)
    config = with_batch_size(config)
    world_size = config.trainer.devices * config.trainer.num_nodes
    batch_size = int(config.trainer.batch_size)
    store = Store(Path(config.data.path), config.tokenizer.name)
    objective = objective_of(config, store.tokenizer)
    model = starting_model(config, objective.tokenizer)
    data = MusicData(config.data, store, objective, batch_size, config.seed, carries(config), world_size, model.cycle)
    header = header_of(config, model, store.manifest, objective)
    training = LanguageModelTraining(model, objective, config.trainer, config.seed, header, config.data.grow_from)
    trainer = build_trainer(config.trainer, data.batches_per_epoch, str(Path(config.out) / CHECKPOINTS))
    trainer.strategy.connect(training)  # which is told there how fsdp's processes share it
    trainer.strategy.setup_environment()  # the processes meet: one of them opens the folder for all
    with ExitStack() as holding:
        return _run(config, data, training, trainer, holding)


def _run(
    config: TrainConfig, data: MusicData, training: LanguageModelTraining, trainer: L.Trainer, holding: ExitStack
) -> Path:
    """What happens in the run's folder."""
    folder, model = Path(config.out), training.model
    opened: tuple[Path | None, str] = None, ""
    if trainer.is_global_zero:
        if config.init_from is not None:
            before = read_header(bundle_path(config.init_from))
            print(f"init_from={config.init_from}: {before.origin}")
            if before.added and not training.objective.added:
                left, name = ", ".join(row[0] for row in before.added), before.objective["name"]
                print(f"its ids of objective={name} are left out ({left}): objective={name} keeps them")
        print(describe_model(model))
        if config.trainer.lora_rank is not None:
            print(describe_adapters(model, config.trainer.lora_rank))
        if (folder / CHECKPOINTS).is_dir():
            with held(folder):  # refused before anything in it is touched
                pass
        go_on_from = open_run(config, make_record(data.store, config.trainer.accelerator))
        holding.enter_context(held(folder))
        opened = go_on_from, read_record(folder).wandb_id
    go_on_from, wandb_id = trainer.strategy.broadcast(opened)

    checkpoints = Checkpoints(folder / CHECKPOINTS, config.trainer.checkpoint_every, config.trainer.keep)
    n_ids = training.objective.tokenizer.vocab.size
    guard = Guard(folder, n_ids)
    try:
        trainer.loggers = build_loggers(config, folder, wandb_id)
        trainer.callbacks += [guard, *onlookers(config, data), checkpoints]  # type: ignore[attr-defined]
        trainer.fit(training, datamodule=data, ckpt_path=go_on_from, weights_only=True)
    except SIGTERMException:
        print(f"\nstopped by SIGTERM after step {checkpoints.saved}: the same command goes on from there")
        raise SIGTERMException(128 + SIGTERM) from None
    except SystemExit:  # what Lightning makes of Ctrl-C
        if checkpoints.best_nll is None:
            raise KeyboardInterrupt from None
        print(f"\ninterrupted: the {config.trainer.keep} model so far is kept, and the same command goes on")
        return keep_best(folder, checkpoints)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise less_memory(config, guard.validating) from None
    finally:
        if trainer.is_global_zero and not (last_checkpoint(folder).exists() or (folder / FAILED).exists()):
            close_logger(config.logger, failed=True)
            undo_run(folder)  # the same command can be given again
    bundle = folder / BUNDLE
    if trainer.is_global_zero:
        keep_best(folder, checkpoints)
        draw_losses(folder / METRICS, folder / CURVES, config.name, n_ids)
        close_run(folder)
        close_logger(config.logger, failed=False)
    return bundle


def onlookers(config: TrainConfig, data: MusicData) -> list[L.Callback]:
    """What shows a person how it goes."""
    trainer = config.trainer
    shown = [build_progress()] if trainer.progress_bar else []
    # a model of fsdp is whole in no process, one that takes more than ids or learns another task continues nothing
    draws = trainer.strategy != "fsdp" and data.objective.inputs == ("ids",) and data.objective.continues
    if trainer.sample_every is not None and draws:
        folder, tokenizer = Path(config.out) / "samples", data.objective.tokenizer
        shown.append(Samples(folder, trainer.sample_every, data.store, tokenizer, config.seed))
    return shown


def keep_best(folder: Path, checkpoints: Checkpoints) -> Path:
    """Makes the bundle of the best checkpoint."""
    bundle = folder / BUNDLE
    save_bundle(bundle, *load_bundle(checkpoints.best))
    return bundle


def smoke(config: TrainConfig) -> None:
    """Training batches as large as they will be, the two largest batches of the validation, a checkpoint, a sample, the
    bundle written and read again; nothing of it is kept. Raises what `fit` does."""
    out = Path(config.out)
    if not is_unfinished(out):
        check_free(out, config.overwrite)
    check_logger(config.logger)
    trainer = replace(
        config.trainer, smoke=True, max_steps=2, accumulate=1, validate_every=1, checkpoint_every=1, log_every=1
    )
    if trainer.sample_every is not None:
        trainer.sample_every = 2
    quiet = replace(config.logger, name="csv")  # wandb has answered above
    nearest = next(folder for folder in out.resolve().parents if folder.exists())
    start = perf_counter()
    with TemporaryDirectory(prefix=".smoke-", dir=nearest) as folder:
        bundle = fit(replace(config, out=f"{folder}/run", overwrite=False, resume=None, trainer=trainer, logger=quiet))
        load_bundle(bundle)
    memory = f", {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB of GPU memory" if torch.cuda.is_available() else ""
    print(f"smoke: two steps, validation, checkpoint and bundle went well in {perf_counter() - start:.0f} s{memory}")


POINTS = 40


class Curve(NamedTuple):
    """(W,) each; the band is from the lowest to the highest."""

    step: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def draw_losses(metrics: Path, path: Path, name: str, vocab_size: int) -> None:
    """Training loss and validation NLL over optimizer steps, beside what guessing blindly would cost."""
    rows = read_metrics(metrics)
    curves = {label: curve(rows, key) for label, key in (("training", "train/loss"), ("validation", "val/nll"))}
    known = {label: each for label, each in curves.items() if len(each.step)}
    blind = math.log(vocab_size)
    draw_curves(known, path, "optimizer steps", "nats per token", name, [(blind, f"guessing blindly {blind:.2f}")])


def curve(rows: list[Row], key: str) -> Curve:
    """What was logged, in at most 40 runs of rows of equal length, each as its mean and its extremes."""
    found = np.array([(int(row["step"]) + 1, float(row[key])) for row in rows if key in row]).reshape(-1, 2)
    parts = np.array_split(found, min(POINTS, max(len(found), 1)))
    table = [(p[:, 0].mean(), p[:, 1].mean(), p[:, 1].min(), p[:, 1].max()) for p in parts if len(p)]
    return Curve(*np.array(table).reshape(-1, 4).T)
