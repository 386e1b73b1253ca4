"""trainer.batch_size=auto: the largest power of two whose training step fits in the memory of the device."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from musictx.config.train import TrainConfig
from musictx.data.datamodule import MusicData
from musictx.data.store import Store
from musictx.errors import is_out_of_memory
from musictx.model.build import build_model
from musictx.objectives import Example
from musictx.training.failure import less_memory
from musictx.training.optimizer import build_optimizer
from musictx.training.run_folder import RunFolder
from musictx.training.start import objective_of, parts_of, with_weights

MOST = 4096


def with_batch_size(config: TrainConfig) -> TrainConfig:
    """The config with a number; a resumed run keeps its own. Raises TrainingError when not even one window fits."""
    if config.trainer.batch_size != "auto":
        return config
    run = RunFolder(Path(config.out))
    if run.is_unfinished and not config.overwrite:
        size = int(run.settings()["trainer.batch_size"])
    else:
        size = largest(lambda size: fits(config, size))
    if size == 0:
        raise less_memory(replace(config, trainer=replace(config.trainer, batch_size=1)), validating=False)
    print(f"trainer.batch_size=auto: {size}")
    return replace(config, trainer=replace(config.trainer, batch_size=size))


def largest(fitting: Callable[[int], bool], most: int = MOST) -> int:
    """The largest power of two up to `most` that fits, given that all sizes below it fit too; 0 when 1 does not."""
    size = 0
    while size < most and fitting(max(2 * size, 1)):
        size = max(2 * size, 1)
    return size


def fits(config: TrainConfig, size: int) -> bool:
    """Whether two steps with `size` windows fit; the second needs the optimizer's moments beside the gradients."""
    store = Store(Path(config.data.path), config.tokenizer.name)
    objective = objective_of(config, store.tokenizer)
    model = with_weights(build_model(*parts_of(config, objective.tokenizer)), config, objective.tokenizer)
    examples = MusicData(config.data, store, objective, 1, config.random_seed, cycle=model.cycle).examples
    inputs, targets = examples.collate([examples[0]] * size)
    device = torch.device(config.trainer.accelerator)
    try:
        model = model.to(device)
        optimizer = build_optimizer(model, config.trainer.optimizer, config.trainer.lr, 0.0)
        batch = Example([ids.to(device) for ids in inputs], targets.to(device))
        for _ in range(2):
            with torch.autocast(device.type, torch.bfloat16, enabled=config.trainer.precision != "32-true"):
                total, count = objective.loss(model, batch)
            (total / count).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return True
