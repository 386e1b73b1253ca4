"""Every shipped YAML composes into its schema; what does not exist or has the wrong type is refused."""

import dataclasses
import re
from dataclasses import asdict
from itertools import zip_longest
from typing import get_type_hints

import pytest
from conftest import refused

from musictx.commands.generate_settings import GenerateConfig
from musictx.config import PRESETS
from musictx.config.app import check_paths, conf_dir, options, settings
from musictx.config.command import find
from musictx.config.mistakes import in_one_line
from musictx.errors import ConfigError, UserError
from musictx.generate.requests import PLAIN, Continue
from musictx.setting import types_of

GROUPS = ["data", "tokenizer", "filters", "model", "attention", "trainer", "logger", "sampler", "experiment"]


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
    settings(app, *words)  # nothing mandatory is missing


def test_an_experiment_overrides_the_defaults_and_a_person_overrides_both():
    config = settings("train", "experiment=demo", "model.d_model=96")
    assert (config.name, config.tokenizer.name) == ("demo", "chorale")
    assert (config.model.n_layers, config.model.d_model) == (3, 96)
    assert config.out.endswith("-demo")


@pytest.mark.parametrize(
    ("name", "sizes", "windows", "tokenizer"),
    [
        ("paper_chorales", (5, 512, 8, 512, 256), (1024, 6, [1.0]), "chorale"),
        ("paper_maestro", (6, 256, 8, 2048, 1024), (2048, 3, [0.95, 0.975, 1.0, 1.025, 1.05]), "performance"),
    ],
)
def test_the_papers_experiments_have_its_sizes_and_windows(name, sizes, windows, tokenizer):
    config = settings("train", f"experiment={name}")
    model, data = config.model, config.data
    assert (model.n_layers, model.d_model, model.n_heads, model.d_ff, model.max_distance) == sizes
    assert (model.position, model.mlp, model.norm) == ("relative", "gelu", "pre")
    assert (data.length, data.transpose, data.stretch) == windows
    assert (config.tokenizer.name, config.name, config.trainer.accelerator) == (tokenizer, name, "cuda")


@pytest.mark.parametrize(
    ("word", "field", "got", "text"),
    [
        ("model.d_modle=3", "model.d_modle", ..., "d_model.* model has kind, d_model, n_layers"),
        ("+model.wings=2", "model.wings", ..., "model has kind, d_model"),
        ("modle.d_model=3", "modle", ..., "model.* this command has name, random_seed"),
        ("trainer.max_epochs=many", "trainer.max_epochs", "many", "a whole number"),
        ("trainer.progress_bar=x", "trainer.progress_bar", "x", "true or false"),
        ("model.d_model=null", "model.d_model", None, ""),
        ("trainer=tpu", "trainer", "tpu", "cpu, ddp, gpu$"),
        ("experiment=mine", "experiment", "mine", "chorales, demo, harmoniser, .*, jsb, .*, jsb_whole"),
        ("model=foo", "model", "foo", "chorale, demo, encoder_decoder, .*, small, vaswani$"),
        ("data.stretch=fast", "data.stretch", "fast", r"\[fast\]"),
        ("data.stretch=[1,x]", "data.stretch[1]", "x", "a number"),
        (f"random_seed={2**63}", "random_seed", ..., "too large"),
    ],
)
def test_mistakes_say_what_was_given_and_what_is_allowed(word, field, got, text):
    with pytest.raises(ConfigError) as mistake:
        settings("train", word)
    assert (mistake.value.field, mistake.value.got) == (field, got)
    assert re.search(text, str(mistake.value)), str(mistake.value)
    assert "\n" not in str(mistake.value)


BREAKING = {
    "model=null": "needs a preset's name",
    "trainer=3": "needs a preset's name",
    f"trainer.weight_decay={'9' * 400}": "cannot read these settings",
    f"data.length={'9' * 5000}": "cannot read these settings",
    f"data.stretch={'[' * 3000 + ']' * 3000}": "cannot read these settings",
    "data.stretch=${name}": "write its values",
    "data.stretch=[1,[2]]": "a list within this list",
    f"objective_settings={{a: {10**22}}}": "too large",
}


def test_what_breaks_hydra_is_one_line():
    for word, said in BREAKING.items():
        with pytest.raises(UserError, match=said):
            settings("train", word)
    for values in ({"trainer": {"weight_decay": 10**400}}, {"data": {"stretch": [1, 10**400]}}):
        with pytest.raises(UserError, match="cannot read|too large"):
            settings("train", **values)


def test_what_breaks_hydra_is_one_line_in_many_jobs_too(tmp_path):
    for word in ("model=null", f"data.length={'9' * 5000}"):
        assert BREAKING[word] in refused(["musictx", "train", "-m", word], tmp_path)


def test_a_file_without_its_key_is_explained_and_a_line_has_an_end(capsys):
    with pytest.raises(SystemExit) as left, in_one_line("classify"):
        settings("classify", "my song.mid", "bundle=piano")
    assert left.value.code == 2
    assert re.search("^error: my song.mid .*midi=FILE", capsys.readouterr().err)
    with pytest.raises(SystemExit), in_one_line():
        raise ConfigError("lr", got="x" * 10**6)
    assert len(capsys.readouterr().err) < 2100


def text_settings(schema, prefix=""):
    """(key, whether it names files) of each setting of text or of a list of texts."""
    for field, hint in ((each, get_type_hints(schema)[each.name]) for each in dataclasses.fields(schema)):
        if dataclasses.is_dataclass(hint):
            yield from text_settings(hint, f"{prefix}{field.name}.")
        elif str in types_of(schema)[field.name] or hint == list[str]:
            yield f"{prefix}{field.name}", field.metadata["path"]


@pytest.mark.parametrize("name", ["generate", "train", "compare", "prepare_folder", "classify"])
def test_a_setting_that_names_files_refuses_empty_text_and_no_other_does(name):
    command = find(name)
    keys = dict(text_settings(command.schema))
    assert {*keys.values()} == {True, False}
    for key, is_path in keys.items():
        for word in f"{key}=", f"+{key}='  '":
            if is_path:
                with pytest.raises(ConfigError) as error:
                    check_paths(command, [word])
                assert (error.value.field, error.value.got) == (key, "")
            else:
                check_paths(command, [word])


@pytest.mark.parametrize("name", ["train", "tune", "compare", "prepare_folder", "classify", "lesson", "attend"])
def test_a_folder_named_like_a_file_is_refused_before_anything_is_made(name, tmp_path):
    for file in "x.mid", "x.PNG", "x.safetensors":
        with pytest.raises(ConfigError, match="give a folder") as error:
            check_paths(find(name), [f"out={file}"])
        assert error.value.field == "out"
    (tmp_path / "x.png").mkdir()
    for folder in "outputs/run", "v1.2", tmp_path / "x.png":  # the last is a folder already
        check_paths(find(name), [f"out={folder}"])
