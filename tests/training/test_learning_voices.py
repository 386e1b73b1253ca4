"""Voices for a melody are learnt by both kinds of encoder-decoder: training, a run that goes on, bundle, evaluate."""

import json

import pytest
import torch
from conftest import ok, refused
from runs import config_of, losses

from musictx.commands.train import alone
from musictx.data.store import Store
from musictx.errors import BundleError, ConfigError
from musictx.model.bundle import load_bundle, read_header
from musictx.playing.opening import open_bundle
from musictx.training.fit import fit
from musictx.training.module import LanguageModelTraining

TINY = [
    "model=encoder_decoder",
    "model.d_model=16",
    "model.n_layers=1",
    "model.n_encoder_layers=1",
    "model.n_heads=2",
    "model.d_ff=32",
]
CELLS = ["model=recurrent_encoder_decoder", "model.d_model=16", "model.d_attention=8"]
STEPS = ["trainer.log_every=1", "trainer.max_steps=4", "trainer.validate_every=4"]
HYMNS = ["tokenizer=chorale", "data=chorales", "data.length=32", "objective=conditional", *STEPS]


def conditional(world, out, *words, model=TINY):
    return config_of(world, out, f"data.path={world.hymn_store}", *HYMNS, *words, model=model)


def curve(folder):
    return [row["train/loss"] for row in losses(folder) if "train/loss" in row]


@pytest.mark.parametrize("model", [TINY, CELLS], ids=["attention", "cells"])
def test_it_learns_goes_on_after_a_stop_and_is_scored_as_it_was_validated(world, tmp_path, monkeypatch, model):
    words = ["trainer.checkpoint_every=1", "trainer.scheduled_sampling=0.3"]  # teacher forcing of 0.7
    whole = fit(conditional(world, tmp_path / "whole", *words, model=model))
    step = LanguageModelTraining.training_step
    with monkeypatch.context() as patch:
        stop = lambda self, batch, n: step(self, batch, n) if self.trainer.global_step < 2 else 1 / 0  # noqa: E731
        patch.setattr(LanguageModelTraining, "training_step", stop)
        with pytest.raises(ZeroDivisionError):
            fit(conditional(world, tmp_path / "run", *words, model=model))
    resume = str(tmp_path / "run")
    config = conditional(world, resume, *words, model=model)
    config.resume = resume
    parts = fit(alone(config, [f"resume={resume}"]))
    assert curve(parts.parent) == curve(whole.parent)
    theirs, ours = (load_bundle(path).model.state_dict() for path in (whole, parts))
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    header = read_header(whole)
    assert header.objective == {"name": "conditional", "settings": {}, "added": [], "length": 32}
    assert header.model["pad"] == 89
    say = ["musictx", "evaluate", f"bundle={whole}", f"data.path={world.hymn_store}", "data=chorales", "out=it.json"]
    assert "objective=conditional" in ok(say, tmp_path).stdout
    found = json.loads((tmp_path / "it.json").read_text())
    assert found["per_token"][0] == pytest.approx(header.val_nll, rel=1e-4)
    with pytest.raises(BundleError, match="takes source and ids, and continues no music: give another"):
        open_bundle(whole)
    told = refused(["musictx", "generate", f"bundle={whole}", f"seed_midi={world.hymn}", "out=new"], tmp_path)
    assert "continues no music" in told
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("objective", ["melody_first", "lower_voices"])
def test_a_transformer_learns_what_it_is_compared_by(world, tmp_path, objective):
    words = [f"objective={objective}", "trainer.max_steps=2", "trainer.validate_every=2"]
    small = ["model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.d_ff=32"]
    bundle = fit(conditional(world, tmp_path / "run", *words, model=small))
    say = ["musictx", "evaluate", f"bundle={bundle}", f"data.path={world.hymn_store}", "data=chorales", "out=it.json"]
    ok(say, tmp_path)
    pieces = json.loads((tmp_path / "it.json").read_text())
    whole = sum(len(piece) for piece in Store(world.hymn_store).split("validation"))
    assert pieces["tokens"] * 4 == whole * 3  # the lower voices alone
    told = refused(["musictx", "generate", f"bundle={bundle}", f"seed_midi={world.hymn}", "out=new"], tmp_path)
    assert f"was trained for objective={objective}" in told


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("data.length=30", "objective=conditional: windows of 30 ids are no whole steps of 4 voices; give data.length"),
        ("data.grow_from=8", "data.grow_from=8: windows of objective=conditional are whole; leave it out"),
        ("trainer.checkpoint_activations=true", "trainer.checkpoint_activations=true: model.kind=encoder_decoder has"),
        ("trainer.lora_rank=2", "trainer.lora_rank=2 adapts a model that has learnt"),
        ("objective=next_token", "objective=next_token gives ids, model.kind=encoder_decoder takes source and ids"),
    ],
)
def test_what_does_not_go_with_it(world, tmp_path, setting, text):
    with pytest.raises(ConfigError, match=f"^{text}"):
        fit(conditional(world, tmp_path / "run", setting))
    assert not (tmp_path / "run").exists()
