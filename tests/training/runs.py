"""Trainings as small as they can be, in this process."""

from pathlib import Path
from unittest.mock import patch

import pytest
from conftest import QUICK, TINY, signalled
from lightning.pytorch.utilities.exceptions import SIGTERMException

from musictx.config.app import settings
from musictx.config.train import TrainConfig
from musictx.data.dataset import RandomCrops
from musictx.model.header import read_header
from musictx.tokenizers import build_tokenizer
from musictx.training import fit as training
from musictx.training.metrics import read_metrics

WHOLE = RandomCrops.__getitem__
PAD = build_tokenizer("performance").vocab.pad
RECALL = ["model.recall=true", "model.window=48", "model.d_attention=8"]
RECURRENT = ["model=lstm", "model.d_model=16", "model.n_layers=2", *RECALL]


def config_of(world, out, *overrides, model=TINY) -> TrainConfig:
    words = [f"data.path={world.store}", f"out={out}", "trainer.progress_bar=false", *model, *QUICK, *overrides]
    config: TrainConfig = settings("train", *words)
    return config


def fit(config) -> Path:
    """A training without the picture of its losses, which takes longer than all of its steps."""
    with patch("musictx.training.fit.plot_losses"):
        return training.fit(config)


def ragged(crops, index):
    """The window as it is up to its own place, then padding: 1 to 31 tokens of 32."""
    window = WHOLE(crops, index)
    window[2 + 11 * index % 31 :] = PAD
    return window


def val_nll(bundle) -> float:
    """What its header says of validation."""
    nll = read_header(bundle).val_nll
    assert nll is not None
    return nll


def curve(folder, key="train/loss"):
    return [float(row[key]) for row in read_metrics(folder / "metrics.csv") if key in row]


def losses(folder):
    """The rows of metrics.csv without the clock's."""
    clock = ("train/tokens_per_s", "seconds")
    return [{k: v for k, v in row.items() if k not in clock} for row in read_metrics(folder / "metrics.csv")]


STEPS = ["trainer.max_steps=9", "trainer.log_every=1", "trainer.validate_every=4", "model.dropout=0.1"]


def stop(world, folder):
    """A run in `folder` that was said to end after six of nine steps."""
    with signalled(5), pytest.raises(SIGTERMException) as caught:
        fit(config_of(world, folder, *STEPS))
    assert caught.value.code == 143
    return folder
