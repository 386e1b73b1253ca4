"""Trainings as small as they can be, in this process."""

from conftest import QUICK, TINY
from hydra import compose, initialize_config_dir

from musictx.app import conf_dir, typed
from musictx.config import register_schemas
from musictx.config.train import TrainConfig
from musictx.data.dataset import RandomCrops
from musictx.tokenizers import build_tokenizer
from musictx.training.metrics import read_metrics

WHOLE = RandomCrops.__getitem__
PAD = build_tokenizer("performance").vocab.pad
RECURRENT = ["model=lstm_attention", "model.d_model=16", "model.n_layers=2", "model.window=48", "model.d_attention=8"]


def config_of(world, out, *overrides, model=TINY):
    register_schemas()
    settings = [f"data.path={world.store}", f"out={out}", "trainer.progress_bar=false", *model, *QUICK, *overrides]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return typed(compose("train", settings), TrainConfig)


def ragged(crops, index):
    """The window as it is up to a place of its own, then padding: 1 to 31 tokens of 32."""
    window = WHOLE(crops, index)
    window[2 + 11 * index % 31 :] = PAD
    return window


def losses(folder):
    """The rows of metrics.csv without the clock's."""
    return [{k: v for k, v in row.items() if k != "train/tokens_per_s"} for row in read_metrics(folder / "metrics.csv")]
