"""Errors are data: a library names its own fields, a command prints the keys that a person types."""

import pickle

import pytest

from musictx.config.app import settings
from musictx.config.fields import setting_keys
from musictx.errors import ConfigError, MidiError, UserError, as_word, counted
from musictx.generate.requests import Continue, Length, Sampling
from musictx.model.transformer import TransformerConfig
from musictx.objectives.infill import Infill
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.rules import Rules
from musictx.training.preflight import check_trainer


def test_the_form_of_the_sentence():
    whole = ConfigError("draws", got=3, why="it is odd", allowed="rows_at_once=4 or more", hint="lower batch_size=")
    assert str(whole) == "draws=3: it is odd: give rows_at_once=4 or more; lower batch_size="
    keys = {"batch_size": "trainer.batch_size", "draws": "many.draws"}
    assert whole.line(keys) == "many.draws=3: it is odd: give rows_at_once=4 or more; lower trainer.batch_size="
    assert str(whole.of("a.mid")) == f"a.mid: {whole}"
    assert str(ConfigError("midi")) == "midi=…"
    assert str(ConfigError("LoggerConfig.name", got=None)) == "name=null"
    assert (
        UserError("lr=3 is a folder", "lower lr=").line({"lr": "trainer.lr"}) == "lr=3 is a folder: lower trainer.lr="
    )


def test_one_thing_is_no_plural():
    said = [counted(n, "note") for n in (0, 1, 1200)] + [counted(n, "staff", "staves") for n in (1, 2)]
    assert said == ["0 notes", "1 note", "1,200 notes", "1 staff", "2 staves"]


def test_a_value_is_printed_as_it_is_whatever_it_looks_like():
    for got in (None, True, "lr=3", "", [1, 2], "a b"):
        error = ConfigError("path", got=got, allowed="less")
        assert error.line({"path": "data.path", "lr": "trainer.lr"}) == f"data.path={as_word(got)}: give less"


@pytest.mark.parametrize("error", [ConfigError("lr", got=0.0, allowed="more", hint="x"), MidiError("a.mid", "empty")])
def test_another_process_reads_the_same_error(error):
    error = error.of("b")
    other = pickle.loads(pickle.dumps(error))
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))


WRONG = [  # what a person asks of Python; the command; the field, the value, and the key
    (lambda: Sampling(temperature=5e3), "generate", "temperature", 5e3, "sampler.temperature"),
    (lambda: Rules(max_note_s=0), "jam", "max_note_s", 0, "rules.max_note_s"),
    (lambda: Continue(window=3), "generate", "Continue.window", 3, "window"),
    (lambda: TransformerConfig(9, d_model=25), "generate", "d_model", 25, "model.d_model"),
    (
        lambda: TransformerConfig(9, attention="flash"),
        "train",
        "TransformerConfig.attention",
        "flash",
        "attention.impl",
    ),
    (lambda: Infill(build_tokenizer("chorale"), plain=2), "train", "plain", 2, "objective_settings.plain"),
    (lambda: check_trainer(settings("train", "data.path=none", "trainer.lr=0")), "train", "lr", 0.0, "trainer.lr"),
]


@pytest.mark.parametrize(("ask", "command", "field", "got", "key"), WRONG)
def test_python_reads_a_field_and_a_command_its_key(ask, command, field, got, key):
    with pytest.raises(ConfigError) as caught:
        ask()
    assert (caught.value.field, caught.value.got) == (field, got)
    assert str(caught.value).startswith(f"{field.rpartition('.')[2]}={as_word(got)}: ")
    assert caught.value.line(setting_keys(command)).startswith(f"{key}={as_word(got)}: ")


def test_a_name_that_several_groups_have_needs_its_class():
    assert setting_keys("train")["name"] == "name"  # the run's, not the tokenizer's or the logger's
    assert setting_keys("train")["LoggerConfig.name"] == "logger.name"
    assert setting_keys("train")["TokenizerConfig.name"] == "tokenizer.name"
    assert (setting_keys("compare")["segment"], setting_keys("evaluate")["segment"]) == ("segment", "data.segment")
    assert (setting_keys("generate")["drums"], setting_keys("prepare_folder")["drums"]) == ("drums", "select.drums")


def test_a_text_in_place_of_a_number_is_seen_in_the_message():
    with pytest.raises(ConfigError, match="^seconds=5: it is text: give a number or null$"):
        Length(seconds="5")  # type: ignore[arg-type]
