"""Any terminal: old encodings, forty columns, no colours, streams that are closed or full."""

import io
import json
import os
import re
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from unicodedata import category

import mido
import pytest
from apps import APPS
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from musictx.cli import main
from musictx.commands import print_table
from musictx.config.app import command_help
from musictx.config.command import find
from musictx.files import printable, write_json
from musictx.music.project import Line, Project
from musictx.music.read import read_tracks
from musictx.music.score import Score
from musictx.terminal import any_terminal, fold, say
from musictx.viz.formats import write_as

ENCODINGS = ["ascii", "cp1252", "cp437", "shift_jis", "utf-8"]
NAME = "夜想曲 — Étude “Nº 1”, für Dvořák…"
OWN = """
from dataclasses import dataclass
from musictx.config.command import Command
from musictx.setting import setting

@dataclass
class Own:
    '''musictx own.py: says — “夜想曲” …'''
    text: str = setting("夜 × é", "a word in other letters: 夜 — ≤")

COMMAND = Command("own", lambda config: print(config.text), Own)
"""


class Terminal(io.TextIOWrapper):
    """A stream as Python opens it for a terminal of this encoding, which refuses all other letters."""

    def __init__(self, encoding, is_terminal=False):
        super().__init__(io.BytesIO(), encoding)
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal

    def read_all(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


@pytest.fixture
def typed(monkeypatch, tmp_path):
    """Runs a command in this process; returns its status, and what it printed to stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(words, encoding):
        streams = Terminal(encoding), Terminal(encoding)
        with monkeypatch.context() as patch:
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            patch.setattr(sys, "argv", ["musictx", *words])
            status: object = 0
            try:
                main()
            except SystemExit as end:
                status = end.code
        return status, *(stream.read_all() for stream in streams)

    return run


@pytest.fixture
def song(tmp_path):
    lines = [Line("右手 — so ×", Score([0], [1], [60], [80])), Line("Links", Score([1], [2], [64], [80]))]
    (tmp_path / f"{NAME}.mid").write_bytes(Project.new(0.5).beside(lines))
    return tmp_path / f"{NAME}.mid"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_commands_print_fits_every_encoding(encoding, typed, song):
    for words in ([], ["--version"], ["prepare"], ["inspect", "--help"], ["inspect", f"midi={song.name}"]):
        status, out, err = typed(words, encoding)
        assert (status, err) == (0, "")
        assert len(out) > 5
    assert ("右手" in out) == (encoding in ("utf-8", "shift_jis")), out
    assert ("右手 — so ×" in out) == (encoding == "utf-8"), out
    assert "Links" in out
    status, out, err = typed(["inspect", f"midi={song.name}", "json=true"], encoding)
    assert json.loads(out)["tracks"][0]["name"] == "右手 — so ×"
    assert json.loads(out)["file"] == song.name


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_mistakes_fit_every_encoding_in_one_line(encoding, typed, tmp_path):
    (tmp_path / "own.py").write_text(OWN, "utf-8")
    name = f"無{NAME}.mid"
    for words in (["inspect", f"midi={name}"], ["generate", f"seed_midi={name}"], [name], ["own.py", f"{name}=1"]):
        status, out, err = typed(words, encoding)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert re.search("tude .*1", err), err
        assert (name in err) == (encoding == "utf-8"), err


@pytest.mark.parametrize(
    ("encoding", "said"), [("ascii", r"\u591c x e"), ("cp1252", r"\u591c × é"), ("utf-8", "夜 × é")]
)
def test_a_persons_own_command_prints_anywhere(encoding, said, typed, tmp_path):
    (tmp_path / "own.py").write_text(OWN, "utf-8")
    assert typed(["own.py"], encoding) == (0, f"{said}\n", "")
    status, out, _ = typed(["own.py", "--help"], encoding)
    assert (status, f"text={said}" in out.replace("'", "")) == (0, True)


@pytest.mark.parametrize(("app", "encoding"), zip(APPS, cycle(ENCODINGS), strict=False))
def test_every_help_fits(app, encoding, typed):
    words = app.split("_", 1) if app.startswith("prepare_") else [app]
    status, out, err = typed([*words, "--help"], encoding)
    assert (status, err) == (0, "")
    assert out.startswith(f"musictx {' '.join(words)}: ")
    assert "KEY=VALUE " in out


@given(st.text(), st.sampled_from(ENCODINGS))
def test_every_text_fits_every_encoding(text, encoding):
    with pytest.MonkeyPatch.context() as patch:
        terminal = Terminal(encoding)
        patch.setattr(sys, "stdout", terminal)
        with any_terminal():
            say(text)
    said = terminal.read_all()
    assert encoding != "utf-8" or said == (printable(text, lines=True) + "\n").replace("\n", os.linesep)
    assert all(sign.isprintable() or sign in "\n\t\u200c\u200d" or category(sign) == "Zs" for sign in said)


def test_lines_go_where_they_are_sent_and_none_steers_a_terminal(capsys):
    say("\x1b[2Ja\n\tb", Path("\udce9\x07"))
    say()
    say("c", file=sys.stderr, flush=True)
    assert capsys.readouterr() == ("\\x1b[2Ja\n\tb\n\\xe9\\x07\n", "c\n")


def test_letters_that_are_missing_become_alike_ones(typed):
    status, _, err = typed([NAME], "ascii")
    assert status == 2
    assert r"""\u591c\u60f3\u66f2 - Etude "No 1", fur Dvorak...""" in err
    assert "夜想曲 — Étude “Nº 1”, für Dvořák…" in typed([NAME], "utf-8")[2]


def test_spaces_and_joiners_of_other_scripts_stay_and_what_steers_a_terminal_goes():
    for name in ("夜\u3000想", "12\u202f30 PM", "می\u200cخواهم", "a\u00a0b"):
        assert printable(name) == name
    assert printable("\x1b[2J \x7f \u202e \u2028") == r"\x1b[2J \x7f \u202e \u2028"


def test_files_have_names_as_they_are(tmp_path, song):
    write_json(tmp_path / "a.json", {"name": "夜", "file": "caf\udce9"})
    text = (tmp_path / "a.json").read_text("utf-8")
    assert "夜" in text
    assert json.loads(text) == {"name": "夜", "file": "caf\udce9"}
    line = Line("a", Score([0], [1], [60], [80]))
    (tmp_path / "a.mid").write_bytes(Project.new(0.5).beside([line], "夜 — Dvořák"))
    (said,) = [
        m.text for track in mido.MidiFile(tmp_path / "a.mid", charset="utf-8").tracks for m in track if m.type == "text"
    ]
    assert said == "夜 — Dvořák"
    assert [track.name for track in read_tracks(song.read_bytes(), song).tracks] == ["右手 — so ×", "Links"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".gif"])
@pytest.mark.filterwarnings("error")
def test_a_picture_of_any_name_is_drawn_without_a_word(suffix, tmp_path):
    write_as(Score([0], [0.2], [60], [80]), tmp_path / f"a{suffix}", "夜想曲 𓀀")


@pytest.mark.parametrize("app", APPS)
def test_help_has_forty_columns(app, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = command_help(find(app), []).splitlines()
    prose = [line for line in lines if " " in line.strip() and "=" not in line]
    assert max(map(len, prose)) <= 40
    assert min(len(line) - len(line.lstrip()) for line in prose) == 0
    assert max(len(line) - len(line.lstrip()) for line in prose) < 10  # room for words


def test_the_first_screen_has_forty_columns_too(typed, monkeypatch):
    for words in ([], ["prepare"]):
        monkeypatch.setenv("COLUMNS", "40")
        _, out, _ = typed(words, "utf-8")
        assert max(map(len, out.splitlines())) <= 40
        monkeypatch.setenv("COLUMNS", "120")
        assert typed(words, "utf-8")[1].split() == out.split()
    assert fold("  a  b\n\nlong words", 9) == "  a  b\n\nlong\n    words"


@pytest.mark.parametrize(("columns", "is_terminal"), [(40, True), (40, False), (200, True)])
def test_a_table_is_read_line_by_line_where_it_is_too_wide(columns, is_terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal("utf-8", is_terminal))
    with any_terminal():
        print_table(["run", "steps"], [("outputs/" + "long" * 10, 7), ("夜", 12)], right=1)
    lines = terminal.read_all().splitlines()
    if columns == 40 and is_terminal:
        assert lines == ["run: outputs/" + "long" * 10, "steps: 7", "", "run: 夜", "steps: 12"]
    else:
        assert [line.split() for line in lines] == [["run", "steps"], ["outputs/" + "long" * 10, "7"], ["夜", "12"]]


@pytest.mark.parametrize(("term", "moves"), [("dumb", False), ("unknown", False), ("xterm", True)])
def test_a_dumb_terminal_gets_no_escape_codes(term, moves, monkeypatch):
    monkeypatch.setenv("TERM", term)
    for name in ("TTY_COMPATIBLE", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal("utf-8", is_terminal=True))
    with any_terminal():
        print_table(["run", "steps"], [("a", 7)])
        assert Console().is_terminal == moves
    assert ("\x1b" in terminal.read_all()) == moves


@pytest.mark.parametrize("old", [True, False])
def test_an_old_console_of_windows_gets_no_escape_codes(old, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr("rich.console.detect_legacy_windows", lambda: old)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal("utf-8", is_terminal=True))
    print_table(["run", "steps"], [("a", 7)])
    assert ("\x1b" in terminal.read_all()) != old


@pytest.mark.parametrize("words", [["--help"], ["inspect", "midi=elise"], ["runs", "--help"]])
def test_who_reads_may_leave(words, monkeypatch, capsys):
    with broken_pipe() as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "argv", ["musictx", *words])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 141
        stream.flush()  # as the interpreter does at its end
    assert capsys.readouterr().err == ""


def broken_pipe():
    """A stream that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    return open(write, "w", encoding="utf-8")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("length", [1, 100_000])  # more than a buffer, of which nothing is left to flush
def test_readers_of_both_streams_may_leave(name, length, monkeypatch):
    with broken_pipe() as stream, monkeypatch.context() as patch:
        patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as left, any_terminal(), any_terminal():
            print("a" * length, file=stream, flush=True)
        assert left.value.code == 141
        os.dup2(nowhere := os.open(os.devnull, os.O_WRONLY), stream.fileno())  # as its buffer may be empty
        os.close(nowhere)


def test_a_broken_pipe_of_another_is_an_error():
    for _ in range(2):  # also after a first one
        with broken_pipe() as worker:
            with pytest.raises(BrokenPipeError), any_terminal():
                print("to nobody", file=worker, flush=True)
            os.dup2(nowhere := os.open(os.devnull, os.O_WRONLY), worker.fileno())
            os.close(nowhere)


def test_a_reader_who_left_hides_no_error(monkeypatch):
    def fail():
        print("still in the buffer")
        raise FileNotFoundError

    with broken_pipe() as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        with pytest.raises(FileNotFoundError), any_terminal():
            fail()


def test_what_was_printed_before_may_have_no_reader_either(monkeypatch):
    with broken_pipe() as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        print("still in the buffer")
        with pytest.raises(SystemExit), any_terminal():
            pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no such device")
@pytest.mark.parametrize("words", [["--help"], ["inspect", "midi=elise"], ["runs", "--help"]])
def test_what_cannot_be_written_is_said(words, monkeypatch, capsys):
    with open("/dev/full", "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "argv", ["musictx", *words])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        stream.flush()
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_streams_may_be_closed(monkeypatch, tmp_path):
    for words, status in (["--help"], 0), (["runs", "folder=nowhere"], 2), (["inspect", "midi=elise"], 0):
        with monkeypatch.context() as patch:
            for name in ("stdin", "stdout", "stderr"):
                patch.setattr(sys, name, None)
            patch.setattr(sys, "argv", ["musictx", *words])
            try:
                main()
                ended: object = 0
            except SystemExit as end:
                ended = end.code
            opened = [getattr(sys, name) for name in ("stdin", "stdout", "stderr")]
        assert ended == status
        for stream in opened:
            stream.close()


def test_processes_of_a_shell():
    """What only a process shows: the encoding that Python takes from its environment, and what it does at its end."""
    script = r"""
    P='from musictx.terminal import any_terminal
with any_terminal(): print("\u591c \u2014")'
    PYTHONIOENCODING=ascii $0 -c "$P"
    LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 $0 -c "$P"
    $0 -m musictx.cli --help >&- && echo closed
    ($0 -m musictx.cli --help; echo $? >&2) | sleep 0
    """
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, env=env, check=True, text=True)
    assert done.stdout == 2 * "\\u591c -\n" + "closed\n"
    assert done.stderr in ("0\n", "141\n")  # `sleep` may end later than we write
