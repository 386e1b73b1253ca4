import pickle
import re
from dataclasses import fields
from types import SimpleNamespace

import pytest
from toys import PAIR, PairConfig

from musictx.config.model import schema_of
from musictx.errors import ConfigError
from musictx.model.build import KINDS, build_model, can, check_objective, describe_model, kind_of, model_config
from musictx.model.transformer import TransformerConfig


def test_each_kind_is_built_and_described():
    for name in KINDS:
        model = build_model(model_config(name, {"vocab_size": 11, "d_model": 16, "n_layers": 2}))
        assert kind_of(model) == name
        assert re.fullmatch(r"model: .*2 (layers|of decoder).*, [0-9,]+ parameters", describe_model(model))
    assert "2 layers, attention: relative, impl=auto, " in describe_model(
        build_model(TransformerConfig(11, n_layers=2))
    )


def test_a_kind_of_ones_own_is_a_row_and_what_is_in_none_is_not_taken_for_another(monkeypatch):
    model = PAIR.model(PairConfig(7))
    with pytest.raises(TypeError, match="^Pair .*transformer, recurrent"):
        kind_of(model)
    with pytest.raises(ConfigError, match="^kind=pair: "):
        model_config("pair", {"vocab_size": 7})
    monkeypatch.setitem(KINDS, "pair", PAIR)
    model = build_model(model_config("pair", {"vocab_size": 7, "d_model": 4}))
    assert kind_of(model) == "pair"
    assert describe_model(model) == "model: 1 layers for pairs, 183 parameters"
    text = "^objective=next_token: .*kind=pair .*kind=transf"
    with pytest.raises(ConfigError, match=text):
        check_objective("pair", "next_token", SimpleNamespace(inputs=("ids",), continues=True))
    with pytest.raises(ConfigError, match="^objective=classes: "):
        check_objective("pair", "classes", SimpleNamespace(inputs=("pictures",), continues=True))


def test_what_a_person_may_set_of_a_kind_are_its_own_settings_with_their_defaults():
    own = {"vocab_size", "attention", "trained_length", "pad"}  # which training settles itself
    for name, kind in KINDS.items():
        form, config = ({each.name: each.default for each in fields(cls)} for cls in (schema_of(name), kind.config))
        assert form == {"kind": name} | {each: config[each] for each in config.keys() - own}
        settings = schema_of(name)(d_model=8)
        assert pickle.loads(pickle.dumps(settings)) == settings  # for jobs in other processes


def test_a_kind_is_said_what_it_asks_for_and_no_more():
    known = {"vocab_size": 9, "pad": 3, "attention": "skew", "trained_length": 7}
    asked = {name: vars(model_config(name, {}, **known)).keys() & known.keys() for name in KINDS}
    assert asked["transformer"] == {"vocab_size", "attention", "trained_length"}
    assert asked["recurrent"] == {"vocab_size"}
    assert asked["encoder_decoder"] == known.keys()
    assert model_config("encoder_decoder", {}, **known).pad == 3


def test_what_a_kind_does_not_say_it_cannot_do():
    model = build_model(model_config("recurrent", {"vocab_size": 7}))
    assert can(model, "carries")
    assert not can(model, "readout")
    assert not can(PAIR.model(PairConfig(7)), "carries")  # in no row
