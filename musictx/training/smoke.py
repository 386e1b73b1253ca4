"""trainer.smoke=true: two steps of everything, so that a mistake shows before the long run and not in it."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from musictx.config.train import TrainConfig
from musictx.model.bundle import load_bundle
from musictx.training.fit import fit
from musictx.training.folder import check_free, is_unfinished
from musictx.training.loggers import check_logger


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
