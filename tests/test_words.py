"""A person's habit: `musictx generate my.mid`. The word without `=` is a command's main input."""

import os
import re
import sys
from pathlib import Path

import pytest
from apps import APPS
from conftest import refused
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import assume, given
from hypothesis import strategies as st

from musictx.cli import main
from musictx.commands.prepare import CORPORA
from musictx.config.app import as_text, command_help, settings
from musictx.config.command import find
from musictx.config.words import sort_words
from musictx.errors import ConfigError
from musictx.setting import find_setting

MAIN = {f"prepare_{corpus}": "path" for corpus in CORPORA if corpus != "chorales"} | {
    **dict.fromkeys(("render", "classify", "inspect", "similar", "attend"), "midi"),
    **dict.fromkeys(("probe", "tune"), "path"),
    "generate": "seed_midi",
    "accompany": "melody",
    "jam": "input",
    "train": "data.path",
    **dict.fromkeys(("evaluate", "export"), "bundle"),
    "compare": "runs",
    "listen": "bundles",
    "mirex": "files",
    "runs": "folder",
    "check": "device",
    "lesson": "name",
}
ODD = [
    *("my.mid", "elise", "a b, c (1) [x] {y} #1 & 2%.mid", "it's.mid", "5.mid", "1e3", "null", "true", "夜想曲.mid"),
    *("+1.mid", "back\\", "'q'.mid", "[a].mid", "mine/*.mid", "hydra.mid", "${x}.mid", "$HOME.mid"),
]
ALONE = ["--help", "-h", "-m", "--multirun", "--resolve", "--version"]  # flags without a value
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
    usage = next(line for line in command_help(command, []).splitlines() if line.startswith("usage: "))
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
    assert OverridesParser.create().parse_override(as_text(find("render"), word)).value() == name


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


SWEPT = [  # with -m: what the jobs get
    ("control.density=2,4.5", [2, 4.5]),
    ("control.density=0 3, 10 8", ["0 3, 10 8"]),
    ("control.density='0 3, 10 8','2'", ["0 3, 10 8", "2"]),
    ("control.key=F#,Bb minor", ["F#", "Bb minor"]),
    ("control.key='F# minor','C'", ["F# minor", "C"]),
    ("control.chords=C | Am F,G7 | C", ["C | Am F", "G7 | C"]),
    ("seed_midi=a.mid,夜想曲 (1).mid", ["a.mid", "夜想曲 (1).mid"]),
    ("seed_midi=choice(a,b)", ["a", "b"]),
    ("seed_midi=there,too.mid", ["there,too.mid"]),
    ("between=a.mid,b.mid", ["a.mid,b.mid"]),
    ("rules.scale=F# minor,C major", ["F# minor", "C major"]),
    ("random_seed=range(1,3)", [1, 2]),
    ("out=a[1]", ["a[1]"]),
]


@pytest.mark.parametrize(("typed", "values"), SWEPT)
def test_many_jobs_take_a_text_each(typed, values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there,too.mid").touch()
    assert swept(typed) == values


def swept(typed):
    """What each job gets."""
    read = OverridesParser.create().parse_override(as_text(find("generate"), typed, many=True))
    jobs = list(read.sweep_iterator()) if read.is_sweep_override() else [read.value()]
    return [getattr(job, "text", job) for job in jobs]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=",'\"~\\"), min_size=1), min_size=2
    )
)
def test_any_texts_without_commas_and_quotes_get_to_jobs_of_their_own(texts):
    assume(all(each == each.strip() and "${" not in each for each in texts))
    assume(not re.search(r"[()\[\]{}:]", "".join(texts)))  # Hydra's own words, as choice(a,b)
    assert [as_read(each) for each in swept(f"control.key={','.join(texts)}")] == [as_read(each) for each in texts]


def as_read(text):
    """A number, a switch and `null` may be spelled in several ways."""
    if isinstance(text, bool):  # no number
        return str(text).lower()
    try:
        return repr(float(text))
    except (TypeError, ValueError):
        return str(text).lower().replace("none", "null")


MINE = """
from dataclasses import dataclass, field
from musictx.config.command import Command
from musictx.setting import setting

@dataclass
class Data:
    path: str = setting("", "a folder")

@dataclass
class Mine:
    key: str | None = setting(None, "a key")
    data: Data = field(default_factory=Data)

COMMAND = Command("mine", lambda config: print(f"in {config.key} of {config.data.path}"), Mine)
"""


def test_a_sweep_of_text_reaches_each_job(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(sys, "argv", ["musictx", "mine.py", "-m", "key=F# minor,C", "data.path=a,b c"])
    main()
    jobs = [line for line in capsys.readouterr().out.splitlines() if line.startswith("in ")]
    assert jobs == ["in F# minor of a", "in F# minor of b c", "in C of a", "in C of b c"]


WRONG = [  # and what of it the line names: the key or the word
    ("generate my.mid seed_midi=x", "seed_midi=x"),
    ("generate +seed_midi=x my.mid", "seed_midi=x"),
    ("generate a.mid b.mid c.mid", "b.mid"),
    ("render a.mid b.png", "b.png"),
    ("compare a runs=[b]", "runs=[b]"),
    ("generate wav", "wav=VALUE"),
    ("generate sampler.top_p my.mid", "sampler.top_p=VALUE"),
    ("generate sampler", "sampler=VALUE"),
    ("train data", "data=VALUE"),
    ("train experiment", "experiment=VALUE"),  # a group that is no field
    ("generate --variations 3", "variations=VALUE"),
    ("generate --variations=3", "variations=3"),
    ("generate my.mid --", "--"),
    ("generate --cfg my.mid", "job or hydra or all"),
    ("generate my.mid --cfg=x", "job or hydra or all"),
    ("generate --info=", "plugins"),
    ("generate --config-dir", "--config-dir"),
    ("generate --config-dir=", "--config-dir"),
    *((f"generate {flag}={value}", "no value") for flag in ALONE for value in ("", "x")),
    ("serve my.mid", "my.mid"),
    ("prepare_chorales mine", "mine"),
    ("prepare_chorales ~mine", "~mine"),
    ("generate ~out", "out=VALUE"),
    ("generate ~sampler.top_p", "sampler.top_p=VALUE"),
    *((f"generate {word}", word) for word in ("=", "==", "=x", "+=x", "~=", "1=2", "a..b=1", "a.=1", "/x=1", "@=1")),
    *((f"generate {word}", word.lstrip("+")) for word in ("+~out=3", "夜=1", "a:b=1")),
]


@pytest.mark.parametrize(("typed", "datum"), WRONG)
def test_wrong_words_are_one_line(typed, datum, tmp_path, monkeypatch, capsys):
    name, *words = typed.split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["musictx", *words])
    with pytest.raises(SystemExit) as left:
        find(name)()
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1), err
    assert datum in err, err
    assert not re.search("[Oo]verride|extraneous|delete|hydra\\.cc", err), err  # words of Hydra


@pytest.mark.parametrize("word", ["variations=[1", "length_seconds=a:b(", "length_bars='"])
def test_a_value_that_cannot_be_read_is_named(word):
    with pytest.raises(ConfigError) as wrong:
        read("generate", word)
    key, _, value = word.partition("=")
    assert (wrong.value.field, wrong.value.got) == (key, value)
    assert "hydra.cc" not in str(wrong.value)


@pytest.mark.parametrize("name", ["~nosuch.mid", "~out.mid", "~", "~someone/x.mid", "~nosuch=1"])
def test_what_begins_like_a_removal_may_be_a_file(name):
    assert read("generate", name).seed_midi == name


def test_home_is_found_where_the_shell_leaves_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Path(read("generate", "~/my tune.mid").seed_midi) == tmp_path / "my tune.mid"
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "x.mid").touch()
    assert read("generate", "~/x.mid").seed_midi == "~/x.mid"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("generate none.mid", "none.mid: no such file: "),
        ("accompany melody.mid", "melody.mid: no such file: "),
        ("render none.mid out=a.png", "none.mid: no such file: "),
        ("inspect .", "midi=.: it is a folder, and neither a store nor a run's: give a MIDI file"),
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


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("accompany", "musictx accompany MELODY"),
        ("render", "musictx render MIDI"),
        ("compare", "musictx compare RUNS …"),
        ("prepare folder", "musictx prepare folder PATH"),
    ],
)
def test_who_gives_no_input_reads_that_it_is_a_word(typed, said, tmp_path):
    line = refused(["musictx", *typed.split()], tmp_path)
    assert f"{said};" in line
    assert line.startswith(f"error: {find(typed.replace(' ', '_')).main}=")
