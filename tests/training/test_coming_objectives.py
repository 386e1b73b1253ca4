"""Filling a gap, an objective from outside the package: what training makes of it."""

import pytest
import torch
from runs import PAD, config_of, curve, fit

from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle
from musictx.model.header import read_header
from musictx.training.module import LanguageModelTraining

STEPS = ["trainer.log_every=1", "trainer.max_steps=4", "trainer.validate_every=4", "data.length=32"]
FILL = ["objective=toys:Infill", "model.dropout=0", *STEPS]


@pytest.fixture(scope="module")
def tuned(world, tmp_path_factory):
    return fit(config_of(world, tmp_path_factory.mktemp("tuned") / "run", *FILL, f"init_from={world.bundle}"))


def test_it_begins_with_a_bundle_of_the_next_token_and_its_own_is_a_beginning_of_one(world, tuned, tmp_path, capsys):
    before, after = load_bundle(world.bundle).model.embed.weight, load_bundle(tuned).model.embed.weight
    assert (before.shape, after.shape) == ((391, 16), (394, 16))
    header = read_header(tuned)
    added = [["TO", 0, 0], ["FILL", 0, 0], ["END", 0, 0]]
    assert header.objective == {"name": "toys:Infill", "settings": {}, "added": added, "length": 32}
    assert header.vocab_fingerprint == read_header(world.bundle).vocab_fingerprint
    with pytest.raises(ConfigError, match=r"^init_from=.* objective=toys:Infill \(TO, FILL, END\)"):
        fit(config_of(world, tmp_path / "other", "objective=infill", *STEPS, f"init_from={tuned}"))
    capsys.readouterr()
    back = fit(config_of(world, tmp_path / "back", *STEPS, "trainer.lr=1e-9", f"init_from={tuned}"))
    assert "(TO, FILL, END): objective=toys:Infill keeps them" in (capsys.readouterr().out)
    assert read_header(back).objective == {}
    torch.testing.assert_close(load_bundle(back).model.embed.weight, after[:391], atol=1e-6, rtol=0)


def test_scheduled_sampling_guesses_what_was_asked_for_and_leaves_what_is_given(world, tmp_path, monkeypatch):
    changed = []
    mix = LanguageModelTraining.mix

    def note(self, model, example):
        mixed = mix(self, model, example)
        at = mixed.inputs[0] != example.inputs[0]
        changed.append(int(at.sum()))
        assert not at[:, 0].any()
        assert (example.targets[:, :-1][at[:, 1:]] != PAD).all()
        return mixed

    monkeypatch.setattr(LanguageModelTraining, "mix", note)
    settings = ["objective_settings={plain: 0.0}", "trainer.scheduled_sampling=0.9"]
    fit(config_of(world, tmp_path / "run", *FILL, *settings))
    assert min(changed) > 0


def test_the_chance_in_an_example_is_a_function_of_its_number(world, tuned, tmp_path):
    parts = fit(config_of(world, tmp_path / "two", *FILL, f"init_from={world.bundle}", "data.workers=2"))
    assert curve(parts.parent) == curve(tuned.parent)
