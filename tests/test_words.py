"""A person's habit: `musictx generate my.mid`. The word without `=` is a command's main input."""

import os
import re
import sys

import pytest
from apps import APPS
from conftest import refused
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import assume, given
from hypothesis import strategies as st

from musictx.cli import main
from musictx.commands.prepare import CORPORA
from musictx.config.app import helped, quote_path, settings
from musictx.config.command import find
from musictx.config.words import sort_words
from musictx.errors import UserError
from musictx.setting import find_setting

MAIN = {f"prepare_{corpus}": "path" for corpus in CORPORA if corpus != "chorales"} | {
    **dict.fromkeys(("render", "classify", "inspect", "similar", "attend"), "midi"),
    **dict.fromkeys(("probe", "tune"), "path"),
    "generate": "seed_midi",
    "accompany": "melody",
    "jam": "input",
    "train": "data.path",
    "evaluate": "bundle",
    "compare": "runs",
    "listen": "bundles",
    "runs": "folder",
    "check": "device",
}
ODD = [
    *("my.mid", "elise", "a b, c (1) [x] {y} #1 & 2%.mid", "it's.mid", "5.mid", "1e3", "null", "true", "夜想曲.mid"),
    *("+1.mid", "back\\", "'q'.mid", "[a].mid", "mine/*.mid", "hydra.mid", "${x}.mid", "$HOME.mid"),
]
THERE = ["sampler", "out", "help", "-x.mid", "~x", "a=b.mid"]  # without such a file each is something else


def read(command, *words):
    """What the command gets of words."""
    found, flags = sort_words(find(command), words)
    assert flags == []
    return settings(command, *found)


@pytest.mark.parametrize("app", APPS)
def test_every_command_names_a_setting_or_nothing(app):
    command = find(app)
    assert command.main == MAIN.get(app, "")
    assert not command.main or find_setting(command.schema, command.main)
    usage = next(line for line in helped(command, []).splitlines() if line.startswith("usage: "))
    said = rf"(\[{command.main.upper()}\]|{command.main.upper()}( …)?) KEY" if command.main else "KEY"
    assert re.fullmatch(rf"usage: musictx {app.replace('_', ' ')} {said}=VALUE …", usage), usage


@pytest.mark.parametrize("name", [*ODD, *THERE])
def test_the_word_is_a_name_whatever_it_looks_like(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name in THERE:
        (tmp_path / name).touch()
    assert read("generate", name, "variations=2").seed_midi == name
    assert read("generate", "variations=2", name).variations == 2
    assert read("render", name, "out=a.png").midi == name


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_gets_through_hydra(name):
    assume("=" not in name and name[0] not in "-~" and "\0" not in name and name != "help" and "${" not in name)
    assume(not find_setting(find("render").schema, name))
    (word,), _ = sort_words(find("render"), [name])
    assert word.startswith("midi=")
    assert OverridesParser.create().parse_override(quote_path(word)).value() == name


def test_settings_win_over_files_of_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out=x").touch()
    (tmp_path / "sampler.top_p=1").touch()
    config = read("generate", "out=x", "sampler.top_p=1", "my.mid")
    assert (config.out, config.sampler.top_p, config.seed_midi) == ("x", 1.0, "my.mid")


def test_where_several_are_compared_there_may_be_several_words():
    assert read("compare", "a", "b, c", "store=s").runs == ["a", "b, c"]
    assert read("listen", "lstm*", "store=s").bundles == ["lstm*"]
    assert read("train", "my store", "model.d_model=8").data.path == "my store"


FLAGGED = [
    ("my.mid -m sampler.temperature=0.9,1.1", "seed_midi sampler.temperature", ["-m"]),
    ("-m sampler.temperature=0.9,1.1 my.mid", "seed_midi sampler.temperature", ["-m"]),
    ("--cfg job my.mid --package sampler", "seed_midi", ["--cfg", "job", "--package", "sampler"]),
    ("my.mid --cfg=job", "seed_midi", ["--cfg=job"]),
    ("--info my.mid", "seed_midi", ["--info"]),
    ("--info plugins", "", ["--info", "plugins"]),
    ("my.mid -h", "seed_midi", ["-h"]),
    ("help", "", ["--help"]),
    ("~sampler", "~sampler", []),
]


@pytest.mark.parametrize(("typed", "keys", "flags"), FLAGGED)
def test_flags_keep_their_values(typed, keys, flags):
    words, found = sort_words(find("generate"), typed.split())
    assert {word.partition("=")[0] for word in words} == {*keys.split()}
    assert found == flags


WRONG = [
    ("generate my.mid seed_midi=x", "seed_midi=x: my.mid is given too"),
    ("generate +seed_midi=x my.mid", "seed_midi=x: my.mid is given too"),
    ("generate a.mid b.mid c.mid", "seed_midi=a.mid: b.mid is a second word .*pattern like"),
    ("render a.mid b.png", "midi=a.mid: b.png is a second word"),
    ("compare a runs=[b]", r"runs=\[b\]: a is given too"),
    ("generate wav", "wav has no value: give wav=VALUE"),
    ("generate sampler.top_p my.mid", "sampler.top_p has no value: "),
    ("generate --variations 3", "--variations is no flag: .* variations=VALUE"),
    ("generate --variations=3", "--variations=3 is no flag: .* variations=3"),
    ("generate my.mid --", "-- is no flag"),
    ("generate --cfg my.mid", "--cfg needs a value: give job or hydra or all"),
    ("generate my.mid --cfg=x", "--cfg needs a value"),
    ("generate --config-dir", "--config-dir needs a value"),
    ("serve my.mid", "my.mid is no setting: settings are KEY=VALUE"),
    ("prepare_chorales mine", "mine is no setting"),
]


@pytest.mark.parametrize(("typed", "said"), WRONG)
def test_wrong_words_are_one_line(typed, said):
    command, *words = typed.split()
    with pytest.raises(UserError, match=f"^{said}") as wrong:
        sort_words(find(command), words)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("generate none.mid", "none.mid: no such file: "),
        ("accompany melody.mid", "melody.mid: no such file: "),
        ("render none.mid out=a.png", "none.mid: no such file: "),
        ("inspect .", "midi=.: give a MIDI file; store= shows a store, bundle= a model"),
        ("prepare folder none", "path=none: "),
        ("generate temperture=1", "temperture=…: it is not a setting: did you mean sampler.temperature"),
        ("generate varations=1", "varations=…: it is not a setting: did you mean variations"),
        ("generate x=none.mid", "x=…: it is not a setting: this command has bundle, seed_midi"),
        ("generate ''", "seed_midi=: give a path"),
    ],
)
def test_commands_say_what_is_wrong_with_their_words(typed, said, tmp_path):
    words = [word.strip("'") for word in typed.split()]
    assert refused(["musictx", *words], tmp_path).startswith(f"error: {said}")
    assert os.listdir(tmp_path) == []


def test_a_command_reads_its_word(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for word, said in ("elise", "elise.mid: "), ("help", "usage: musictx inspect [MIDI] KEY=VALUE"):
        monkeypatch.setattr(sys, "argv", ["musictx", "inspect", word])
        main()
        assert said in capsys.readouterr().out
