"""A run that was stopped ends as if it had not been: the same losses, the same weights, bit for bit."""

import shutil
from itertools import count

import pytest
import torch
from conftest import TINY
from runs import RECURRENT, config_of, fit, losses

from musictx.model.bundle import load_bundle
from musictx.training.checkpoints import Checkpoints
from musictx.training.module import LanguageModelTraining

EVERY = ["trainer.log_every=1", "trainer.checkpoint_every=1", "trainer.warmup_steps=3"]
SETTINGS = {
    "within epochs and across them, loaded by workers": "trainer.max_steps=7 data.windows_per_epoch=16 "
    "trainer.validate_every=3 data.workers=1",
    "validated at the ends of epochs": "trainer.max_steps=-1 trainer.max_epochs=2 data.windows_per_epoch=12 "
    "trainer.validate_every=null",
    "ends of epochs that are not validated": "trainer.max_steps=-1 trainer.max_epochs=2 data.windows_per_epoch=12 "
    "trainer.validate_every=100",
    "several batches a step": "trainer.max_steps=-1 trainer.max_epochs=2 data.windows_per_epoch=28 "
    "trainer.validate_every=5 trainer.accumulate=2",
    "muon and averaged weights": "trainer.max_steps=6 trainer.optimizer=muon trainer.ema_decay=0.9 "
    "trainer.validate_every=3",
    "a recurrent model with the state that it carried": "trainer.max_steps=7 trainer.validate_every=4 "
    + " ".join(RECURRENT),
}


@pytest.fixture
def snapshots(monkeypatch, tmp_path):
    """Copies of the run's folder as a power cut would leave them in the middle of the step after each checkpoint."""
    kept, saved, numbers = [], [], count()
    save, begin = Checkpoints.save, LanguageModelTraining.on_train_batch_start

    def note(self, trainer):
        save(self, trainer)
        saved.append(self.folder.parent)

    def copy(self, batch, batch_idx):
        if saved and (saved[-1] / "checkpoints" / "last.ckpt").exists():  # else: of a run that has ended since
            kept.append(shutil.copytree(saved.pop(), tmp_path / f"copy{next(numbers)}"))
        begin(self, batch, batch_idx)

    monkeypatch.setattr(Checkpoints, "save", note)
    monkeypatch.setattr(LanguageModelTraining, "on_train_batch_start", copy)
    return kept


def same(bundle, other):
    a, b = load_bundle(bundle), load_bundle(other)
    weights = b.model.state_dict()
    return a.header == b.header and all(torch.equal(x, weights[name]) for name, x in a.model.state_dict().items())


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_stopped_after_a_step_a_run_continues_bit_for_bit(world, tmp_path, snapshots, settings, capsys):
    overrides = [*EVERY, "model.dropout=0.2", *settings.split()]
    model = [] if "model=" in settings else TINY
    whole = fit(config_of(world, tmp_path / "whole", *overrides, model=model))
    expected, stopped = losses(whole.parent), list(snapshots)
    assert len(stopped) >= 4
    for folder in stopped[:: len(stopped) // 2]:  # an early one, one in the middle, and the last or the one before
        again = fit(config_of(world, folder, *overrides, model=model))
        assert "is unfinished: resuming" in capsys.readouterr().out
        assert losses(folder) == expected
        assert same(again, whole)


def test_stopped_again_and_again(world, tmp_path, snapshots):
    overrides = [*EVERY, "model.dropout=0.2", *SETTINGS["ends of epochs that are not validated"].split()]
    whole = fit(config_of(world, tmp_path / "whole", *overrides))
    fit(config_of(world, snapshots[0], *overrides))
    again = snapshots[-2]  # of the run that was resumed
    fit(config_of(world, again, *overrides))
    assert losses(again) == losses(whole.parent)
