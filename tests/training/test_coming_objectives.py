"""Filling a gap and voices for a melody, from outside the package: training, bundle, evaluate, without another file."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import ROOT, ok, refused
from runs import PAD, RECURRENT, config_of, curve, fit
from toys import PAIR, Lower

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.train import alone
from musictx.data.store import Store
from musictx.errors import BundleError, ConfigError
from musictx.generate.open_bundle import open_bundle
from musictx.model.build import KINDS
from musictx.model.bundle import load_bundle, read_header
from musictx.objectives import build_objective
from musictx.tokenizers import build_tokenizer
from musictx.training.module import LanguageModelTraining

STEPS = ["trainer.log_every=1", "trainer.max_steps=4", "trainer.validate_every=4", "data.length=32"]
FILL = ["objective=toys:Infill", *STEPS]


@pytest.fixture
def pair(monkeypatch):
    monkeypatch.setitem(KINDS, "pair", PAIR)


def test_a_window_is_rearranged_and_nothing_of_it_is_lost_or_asked_for_twice():
    tok = build_tokenizer("performance")
    asked = build_objective("toys:Infill", {"plain": 0.0}, tok)
    vocab = asked.tokenizer.vocab
    to, fill, end = (vocab.id(name) for name in ("TO", "FILL", "END"))
    ids = np.resize([60, 60 + 128, 256 + 24], 60)  # a note, its end, a quarter of a second
    window = torch.from_numpy(np.concatenate([[vocab.bos], ids, np.full(3, vocab.pad)]))
    for seed in range(20):
        (inputs,), targets = asked.example(window, np.random.default_rng(seed))
        assert len(inputs) == len(targets) == len(window) - 1
        whole = [*inputs[inputs != vocab.pad].tolist(), end]
        at_to, at_fill = whole.index(to), whole.index(fill)
        a, c, b = whole[:at_to], whole[at_to + 1 : at_fill], whole[at_fill + 1 : -1]
        assert a + b + c == window[:61].tolist()
        assert targets[targets != vocab.pad].tolist() == [*b, end]


def test_it_is_learned_by_every_kind_and_begins_with_a_bundle_of_the_next_token(world, tmp_path, capsys):
    tuned = fit(config_of(world, tmp_path / "tuned", *FILL, f"init_from={world.bundle}"))
    before, after = load_bundle(world.bundle).model.embed.weight, load_bundle(tuned).model.embed.weight
    assert (before.shape, after.shape) == ((391, 16), (394, 16))
    lstm = fit(config_of(world, tmp_path / "lstm", *FILL, model=RECURRENT))
    header = read_header(lstm)
    added = [["TO", 0, 0], ["FILL", 0, 0], ["END", 0, 0]]
    assert header.objective == {"name": "toys:Infill", "settings": {}, "added": added, "length": 32}
    assert header.vocab_fingerprint == read_header(world.bundle).vocab_fingerprint
    with pytest.raises(ConfigError, match=r"^init_from=.* has ids of objective=toys:Infill \(TO, FILL, END\)"):
        fit(config_of(world, tmp_path / "other", "objective=infill", *STEPS, f"init_from={tuned}"))
    capsys.readouterr()
    back = fit(config_of(world, tmp_path / "back", *STEPS, "trainer.lr=1e-9", f"init_from={tuned}"))
    assert "(TO, FILL, END): objective=toys:Infill keeps them" in (capsys.readouterr().out)
    assert read_header(back).objective == {}
    kept = load_bundle(tuned).model.embed.weight[:391]
    torch.testing.assert_close(load_bundle(back).model.embed.weight, kept, atol=1e-6, rtol=0)


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


def test_it_continues_music_as_before_and_scores_it_too(world, tmp_path):
    bundle = fit(config_of(world, tmp_path / "run", *FILL, f"init_from={world.bundle}", "trainer.sample_every=2"))
    assert sorted(p.name for p in (tmp_path / "run" / "samples").glob("*.mid")) == ["step-2.mid", "step-4.mid"]
    ok(["musictx", "generate", f"bundle={bundle}", f"seed_midi={world.seed}", "length_tokens=40", "out=new"], tmp_path)
    model, tokenizer, _ = open_bundle(bundle)
    store = Store(world.store)
    pieces = store.split("validation")
    assert negative_log_likelihood(model, pieces, tokenizer, 32).tokens == len(pieces.ids)
    filled = negative_log_likelihood(
        model, pieces, tokenizer, 32, objective=build_objective("toys:Infill", None, tokenizer)
    )
    assert filled.nll == pytest.approx(read_header(bundle).val_nll, rel=0.5)


def test_the_chance_in_an_example_is_a_function_of_its_number(world, tmp_path):
    whole = fit(config_of(world, tmp_path / "one", *FILL, "model.dropout=0"))
    parts = fit(config_of(world, tmp_path / "two", *FILL, "model.dropout=0", "data.workers=2"))
    assert curve(parts.parent) == curve(whole.parent)
    other = fit(config_of(world, tmp_path / "three", *FILL, "model.dropout=0", "objective_settings={plain: 0.0}"))
    assert curve(other.parent) != curve(whole.parent)
    halves = ["trainer.batch_size=2", "trainer.accumulate=2", "data.windows_per_epoch=16", "model.dropout=0"]
    four = fit(config_of(world, tmp_path / "four", *FILL, *halves, "trainer.validate_every=8"))
    assert curve(four.parent) == pytest.approx(curve(whole.parent), rel=1e-5)


def test_a_run_that_was_stopped_continues_with_the_same_examples_and_settings(world, tmp_path, monkeypatch):
    words = [*FILL, "objective_settings={plain: 0.2}", "trainer.checkpoint_every=1"]
    whole = fit(config_of(world, tmp_path / "whole", *words))
    step = LanguageModelTraining.training_step
    with monkeypatch.context() as patch:
        stop = lambda self, batch, n: step(self, batch, n) if self.trainer.global_step < 2 else 1 / 0  # noqa: E731
        patch.setattr(LanguageModelTraining, "training_step", stop)
        with pytest.raises(ZeroDivisionError):
            fit(config_of(world, tmp_path / "run", *words))
    with pytest.raises(ConfigError, match=r"objective=next_token \(was toys:Infill\), objective_set"):
        fit(config_of(world, tmp_path / "run", *STEPS, "trainer.checkpoint_every=1"))
    resume = str(tmp_path / "run")
    again = replace(config_of(world, resume), resume=resume)
    with pytest.raises(ConfigError, match="give objective=toys:Infill too"):  # a folder names no code to run
        alone(again, [f"resume={resume}"])
    again.objective = "toys:Infill"
    parts = fit(alone(again, [f"resume={resume}", "objective=toys:Infill"]))
    assert curve(parts.parent) == curve(whole.parent)
    assert read_header(parts).objective["settings"] == {"plain": 0.2}


@pytest.mark.parametrize(
    ("setting", "field"),
    [
        ("data.grow_from=8", "grow_from"),
        ("data.carry=true", "carry"),
        ("objective_settings=1", "objective_settings"),
        ("objective_settings={share: 1}", "objective_settings.share"),
        ("objective=toys:Lower", "objective"),
    ],
)
def test_what_does_not_go_with_it(world, tmp_path, setting, field):
    with pytest.raises(ConfigError, match=f"^{field}[= ]"):
        fit(config_of(world, tmp_path / "run", *FILL, setting, model=RECURRENT))
    assert not (tmp_path / "run").exists()


HYMNS = ["tokenizer.name=chorale", "data.stretch=[1.0]", "data.length=32", *STEPS]


def test_voices_for_a_melody_are_learned_by_a_kind_that_takes_both(world, tmp_path, pair):
    settings = [f"data.path={world.hymn_store}", *HYMNS, "objective=toys:Lower"]
    bundle = fit(
        config_of(world, tmp_path / "run", *settings, "trainer.scheduled_sampling=0.3", model=["model=pair_schema"])
    )
    assert curve(bundle.parent)[0] == pytest.approx(4.5, abs=0.3)
    with pytest.raises(BundleError, match="source and ids"):
        open_bundle(bundle)
    opened, store = open_bundle(bundle, continues=False), Store(world.hymn_store)
    pieces, asked = store.split("validation"), Lower(store.tokenizer)
    scored = negative_log_likelihood(opened.model, pieces, opened.tokenizer, None, objective=asked)
    assert scored.tokens * 4 == len(pieces.ids) * 3
    assert scored.nll == pytest.approx(opened.header.val_nll, rel=1e-5)  # whole pieces there too
    # the melody is heard: with another one the same voices cost something else
    (source, ids), _ = asked.example(torch.tensor([90, *pieces[0].tolist()]), np.random.default_rng(0))
    logits = [opened.model(melody[None], ids[None]) for melody in (source, source + 1)]
    assert not torch.equal(*logits)


def test_evaluate_scores_what_was_learned_and_runs_code_of_ones_own_when_it_is_named_alone(world, tmp_path):
    bundle = fit(config_of(world, tmp_path / "run", *FILL))
    say = ["musictx", "evaluate", f"bundle={bundle}", f"data.path={world.store}", "data.segment=32"]
    text = "was trained with objective=toys:Infill, which is not in musictx: give objective=toys:Infill to run it, or"
    assert text in refused(say, tmp_path)
    (tmp_path / "toys.py").write_text((ROOT / "tests" / "toys.py").read_text())
    said = ok([*say, "objective=toys:Infill", "out=fill.json"], tmp_path).stdout
    assert "inputs of 32 tokens, objective=toys:Infill, float32" in said
    plain = ok([*say, "objective=next_token", "out=plain.json"], tmp_path).stdout
    assert "objective" not in plain
    tokens = [json.loads((tmp_path / name).read_text())["tokens"] for name in ("fill.json", "plain.json")]
    assert tokens[0] < tokens[1]
    said = refused([*say[:2], f"bundle={world.bundle}", *say[3:], "objective=toys:Infill"], tmp_path)
    assert "objective=toys:Infill: " in said
    assert "was trained for next_token, and has never seen TO, FILL, END" in said
