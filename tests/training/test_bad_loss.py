"""What goes wrong in a training is said in one line, with what a person needs to mend it."""

from dataclasses import replace

import pytest
import torch
from runs import RECURRENT, config_of, fit

from musictx.errors import is_out_of_memory
from musictx.training.failure import TrainingError, less_memory
from musictx.training.module import LanguageModelTraining


@pytest.fixture
def at_step(monkeypatch):
    """Does something with the module before the batch of a step."""

    def patch(step, do):
        begin = LanguageModelTraining.on_train_batch_start

        def act(self, batch, batch_idx):
            begin(self, batch, batch_idx)
            if self.trainer.global_step == step:
                do(self)

        monkeypatch.setattr(LanguageModelTraining, "on_train_batch_start", act)

    return patch


def spoil(value):
    return lambda module: module.model.embed.weight.data.mul_(value)


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "the loss .*nan"), (1e4, r"the loss .* \d+")])
def test_a_bad_loss_stops_before_it_reaches_the_weights(world, tmp_path, at_step, value, text):
    at_step(3, spoil(value))
    with pytest.raises(TrainingError, match=f"^{text}.* step 3, .*failed.pt"):
        fit(config_of(world, tmp_path / "run"))
    kept = torch.load(tmp_path / "run" / "failed.pt", weights_only=True)
    assert [ids.shape for ids in (*kept["batch"]["inputs"], kept["batch"]["targets"])] == [(4, 32), (4, 32)]
    assert kept["step"] == 3
    assert not kept["loss"] <= 60
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert (tmp_path / "run" / "checkpoints" / "last.ckpt").exists()  # of step 2, before it went wrong


def test_a_validation_that_is_nan_makes_no_bundle(world, tmp_path, monkeypatch):
    monkeypatch.setattr(
        LanguageModelTraining, "on_validation_epoch_start", lambda self: spoil(float("nan"))(self), raising=False
    )
    with pytest.raises(TrainingError, match="NLL .*nan .*step 2,"):
        fit(config_of(world, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_out_of_memory_says_what_to_lower_and_by_how_much(world, tmp_path, at_step):
    def full(module):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    at_step(1, full)
    with pytest.raises(TrainingError, match="memory, .* batch_size=2 accumulate=2$"):
        fit(config_of(world, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_every_advice_about_memory(world, tmp_path):
    config = config_of(world, tmp_path, "trainer.batch_size=1")
    assert less_memory(config, False).hint == "give checkpoint_activations=true"
    on = replace(config, trainer=replace(config.trainer, checkpoint_activations=True))
    assert less_memory(on, False).hint == "give length=16"
    recurrent = config_of(world, tmp_path, "trainer.batch_size=1", model=RECURRENT)
    assert less_memory(recurrent, False).hint == "give length=16"
    assert less_memory(config, True).hint == "give score_batch_tokens=2048, then segment=32"


def test_what_counts_as_out_of_memory():
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
