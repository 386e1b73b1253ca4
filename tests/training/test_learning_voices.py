"""An encoder-decoder learns voices of chorales around others: training, bundle, evaluate."""

import pytest
import torch
from runs import config_of, fit
from toys import PAIR

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.evaluate import evaluate
from musictx.data.store import Store
from musictx.errors import BundleError, ConfigError
from musictx.generate.open_bundle import open_bundle
from musictx.model.build import KINDS
from musictx.model.header import read_header
from musictx.objectives.voices import Voices
from musictx.tokenizers import build_tokenizer
from musictx.training.module import LanguageModelTraining

PAD = build_tokenizer("chorale").vocab.pad
ONE = ["model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.d_ff=32"]
BESIDE = ["model=encoder_decoder", "model.n_encoder_layers=1", *ONE]
TINY = [*BESIDE, "model.source_voices=4", "model.target_group=4", "model.cycle=20"]
STEPS = ["trainer.log_every=1", "trainer.max_steps=4", "trainer.validate_every=4"]
HYMNS = ["tokenizer=chorale", "data=chorales", "data.length=40", "objective=voices", *STEPS]


def learner(world, out, *words, model=TINY):
    return config_of(world, out, f"data.path={world.hymn_store}", *HYMNS, *words, model=model)


def test_it_learns_and_is_scored_with_the_soprano_given(world, tmp_path, capsys):
    bundle = fit(learner(world, tmp_path / "run", "trainer.hide_source=0.5", "trainer.sample_every=1"))
    assert capsys.readouterr().out.count("trainer.sample_every=1: no samples, since ") == 1
    assert not (tmp_path / "run" / "samples").exists()
    header = read_header(bundle)
    assert header.objective == {"name": "voices", "settings": {}, "added": [], "length": 40}
    assert header.model["pad"] == 89
    assert header.notes["hide_source"] == 0.5
    words = [f"bundle={bundle}", f"data.path={world.hymn_store}", "data=chorales"]
    found = evaluate(*words)
    assert "objective=voices" in capsys.readouterr().out
    split = Store(world.hymn_store, "chorale").split("validation")
    model, tokenizer, _ = open_bundle(bundle, continues=False)
    below = negative_log_likelihood(model, split, tokenizer, None, objective=Voices(tokenizer, "S"))
    assert found.per_token.mean == pytest.approx(below.nll, rel=1e-5)
    with pytest.raises(ConfigError, match="^objective=infill: "):
        evaluate(*words, "objective=infill")
    with pytest.raises(BundleError, match="encoder_decoder "):
        open_bundle(bundle)


def test_a_share_of_the_melodies_is_hidden_whole_in_training_and_none_in_validation(world, tmp_path, monkeypatch):
    hide, hidden, validated = LanguageModelTraining.hide, [], []

    def note(self, example):
        made = hide(self, example)
        for before, after in zip(example.inputs[0], made.inputs[0], strict=True):
            hidden.append(bool((after == PAD).all()))
            assert hidden[-1] or torch.equal(before, after)
            assert not (before == PAD).all()
        assert torch.equal(made.inputs[1], example.inputs[1])
        assert torch.equal(made.targets, example.targets)
        return made

    scored = LanguageModelTraining.validation_step

    def validation_step(self, batch, n):
        validated.append(batch.inputs[0])
        return scored(self, batch, n)

    monkeypatch.setattr(LanguageModelTraining, "hide", note)
    monkeypatch.setattr(LanguageModelTraining, "validation_step", validation_step)
    bundle = fit(learner(world, tmp_path / "run", "trainer.hide_source=0.4", "trainer.batch_size=50"))
    assert len(hidden) == 200
    assert 55 <= sum(hidden) <= 105  # 80 in the mean, with a deviation of 7
    assert validated
    assert all((source != PAD).any(1).all() for source in validated)
    assert read_header(bundle).hides_source
    hidden.clear()
    assert not read_header(fit(learner(world, tmp_path / "none"))).hides_source
    assert not hidden


@pytest.mark.parametrize(
    ("model", "settings", "text"),
    [
        (TINY, ["data.length=30", "model.cycle=1"], "objective=voices: .* 30 ids"),
        (TINY, ["trainer.checkpoint_activations=true"], "checkpoint_activations=true: kind=encoder_decoder"),
        (TINY, ["trainer.hide_source=1"], "hide_source=1.0: "),
        (TINY, ["objective=next_token"], "objective=next_token"),
        (ONE, ["objective=next_token", "trainer.hide_source=0.1"], "hide_source=0.1: objective=next_token "),
        (BESIDE, [], "source_voices=1: objective=voices .*: give 4"),
        (BESIDE, ["model.source_voices=4"], "target_group=1: objective=voices .*: give 4"),
        (["model=pair_schema"], [], "objective=voices: kind=pair hears the voices .* experiment=harmoniser"),
    ],
)
def test_what_does_not_go_together(world, tmp_path, monkeypatch, model, settings, text):
    monkeypatch.setitem(KINDS, "pair", PAIR)
    with pytest.raises(ConfigError, match=f"^{text}"):
        fit(learner(world, tmp_path / "run", *settings, model=model))
    assert not (tmp_path / "run").exists()
