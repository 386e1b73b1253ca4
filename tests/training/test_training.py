import signal
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from conftest import QUICK, TINY
from hydra import compose, initialize_config_dir

from musictx.app import conf_dir, typed
from musictx.config import LoggerConfig, TrainConfig, register_schemas
from musictx.errors import ConfigError
from musictx.model.bundle import read_header
from musictx.training.fit import fit
from musictx.training.loggers import wandb_mode
from musictx.training.schedule import warmup_cosine
from musictx.training.throughput import Throughput


def test_warmup_rises_to_one_and_the_cosine_falls_to_a_tenth():
    factors = [warmup_cosine(step, 4, 104) for step in range(104)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4] == pytest.approx(1.0)
    assert factors[54] == pytest.approx(0.55)
    assert factors[-1] == pytest.approx(0.1, abs=1e-3)
    assert all(a >= b for a, b in pairwise(factors[4:]))


def test_a_run_that_is_all_warmup_does_not_divide_by_zero():
    assert [warmup_cosine(step, 2, 2) for step in range(3)] == [0.5, 1.0, 1.0]


def test_wandb_mode_is_config_then_environment_then_online(monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert wandb_mode(LoggerConfig("wandb")) == "online"
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert wandb_mode(LoggerConfig("wandb")) == "offline"
    assert wandb_mode(LoggerConfig("wandb", mode="disabled")) == "disabled"
    with pytest.raises(ConfigError, match="logger.mode=dryrun: choose one of online, offline, disabled"):
        wandb_mode(LoggerConfig("wandb", mode="dryrun"))


@pytest.fixture
def interrupted(world, tmp_path, monkeypatch):
    """A run in which a person presses Ctrl-C after the given number of batches."""
    handler = signal.getsignal(signal.SIGINT)  # Lightning leaves it ignored

    def run(batches):
        register_schemas()
        overrides = [f"data.path={world.store}", f"out={tmp_path / 'run'}", "trainer.progress_bar=false"]
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            config = typed(compose("train", [*overrides, *TINY, *QUICK]), TrainConfig)

        def press(self, trainer, module, outputs, batch, index):
            if trainer.global_step == batches:
                raise KeyboardInterrupt

        monkeypatch.setattr(Throughput, "on_train_batch_end", press)
        return fit(config)

    yield run
    signal.signal(signal.SIGINT, handler)


def test_ctrl_c_keeps_the_best_model_so_far(interrupted):
    assert read_header(interrupted(3)).val_nll > 0


def test_ctrl_c_before_any_validation_is_just_an_interruption(interrupted, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        interrupted(1)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_throughput_counts_input_tokens_of_whole_windows_of_batches(monkeypatch):
    clock = iter([0.0, 2.0, 2.0, 100.0, 104.0, 104.0])
    monkeypatch.setattr("musictx.training.throughput.perf_counter", lambda: next(clock))
    logged = []
    module = SimpleNamespace(log=lambda name, value, **_: logged.append((name, value)))
    callback = Throughput(every=2)
    callback.on_train_epoch_start(None, module)
    for _ in range(2):
        callback.on_train_batch_end(None, module, None, torch.zeros(3, 11), 0)
    callback.on_validation_end(None, module)  # time spent validating does not count
    for _ in range(2):
        callback.on_train_batch_end(None, module, None, torch.zeros(3, 11), 0)
    assert logged == [("train/tokens_per_s", 30.0), ("train/tokens_per_s", 15.0)]
