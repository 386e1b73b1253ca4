"""Several processes learn what one does; ways to save time and memory change nothing of it."""

import socket
from functools import partialmethod
from typing import Any

import pytest
import torch
from conftest import QUICK, ROOT, TINY, run
from runs import RECURRENT, config_of, curve, fit, ragged

from musictx.data.dataset import RandomCrops
from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle

STEPS = ["model.dropout=0", "trainer.max_steps=6", "trainer.validate_every=3", "trainer.log_every=1"]
PLAIN = ["trainer.checkpoint_every=1", *STEPS]


# windows that end in padding, in each of several processes
RAGGED = """
from musictx.cli import main
from musictx.data.dataset import RandomCrops
from runs import ragged

RandomCrops.__getitem__ = ragged
"""
# a power cut right after the checkpoint of step 4
DIES = """
import os
from musictx.training.checkpoints import Checkpoints

save = Checkpoints.on_train_batch_end

def and_die(self, trainer, *rest):
    save(self, trainer, *rest)
    if trainer.global_step == 4:
        os._exit(9)

Checkpoints.on_train_batch_end = and_die
"""


# what torchrun does, by a process that has imported PyTorch already and so takes a tenth of the time
FORKS = """
import os, sys

sys.path[:0] = os.environ["PATHS"].split(":")
children = []
for rank in "01":
    if (child := os.fork()) == 0:
        os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0"}
        break
    children.append(child)
else:
    sys.exit(int(any([os.waitpid(child, 0)[1] for child in children])))
"""
PATHS = f"{ROOT}:{ROOT / 'tests'}:{ROOT / 'tests' / 'training'}"
TWO = ["train", "trainer.devices=2", "trainer.progress_bar=false"]


def forked(cwd, script, *args):
    (cwd / "script.py").write_text(f"{FORKS}{script}main()")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "forked"}
    return run([cwd / "script.py", *TWO, *args], cwd, PATHS=PATHS, **there)


def test_two_processes_cut_off_and_started_again_have_the_losses_of_one_with_the_same_global_batch(
    world, tmp_path, monkeypatch
):
    monkeypatch.setattr(RandomCrops, "__getitem__", ragged)
    whole = fit(config_of(world, tmp_path / "one", *PLAIN))  # batches of 4
    settings = [f"data.path={world.store}", "out=two", "trainer.strategy=ddp", *TINY, *QUICK, *PLAIN]
    # the four windows of a step as two batches of 1 in each process
    settings += ["trainer.batch_size=1", "trainer.accumulate=2", "trainer.validate_every=6"]
    assert forked(tmp_path, RAGGED + DIES, *settings).returncode == 1
    assert [p.name for p in sorted((tmp_path / "two" / "checkpoints").glob("*.ckpt"))] == ["best.ckpt", "last.ckpt"]
    done = forked(tmp_path, RAGGED, *settings)
    assert done.returncode == 0, done.stderr
    for key in ("train/loss", "val/nll"):
        theirs = curve(whole.parent, key)
        if key == "train/loss":
            del theirs[3]  # the row of the step at which it died is not there
        torch.testing.assert_close(curve(tmp_path / "two", key), theirs, rtol=1e-4, atol=1e-5)
    weights = load_bundle(tmp_path / "two" / "model.safetensors").model.state_dict()
    for name, tensor in load_bundle(whole).model.state_dict().items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-2, atol=1e-4)
    assert not (tmp_path / "two" / "checkpoints" / "last.ckpt").exists()
    assert done.stdout.count("best model: ") == 1


def test_recomputed_blocks_learn_the_same(world, tmp_path):
    settings = ["trainer.log_every=1", "model.dropout=0.1", "trainer.ema_decay=0.9"]
    plain = fit(config_of(world, tmp_path / "plain", *settings))
    less = fit(config_of(world, tmp_path / "less", *settings, "trainer.checkpoint_activations=true"))
    assert curve(less.parent, "train/loss") == curve(plain.parent, "train/loss")
    assert curve(less.parent, "val/nll") == curve(plain.parent, "val/nll")


def test_a_compiled_model_learns_the_same(world, tmp_path, monkeypatch):
    graphs: list[bool] = []  # of each: whether it was for training

    def capture(graph: Any, inputs: Any) -> Any:  # making machine code would take longer than all other tests
        graphs.append(torch.is_grad_enabled())
        return graph.forward

    monkeypatch.setattr("torch.nn.Module.compile", partialmethod(torch.nn.Module.compile, backend=capture))
    plain = fit(config_of(world, tmp_path / "plain", *STEPS))
    fast = fit(config_of(world, tmp_path / "fast", *STEPS, "trainer.compile=true", "trainer.ema_decay=0.5"))
    losses = [curve(bundle.parent, "train/loss") for bundle in (fast, plain)]
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-5)
    assert set(load_bundle(fast).model.state_dict()) == set(load_bundle(plain).model.state_dict())
    assert graphs
    assert all(graphs)  # validation's batches have many shapes, and none is compiled


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("trainer.strategy=horovod", "strategy=horovod: "),
        ("trainer.devices=2", "strategy=auto: .*: .*trainer=ddp"),
        ("trainer.devices=0", "devices=0: give 1 or more"),
        ("trainer.devices=2 trainer.num_nodes=3 trainer.strategy=ddp", "devices=2: .* 6 .*--nproc-per-node=2 -m"),
    ],
)
def test_ways_to_run_that_cannot_be(world, tmp_path, settings, text):
    with pytest.raises(ConfigError, match=f"^{text}"):
        fit(config_of(world, tmp_path / "run", *settings.split()))
    assert not (tmp_path / "run").exists()


def test_a_state_is_carried_in_one_process(world, tmp_path):
    with pytest.raises(ConfigError, match="^devices=2: .* in one process"):
        fit(config_of(world, tmp_path / "run", "trainer.devices=2", "trainer.strategy=ddp", model=RECURRENT))
