"""Beginning with the weights of a bundle."""

from dataclasses import replace

import pytest
import torch
from conftest import QUICK, TINY
from runs import RECURRENT, config_of, fit, val_nll

from musictx.commands.train import train
from musictx.config.app import settings
from musictx.errors import BundleError, ConfigError, StoreError
from musictx.model.bundle import load_bundle, save_bundle
from musictx.model.header import read_header
from musictx.model.packaged import packaged_bundle
from musictx.tokenizers import EventRange, build_tokenizer, with_added
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.vocab import Vocab
from musictx.training.fit import new_model
from musictx.training.start import check_words, merge, sized_as_bundle, suited_to_store, with_initial_weights


def starting_model(config, tokenizer):
    return with_initial_weights(new_model(config, tokenizer), config, tokenizer)


def test_a_bundle_is_learned_on_with_its_own_sizes_and_origin(world, tmp_path, capsys):
    first = tmp_path / "first.safetensors"
    model, header = load_bundle(world.bundle)
    notes = header.notes | {"citation": "A and B"}
    save_bundle(first, model, replace(header, corpus="MAESTRO v3.0.0", licence="CC BY-NC-SA 4.0", notes=notes))
    # sizes that are given are not the bundle's; its 16 channels are taken all the same
    settings = ["model.d_model=64", "model.dropout=0.3", "trainer.lr=1e-4", "data.length=16"]
    bundle = fit(config_of(world, tmp_path / "run", f"init_from={first}", *settings))
    again = read_header(bundle)
    assert (again.model["d_model"], again.model["dropout"]) == (16, 0.3)
    assert val_nll(bundle) < val_nll(world.bundle)
    assert load_bundle(bundle).model.window == model.window == 32  # shorter windows do not shorten the memory
    assert (again.corpus, again.licence) == ("MAESTRO v3.0.0 + midi", "CC BY-NC-SA 4.0 + not stated")
    assert again.notes["citation"] == "A and B"
    assert f"init_from={first}: trained on MAESTRO v3.0.0, licence CC BY-NC-SA 4.0\n" in capsys.readouterr().out


def test_a_recurrent_bundle_under_transformer_defaults(world, tmp_path):
    first = fit(config_of(world, tmp_path / "first", "trainer.max_steps=1", model=RECURRENT))
    config = sized_as_bundle(config_of(world, tmp_path / "again", f"init_from={first}"))
    assert config.model.kind == "recurrent"
    model = starting_model(config, PerformanceTokenizer())
    assert torch.equal(model.embed.weight, load_bundle(first).model.embed.weight)


def test_another_vocabulary_is_refused(world, tmp_path):
    with pytest.raises(ConfigError, match="^init_from=.* chorale .* performance "):
        fit(config_of(world, tmp_path / "run", f"init_from={world.hymn_bundle}"))
    with pytest.raises(BundleError, match="nothing.safetensors: "):
        fit(config_of(world, tmp_path / "run", "init_from=nothing.safetensors"))
    assert not (tmp_path / "run").exists()


class Pedalled(PerformanceTokenizer):
    """A toy: performance with a pedal, whose type comes after the others and before PAD."""

    vocab = Vocab("performance/1", (*PerformanceTokenizer.vocab.events, EventRange("PEDAL", 0, 1)))


@pytest.mark.parametrize("model", [RECURRENT, [*TINY, "model.position=rope", "model.clock=time"]])
def test_a_vocabulary_that_begins_with_the_bundles_keeps_its_rows_by_name(world, tmp_path, model):
    bundle = fit(config_of(world, tmp_path / "first", "trainer.max_steps=1", model=model))
    config = sized_as_bundle(config_of(world, tmp_path / "run", f"init_from={bundle}", model=model))
    tokenizer = with_added(Pedalled(), [EventRange("TO", 0, 0)])
    torch.manual_seed(3)
    fresh = starting_model(replace(config, init_from=None), tokenizer).embed.weight
    torch.manual_seed(3)
    model = starting_model(config, tokenizer)
    old, new = load_bundle(bundle).model.embed.weight, model.embed.weight
    assert (len(old), len(new)) == (391, 394)
    assert torch.equal(new[:388], old[:388])  # music
    assert torch.equal(new[390:393], old[388:])  # PAD, BOS, EOS have made way for two pedals
    assert torch.equal(new[[388, 389, 393]], fresh[[388, 389, 393]])
    others = [(k, v) for k, v in load_bundle(bundle).model.state_dict().items() if len(v) != 391]
    assert all(torch.equal(v, model.state_dict()[k]) for k, v in others)
    if hasattr(model, "pace"):
        assert torch.equal(model.pace, torch.from_numpy(tokenizer.pace).float())


def test_a_bundle_without_a_keyboard_may_gain_one_and_begins_as_the_same_model(world, tmp_path):
    words = (f"init_from={world.bundle}", "model.keyboard=head")
    config = sized_as_bundle(config_of(world, tmp_path / "run", *words))
    check_words(config_of(world, tmp_path / "run", *words), words)
    model, ids = starting_model(config, PerformanceTokenizer()).eval(), torch.tensor([[60, 300, 188, 61]])
    old = load_bundle(world.bundle).model
    assert torch.equal(model(ids), old(ids))
    assert model.keyboard is not None
    assert int(model.keyboard.act.sum()) == 128 + 2 * 128 + 3  # strikes, releases, BOS


def test_a_keyboard_asks_for_tokens_that_strike_keys(world, tmp_path):
    config = config_of(world, tmp_path / "run", "model.keyboard=head")
    with pytest.raises(ConfigError, match="^keyboard=head: chorale tokens "):
        starting_model(config, build_tokenizer("chorale"))


def test_a_cycle_needs_tokens_that_keep_one(world, tmp_path):
    with pytest.raises(ConfigError, match="^cycle=16: "):
        fit(config_of(world, tmp_path / "run", "model.cycle=16"))
    hymns = [f"data.path={world.hymn_store}", "tokenizer.name=chorale", "data.stretch=[1.0]"]
    with pytest.raises(ConfigError, match="^cycle=6: "):
        fit(config_of(world, tmp_path / "run", *hymns, "model.cycle=6"))
    bundle = fit(config_of(world, tmp_path / "run", *hymns, "model.cycle=16"))
    model = load_bundle(bundle).model
    assert (model.cycle, model.window) == (16, 32)  # data.length


@pytest.mark.parametrize(
    ("before", "now", "together"), [("a", "a", "a"), ("a", "b", "a + b"), ("a + b", "b", "a + b"), ("", "b", "b")]
)
def test_no_origin_is_said_twice(before, now, together):
    assert merge(before, now) == together


@pytest.mark.parametrize(
    ("words", "has"),
    [
        (["model.d_model=64"], "d_model=16"),
        (["model.value_residual=true"], "value_residual=False"),
        (["model=paper"], "d_model=16"),
        (["model=lstm"], "kind=transformer"),
        (["model.window=9", "model=lstm"], "no such"),
    ],
)
def test_a_person_who_asks_for_another_model_than_the_bundles_is_said(world, words, has):
    config = settings("train", f"init_from={world.bundle}", f"data.path={world.store}", *words)
    with pytest.raises(ConfigError, match=f"^{words[0]}: init_from={world.bundle} has {has}\\b"):
        check_words(config, words)


def test_python_says_it_as_the_command_does(world, tmp_path):
    given = {"init_from": world.bundle, "data": {"path": world.store}, "out": tmp_path / "run"}
    with pytest.raises(ConfigError, match="^model.d_model=64: init_from=.* has d_model=16, "):
        train(**given, model={"d_model": 64})


def test_what_is_the_bundles_or_no_matter_of_its_weights_may_be_given(world):
    words = ["model.d_model=16", "model.dropout=0.5", "model.n_heads=2", "trainer.lr=1", "name=model.x"]
    check_words(settings("train", f"init_from={world.bundle}", f"data.path={world.store}", *words), words)
    check_words(settings("train", "model.d_model=64", f"data.path={world.store}"), ["model.d_model=64"])


@pytest.mark.parametrize(
    ("words", "tokenizer", "stretch"),
    [
        ([], "chorale", [1.0]),
        (["tokenizer=chorale"], "chorale", [1.0]),
        (["data.stretch=[0.9]"], "chorale", [0.9]),
        (["tokenizer=score"], "score", [1.0]),
        (["tokenizer.name=performance", "data=performances"], "performance", [0.95, 0.975, 1.0, 1.025, 1.05]),
        (["experiment=maestro"], "performance", [0.95, 0.975, 1.0, 1.025, 1.05]),
    ],
)
def test_what_nobody_names_is_as_the_store_says(world, words, tokenizer, stretch):
    config = suited_to_store(settings("train", f"data.path={world.hymn_store}", *words), words)
    assert (config.tokenizer.name, config.data.stretch) == (tokenizer, stretch)


def test_a_store_of_beats_is_learned_with_the_usual_settings(world, tmp_path, capsys, no_curves):
    train(*TINY, *QUICK, data={"path": world.hymn_store}, out=tmp_path / "run")
    said = "tokenizer=chorale data.stretch=[1.0], as the store's music is written\n"
    assert said in capsys.readouterr().out
    train(*TINY, *QUICK, data={"path": world.store}, out=tmp_path / "usual")
    assert "as the store" not in capsys.readouterr().out
    with pytest.raises(StoreError, match="was made by tokenizer chorale .*give tokenizer=chorale"):
        train(*TINY, *QUICK, data={"path": world.hymn_store}, out=tmp_path / "other", tokenizer="performance")


@pytest.mark.parametrize(("name", "tokenizer"), [("piano", "performance"), ("chorale", "chorale")])
def test_the_models_inside_the_package_are_begun_with_by_name(world, tmp_path, name, tokenizer):
    config = sized_as_bundle(config_of(world, tmp_path / "run", f"init_from={name}"))
    model = starting_model(config, build_tokenizer(tokenizer))
    weights = load_bundle(packaged_bundle(name)).model.state_dict()
    for key, tensor in model.state_dict().items():  # ids of filling come after those of the music
        assert torch.equal(tensor, weights[key][: len(tensor)]), key
