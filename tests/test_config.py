"""Every shipped YAML composes into its schema; what does not exist or has the wrong type is refused."""

import re
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
from conftest import refused
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from musictx.config import PLAIN_COMMANDS, PRESETS, SCHEMAS, register_schemas
from musictx.config.app import conf_dir, in_one_line, one_line, options, settings, typed
from musictx.config.train import TrainConfig
from musictx.config.use import GenerateConfig
from musictx.errors import ConfigError
from musictx.sampling.settings import PLAIN, Settings

GROUPS = ["data", "tokenizer", "filters", "model", "attention", "trainer", "logger", "sampler", "experiment", "sweep"]

SAMPLERS: dict[str, dict[str, object]] = {
    "auto": {},
    "nucleus": {"top_p": 0.98},
    "plain": {"top_p": None, "guard": False, "seed_guidance": None},
    "greedy": {"temperature": 0.0, "top_p": None, "guard": False},
    "beam": {"temperature": 0.0, "top_p": None, "guard": False, "beams": 4},
    "min_p": {"temperature": 1.2, "top_p": None, "min_p": 0.05},
    "typical": {"top_p": None, "typical": 0.95},
}


@cache  # a tenth of a second each
def composed(app, *overrides):
    register_schemas()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose(app, list(overrides))


def test_the_groups_are_the_documented_ones():
    assert {p.name for p in conf_dir().iterdir() if p.is_dir()} | {*PRESETS} == {*GROUPS}
    assert all(options(group) for group in GROUPS)


@pytest.mark.parametrize("app", SCHEMAS)
def test_every_app_composes(app):
    config = composed(app)
    assert OmegaConf.get_type(config) is SCHEMAS[app]


@pytest.mark.parametrize(("group", "option"), [(g, o) for g in GROUPS for o in options(g)])
def test_every_option_of_every_group_composes(group, option):
    app = {"sampler": "generate", "filters": "prepare_folder"}.get(group, "train")
    paths = {"generate": ["bundle=b", "seed_midi=s"], "prepare_folder": ["path=p"]}.get(app, [])
    typed(composed(app, f"{group}={option}", *paths), SCHEMAS[app])  # nothing mandatory is missing


def test_an_experiment_overrides_the_defaults_and_a_person_overrides_both():
    config = composed("train", "experiment=demo", "model.d_model=96")
    assert (config.name, config.tokenizer.name, config.model.n_layers, config.model.d_model) == (
        "demo",
        "chorale",
        3,
        96,
    )
    assert config.out.endswith("-demo")


def test_the_command_of_the_help_text_composes():
    config = composed("train", "experiment=chorales", "trainer.max_epochs=5", "model.d_model=128")
    assert (config.trainer.max_epochs, config.model.d_model) == (5, 128)


def test_no_yaml_outside_the_groups_is_left_over():
    apps = {p.stem for p in conf_dir().glob("*.yaml")}
    assert apps == {*SCHEMAS, "quiet"} - {*PLAIN_COMMANDS}


def test_the_samplers():
    usual: dict[str, object] = {
        "temperature": 1.0,
        "temperature_end": None,
        "top_k": None,
        "top_p": "auto",
        "min_p": None,
    }
    usual |= {"typical": None, "guard": True, "beams": None}
    usual |= {"seed_guidance": "auto", "guidance_tokens": 17, "guidance_cut": 0.01}
    told = {option: OmegaConf.to_container(composed("generate", f"sampler={option}").sampler) for option in SAMPLERS}
    assert told == {option: usual | own for option, own in SAMPLERS.items()}
    assert asdict(Settings().sampling) == asdict(GenerateConfig().sampler) == usual
    assert settings("generate", "seed_midi=null", "sampler=plain").sampler == PLAIN


@pytest.mark.parametrize(
    ("override", "text"),
    [
        (
            "model.d_modle=3",
            r"model.d_modle is not a setting: did you mean d_model\? model has kind, d_model, n_layers",
        ),
        ("+model.wings=2", "model.wings is not a setting: model has kind, d_model"),
        ("modle.d_model=3", r"modle is not a setting: did you mean model\? this command has name, random_seed"),
        ("trainer.max_epochs=many", "trainer.max_epochs: .*'many'.*Integer; see --help"),
        ("trainer=tpu", "trainer=tpu: choose one of cpu, ddp, fsdp, gpu, smoke"),
        (
            "experiment=mine",
            "experiment=mine: choose one of chorales, demo, harmoniser, harmoniser_whole, jsb, jsb_whole",
        ),
        (
            "model=foo",
            "model=foo: choose one of chorale, demo, encoder_decoder, .*, jsb, .*recurrent_.*, rnn, small$",
        ),
        ("data.stretch=fast", r"data.stretch=fast: give a list, as in data.stretch=\[fast\]"),
        ("data.stretch=${name}", "data.stretch=.* is not compared with its type: write its values"),
        ("data.stretch=[1,[2]]", "data.stretch: a list within this list; give single values"),
    ],
)
def test_mistakes_are_one_line_that_lists_what_is_allowed(override, text):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Hydra's and OmegaConf's errors share no base
        typed(composed("train", override), TrainConfig)
    line = one_line(caught.value)
    assert "\n" not in line
    assert re.search(text, line), line


@pytest.mark.parametrize("word", ["model=null", "data=null", "trainer=3", "model=[x,-1]", "model={a:1}"])
def test_a_preset_that_is_no_name_is_one_line(word, tmp_path):
    line = "choose a preset by its name, as in model=small or trainer=cpu; --help lists them"
    with pytest.raises(ConfigError, match=f"^{line}"):
        settings("train", word)
    assert refused(["musictx", "train", word], tmp_path) == f"error: {line}"


@pytest.mark.parametrize(
    "word",
    [
        pytest.param(f"trainer.label_smoothing={'9' * 400}", id="400 digits"),
        pytest.param(f"trainer.lr={'9' * 5000}", id="5,000 digits"),
        pytest.param(f"data.stretch=[1,{2**63}]", id="in a list"),
    ],
)
def test_a_number_without_end_is_one_line(word, tmp_path):
    line = f"{word.partition('=')[0]}: this number is too large; see --help"
    with pytest.raises(ConfigError, match=f"^{line}"):
        settings("train", word)
    assert refused(["musictx", "train", word], tmp_path) == f"error: {line}"


@pytest.mark.parametrize("key", ["rules", "length_seconds"])
def test_brackets_without_end_are_one_line(key, tmp_path):
    word, line = f"{key}={'[' * 3000}{']' * 3000}", f"{key}: too many brackets within brackets; see --help"
    assert refused(["musictx", "generate", word], tmp_path) == f"error: {line}"


def test_a_number_without_end_from_python_is_refused():
    with pytest.raises(ConfigError, match="trainer: this number is too large"):
        settings("train", trainer={"label_smoothing": 10**400})
    assert settings("train", random_seed=2**63 - 1).random_seed == 2**63 - 1


def test_settings_from_python_are_those_of_the_command_line():
    config = settings("train", "experiment=demo", "model.d_model=96", "out=a folder, mine")
    assert type(config) is TrainConfig
    assert (config.model.d_model, config.model.n_layers, config.out) == (96, 3, "a folder, mine")
    for word in ("model.d_modle=1", "experiment=mine", "model.d_model=wide"):
        with pytest.raises(ConfigError):
            settings("train", word)


def test_python_dash_m_and_console_command_are_the_same_app(tmp_path):
    for words in (["musictx", "train"], ["musictx.commands.train"]):
        assert refused([*words, "model.d_modle=1"], tmp_path).startswith("error: model.d_modle is not a setting")
    assert list(Path(tmp_path).iterdir()) == []


def test_a_line_has_an_end(capsys):
    def command():
        raise ConfigError("x" * 10**6)

    with pytest.raises(SystemExit):
        in_one_line(command)
    assert len(capsys.readouterr().err) < 2100
