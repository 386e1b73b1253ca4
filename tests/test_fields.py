"""A library's errors name its own fields; a command tells them as the keys that a person types (config/fields.py)."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from conftest import refused

import musictx
from musictx.commands.serve import serve
from musictx.config import SCHEMAS
from musictx.config.app import in_one_line, settings
from musictx.config.fields import in_keys, keys_of
from musictx.errors import KEYS, ConfigError, MidiError, UserError, told
from musictx.model.attention import relative_attention
from musictx.model.recurrent import RecurrentConfig
from musictx.model.transformer import TransformerConfig
from musictx.objectives.infill import Infill
from musictx.sampling.settings import Sampling
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.rules import Rules
from musictx.training.preflight import check_trainer

PACKAGE = Path(musictx.__file__).parent
COMMANDS = {"commands", "config", "cli.py"}
FOR_COMMANDS = {"bench", "proof"}  # they compose the words of commands too
A_GROUP = r"sampler|rules|attention|model|trainer|data|logger|tokenizer|select|filters|objective_settings"
DOTTED = re.compile(rf"(?<![\w.])({A_GROUP})\.(?!safetensors)(\w+|…)")
UNMARKED = re.compile(r"(?<![\w⟩.-])[a-z_]\w*=(?!=)")
MARK = re.compile(r"⟨([\w.]+)⟩")
NO_TEXT = {"data.path", "data.workers", "trainer.progress_bar", "trainer.batch_size"}  # keys of a stored config
NO_TEXT |= {"model.kind=…", "model.kind"}
IN_PYTHON = {  # arguments of functions that no command has as a setting
    *("Settings.window", "Tokenizer.name", "trained_length", "vocab_size", "pad"),
    *("confidence", "resamples", "grid_s", "bar_quarters", "window_s", "horizon_s", "seed_s"),
}


def attend_by(impl):
    q = torch.zeros(1, 1, 2, 4)
    return relative_attention(q, q, q, torch.zeros(1, 2, 4), impl)


def train_with(*words):
    return check_trainer(settings("train", "data.path=none", *words))


WRONG = [  # what a person asks of Python; the command; its text with the keys, which the brackets hold
    (lambda: Sampling(temperature=5e3), "generate", "[sampler.]temperature=5000.0: give 0 (greedy) or 0.001 to 1000"),
    (
        lambda: Sampling(beams=2, seed_guidance=1.0),
        "listen",
        "[sampler.]seed_guidance is for drawing, and [sampler.]beams",
    ),
    (lambda: Rules(max_note_s=0), "jam", "[rules.]max_note_s=0: give more than 0"),
    (lambda: attend_by("flash"), "generate", "[attention.]impl=flash: choose one of auto, reference, skew"),
    (lambda: attend_by("triton"), "check", "[attention.]impl=triton needs a CUDA GPU and the package triton"),
    (lambda: attend_by("flash"), "bench_training", "impl=flash: choose one of"),  # a setting outside all groups
    (lambda: TransformerConfig(9, attention="flash"), "train", "attention[.impl]=flash: choose one of auto"),
    (
        lambda: TransformerConfig(9, d_model=25),
        "train",
        "[model.]d_model=25 cannot be shared by [model.]n_heads=4: give",
    ),
    (lambda: TransformerConfig(9, d_model=25), "generate", "[model.]d_model=25 cannot be shared by [model.]n_heads=4"),
    (lambda: RecurrentConfig(9, cell="gru"), "train", "[model.]cell=gru: choose one of lstm, rnn"),
    (lambda: Infill(build_tokenizer("chorale"), plain=2), "train", "[objective_settings.]plain=2: give a share"),
    (lambda: train_with("trainer.lr=0"), "train", "[trainer.]lr=0.0: give a number above 0"),
    (lambda: train_with("trainer.decay_share=0.3"), "train", "[trainer.]decay_share=0.3 needs [trainer.]schedule=hold"),
    (
        lambda: train_with("data.carry=true", "model.d_model=8"),
        "train",
        "[data.]carry=true: [model.]kind=transformer has",
    ),
]


@pytest.mark.parametrize(("ask", "command", "text"), WRONG)
def test_python_reads_its_own_arguments_and_a_command_its_keys(ask, command, text, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    for keys, expected in ((None, re.sub(r"\[.*?\]", "", text)), (command, re.sub(r"[][]", "", text))):
        with pytest.raises(ConfigError) as caught, in_keys(keys):
            ask()
        assert str(caught.value).startswith(expected)
        assert "⟨" not in repr(caught.value)
    assert not KEYS.get()


def test_the_person_at_the_shell_reads_full_keys_the_caller_of_a_function_too(world, tmp_path):
    words = [f"bundle={world.bundle}", f"seed_midi={world.seed}", "out=o", "sampler.temperature=-1"]
    line = refused(["musictx", "generate", *words], tmp_path)
    assert line == "error: sampler.temperature=-1.0: give 0 (greedy) or 0.001 to 1000"
    model = musictx.load(world.bundle)
    for values in ({"sampler": {"temperature": -1}}, {"sampler.temperature": -1}):
        with pytest.raises(ConfigError, match=r"^temperature=-1.0: give 0 \(greedy\) or 0.001 to 1000$"):
            model.continue_midi(world.seed, **values)
    with pytest.raises(ConfigError, match=r"^attention=flash: choose one of auto"):
        musictx.load(world.bundle, attention="flash")
    with pytest.raises(ConfigError, match=r"^trainer.lr=0.0: give a number above 0"):  # it takes the command's words
        musictx.train("trainer.lr=0", data={"path": str(world.store)}, out=str(tmp_path / "run"))


def test_a_field_is_told_by_its_class_where_several_have_its_name():
    assert keys_of("train")["name"] == "name"  # the run's, not the tokenizer's or the logger's
    assert keys_of("train")["LoggerConfig.name"] == "logger.name"
    assert keys_of("train")["TokenizerConfig.name"] == "tokenizer.name"
    assert (keys_of("compare")["segment"], keys_of("evaluate")["segment"]) == ("segment", "data.segment")
    assert (keys_of("generate")["drums"], keys_of("prepare_folder")["drums"]) == ("drums", "select.drums")
    with in_keys("train"):
        assert told("⟨LoggerConfig.name⟩=a, ⟨name⟩=b") == "logger.name=a, name=b"
    assert told("⟨LoggerConfig.name⟩=a, ⟨name⟩=b") == "name=a, name=b"


def test_a_value_is_no_field_and_an_error_keeps_its_text():
    with in_keys("train"):
        error = ConfigError("⟨path⟩=outputs/lr=3/<lr>: {lr} and lr are no fields")
        reason = MidiError("a.mid", "larger than ⟨length⟩=3").reason
    assert str(error) == "data.path=outputs/lr=3/<lr>: {lr} and lr are no fields"
    assert reason == "larger than data.length=3"
    assert str(UserError(f"seed.mid: {error}")) == f"seed.mid: {error}"
    assert str(type(error)(*error.args)) == str(error)  # as another process reads it


def fail(*_):
    raise ConfigError("⟨temperature⟩=5")


def test_keys_end_with_their_command(capsys):
    with pytest.raises(SystemExit):
        in_one_line(fail, "generate")
    assert capsys.readouterr().err == "error: sampler.temperature=5\n"
    assert not KEYS.get()


def test_a_page_has_no_keys(world, monkeypatch, capsys):
    monkeypatch.setattr("musictx.web.server.run_page", fail)
    with pytest.raises(SystemExit):
        in_one_line(lambda: serve(settings("serve", bundle=world.bundle)), "serve")
    assert capsys.readouterr().err == "error: temperature=5\n"


def literals(file):
    """(is it in a raise?, text with … for each value) of all texts of a module but its docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    raised = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Raise) for part in ast.walk(node)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield id(node) in raised, "".join(pieces)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | docs:
            yield id(node) in raised, node.value


def libraries():
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0]
        if room not in COMMANDS:
            yield from ((room, file, *found) for found in literals(file))


def mistakes(room, raised, text):
    """What a text of a library names as only a command may."""
    if (raised or room not in FOR_COMMANDS) and text not in NO_TEXT:
        yield from (found[0] for found in DOTTED.finditer(text))
    if raised:
        yield from (found[0] for found in UNMARKED.finditer(text))


def test_no_library_writes_the_key_of_a_command_in_an_error():
    seen, wrong = 0, []
    for room, file, raised, text in libraries():
        seen += raised
        wrong += [f"{file.relative_to(PACKAGE)}: {found} in {text!r}" for found in mistakes(room, raised, text)]
    assert not wrong, "\n".join(wrong)
    assert seen > 300


@pytest.mark.parametrize(
    ("room", "raised", "text", "found"),
    [
        ("sampling", True, "sampler.temperature=…: give 0", "sampler.temperature"),
        ("model", True, "model.…=…: give 1 or more", "model.…"),
        ("training", False, "trainer.lr", "trainer.lr"),  # in a table of names
        ("sampling", True, "choose attention.impl=auto", "attention.impl"),
        ("playing", True, "infill= needs a region", "infill="),
        ("bench", True, "data.path is missing", "data.path"),
    ],
)
def test_that_would_be_seen(room, raised, text, found):
    assert found in list(mistakes(room, raised, text))


def test_every_mark_is_a_field_of_some_command_or_of_a_function():
    """One that is misspelt would never become a key."""
    known = IN_PYTHON | {key for command in SCHEMAS for key in keys_of(command)}
    known |= {field.name for schema in SCHEMAS.values() for field in fields(schema)}
    marks = {name for *_, text in libraries() for name in MARK.findall(text) if "…" not in name}
    assert len(marks) > 80
    assert marks <= known, marks - known
