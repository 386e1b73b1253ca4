"""Every shipped YAML composes into its schema; what does not exist or has the wrong type is refused."""

import re
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import zip_longest

import pytest
from apps import SCHEMAS
from conftest import refused
from hydra import compose, initialize_config_dir
from omegaconf import MISSING, OmegaConf

from musictx.commands.generate import GenerateConfig
from musictx.config import PRESETS, register, unfreeze
from musictx.config.app import conf_dir, options, settings, typed
from musictx.config.command import find
from musictx.config.mistakes import in_one_line
from musictx.errors import ConfigError, UserError
from musictx.generate.requests import PLAIN, Continue

GROUPS = ["data", "tokenizer", "filters", "model", "attention", "trainer", "logger", "sampler", "experiment", "sweep"]


@cache  # a tenth of a second each
def composed(app, *overrides):
    register(find(app))
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose(app, list(overrides))


def test_the_groups_are_the_documented_ones():
    assert {p.name for p in conf_dir().iterdir() if p.is_dir()} | {*PRESETS} == {*GROUPS}
    assert all(options(group) for group in GROUPS)
    assert {p.stem for p in conf_dir().glob("*.yaml")} == {"train", "quiet"}


def test_python_and_the_command_sample_alike():
    assert asdict(Continue().sampling) == asdict(GenerateConfig().sampler)
    assert settings("generate", "seed_midi=null", "sampler=plain").sampler == PLAIN


CHOICES = {group: [f"{group}={option}" for option in options(group)] for group in GROUPS}
OTHERS = CHOICES.pop("sampler"), CHOICES.pop("filters")
EXPERIMENTS = CHOICES.pop("experiment")
TOGETHER = [[*filter(None, words)] for words in zip_longest(*CHOICES.values())]  # each option of each group once


@pytest.mark.parametrize(
    ("app", "words"),
    [
        *(("generate", ["bundle=b", "seed_midi=s", word]) for word in OTHERS[0]),
        *(("prepare_folder", ["path=p", word]) for word in OTHERS[1]),
        *(("train", words) for words in ([[word] for word in EXPERIMENTS] + TOGETHER)),
    ],
)
def test_every_option_of_every_group_composes(app, words):
    typed(composed(app, *words), SCHEMAS[app])  # nothing mandatory is missing


def test_an_experiment_overrides_the_defaults_and_a_person_overrides_both():
    config = composed("train", "experiment=demo", "model.d_model=96")
    assert (config.name, config.tokenizer.name) == ("demo", "chorale")
    assert (config.model.n_layers, config.model.d_model) == (3, 96)
    assert config.out.endswith("-demo")


@pytest.mark.parametrize(
    ("word", "field", "got", "text"),
    [
        ("model.d_modle=3", "model.d_modle", ..., "d_model.* model has kind, d_model, n_layers"),
        ("+model.wings=2", "model.wings", ..., "model has kind, d_model"),
        ("modle.d_model=3", "modle", ..., "model.* this command has name, random_seed"),
        ("trainer.max_epochs=many", "trainer.max_epochs", "many", "a whole number"),
        ("trainer.progress_bar=x", "trainer.progress_bar", "x", "true or false"),
        ("model.d_model=null", "model.d_model", None, ""),
        ("trainer=tpu", "trainer", "tpu", "cpu, ddp, fsdp, gpu$"),
        ("experiment=mine", "experiment", "mine", "chorales, classify, demo, harmoniser, .*, jsb, .*, jsb_whole"),
        ("model=foo", "model", "foo", "chorale, demo, encoder, .*, small, vaswani, vit$"),
        ("model=[x,-1]", "model", ["x", -1], ""),
        ("data.stretch=fast", "data.stretch", "fast", r"\[fast\]"),
        ("data.stretch=${name}", "data.stretch", "${…}", ""),
        ("data.stretch=[1,[2]]", "data.stretch", ..., ""),
        ("data.stretch=[1,x]", "data.stretch[1]", "x", "a number"),
        (f"trainer.weight_decay={'9' * 400}", "trainer.weight_decay", ..., "too large"),
        (f"trainer.lr={'9' * 5000}", "trainer.lr", ..., "too large"),
        (f"data.stretch=[1,{2**63}]", "data.stretch", ..., "too large"),
    ],
)
def test_mistakes_say_what_was_given_and_what_is_allowed(word, field, got, text):
    with pytest.raises(ConfigError) as refused:
        settings("train", word)
    assert (refused.value.field, refused.value.got) == (field, got)
    assert re.search(text, str(refused.value)), str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("word", ["model=null", "trainer=3", f"rules={'[' * 500}{']' * 500}", f"out={'9' * 5000}"])
def test_what_breaks_hydra_is_one_line(word, tmp_path):
    command = "generate" if word.startswith(("rules", "out")) else "train"
    with pytest.raises(UserError):
        settings(command, word)
    refused(["musictx", command, word], tmp_path)


@pytest.mark.parametrize("word", ["my.mid", "my song.mid", "(1).mid"])
def test_a_file_without_its_key_is_explained(word, capsys):
    with pytest.raises(SystemExit), in_one_line("classify"):
        settings("classify", word, "bundle=piano")
    said = capsys.readouterr().err
    assert word in said
    assert "midi=FILE" in said


def test_a_number_without_end_from_python_is_refused():
    with pytest.raises(ConfigError) as refused:
        settings("train", trainer={"weight_decay": 10**400})
    assert refused.value.field == "trainer"
    assert settings("train", random_seed=2**63 - 1).random_seed == 2**63 - 1


def test_a_line_has_an_end(capsys):
    with pytest.raises(SystemExit), in_one_line():
        raise ConfigError("lr", got="x" * 10**6)
    assert len(capsys.readouterr().err) < 2100


def test_a_frozen_class_inside_others_takes_other_values():
    @dataclass(frozen=True)
    class Inner:
        steps: int = 1

    @dataclass
    class Outer:
        inner: Inner = field(default_factory=Inner)

    @dataclass
    class Mine:
        outer: Outer = field(default_factory=Outer)
        path: str = MISSING

    schema = OmegaConf.structured(Mine)
    unfreeze(schema)
    schema.outer.inner.steps = 2
    found = OmegaConf.to_object(OmegaConf.merge(schema, {"path": "x"}))
    assert isinstance(found, Mine)
    assert found.outer.inner == Inner(2)
