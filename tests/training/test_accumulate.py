"""Batches that are added up make the step of one large batch, whatever they hold of padding."""

import pytest
import torch
import torch.nn.functional as F
from lightning import Trainer
from lightning.pytorch.plugins import MixedPrecision
from runs import PAD, config_of, curve, fit, ragged

from musictx.data.dataset import RandomCrops
from musictx.training.module import LanguageModelTraining

PLAIN = ["model.dropout=0", "trainer.log_every=1", "trainer.warmup_steps=0"]


@pytest.fixture(autouse=True)
def padding(monkeypatch):
    monkeypatch.setattr(RandomCrops, "__getitem__", ragged)


def test_a_step_has_the_gradient_of_the_mean_over_all_its_tokens(world, tmp_path, monkeypatch):
    batches, sizes, counts, expected = [], [], [], []
    begin, clip = LanguageModelTraining.on_train_batch_start, LanguageModelTraining.configure_gradient_clipping

    def note(self, batch, batch_idx):
        begin(self, batch, batch_idx)
        batches.append(batch)
        counts.append(int((batch.targets != PAD).sum()))

    def compare(self, optimizer, **kwargs):
        inputs, targets = (torch.cat(x) for x in zip(*((b.inputs[0], b.targets) for b in batches), strict=True))
        sizes.append(len(batches))
        batches.clear()
        logits = self.model(inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), ignore_index=PAD)
        for p, grad in zip(self.parameters(), torch.autograd.grad(loss, list(self.parameters())), strict=True):
            torch.testing.assert_close(p.grad, grad, rtol=1e-4, atol=1e-7)
        expected.append(float(loss.detach()))
        clip(self, optimizer, **kwargs)

    monkeypatch.setattr(LanguageModelTraining, "on_train_batch_start", note)
    monkeypatch.setattr(LanguageModelTraining, "configure_gradient_clipping", compare)
    settings = ["data.windows_per_epoch=16", "trainer.accumulate=3", "trainer.max_steps=4", "trainer.validate_every=3"]
    fit(config_of(world, tmp_path / "run", *PLAIN, *settings))
    assert sizes == [3, 1, 3, 1]  # an epoch is four batches: its last step has one
    assert max(counts) > 1.5 * min(counts)
    assert curve(tmp_path / "run") == pytest.approx(expected, rel=1e-5)


def test_scaled_losses_of_16_bits_are_neither_exploded_nor_clipped_as_such(world, tmp_path, monkeypatch):
    def half(**settings):
        del settings["precision"]  # Lightning wants a GPU for the name of it
        return Trainer(**settings | {"plugins": [*settings["plugins"], MixedPrecision("16-mixed", "cpu")]})

    settings = [*PLAIN, "trainer.accumulate=2", "trainer.validate_every=4"]
    plain = fit(config_of(world, tmp_path / "plain", *settings))
    monkeypatch.setattr("musictx.training.trainer.L.Trainer", half)
    scaled = fit(config_of(world, tmp_path / "half", *settings))
    assert curve(scaled.parent) == pytest.approx(curve(plain.parent), rel=2e-3)
