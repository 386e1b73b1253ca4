"""Trainings as small as they can be, in this process."""

from conftest import QUICK, TINY
from hydra import compose, initialize_config_dir

from musictx.app import conf_dir, typed
from musictx.config import register_schemas
from musictx.config.train import TrainConfig
from musictx.training.metrics import read_metrics

RECURRENT = ["model=lstm_attention", "model.d_model=16", "model.n_layers=2", "model.window=48", "model.d_attention=8"]


def config_of(world, out, *overrides, model=TINY):
    register_schemas()
    settings = [f"data.path={world.store}", f"out={out}", "trainer.progress_bar=false", *model, *QUICK, *overrides]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return typed(compose("train", settings), TrainConfig)


def losses(folder):
    """The rows of metrics.csv without the clock's."""
    return [{k: v for k, v in row.items() if k != "train/tokens_per_s"} for row in read_metrics(folder / "metrics.csv")]
