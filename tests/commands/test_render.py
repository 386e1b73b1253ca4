"""musictx render, through the real command."""

import re
import shutil
from zipfile import ZIP_STORED, ZipFile

import pytest
import soundfile
from conftest import ok
from notated import XML
from strategies import forget_pedal

from musictx.commands.render import render
from musictx.config.app import settings
from musictx.errors import UserError
from musictx.music.read import read_tracks


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("gif", b"GIF89a"), ("flac", b"fLaC")])
def test_the_suffix_says_what_is_made(world, tmp_path, suffix, start):
    line = ok(["musictx", "render", f"midi={world.seed}", f"out=out/a.{suffix}"], tmp_path).stdout
    assert re.fullmatch(rf"out/a.{suffix}: 60 notes, \d+\.\d\d s\n", line)
    (made,) = (tmp_path / "out").iterdir()
    assert made.read_bytes().startswith(start)
    if suffix == "flac":
        assert soundfile.info(made).channels == 2


def test_a_score_becomes_midi_and_says_what_midi_lacks(tmp_path, capsys):
    (tmp_path / "a.abc").write_text('X:1\nM:3/4\nL:1/4\nQ:1/4=90\nK:C\n"C"c2 d | e3 |\n')
    render(settings("render", f"midi={tmp_path / 'a.abc'}", f"out={tmp_path / 'new' / 'a.mid'}"))
    said, line = capsys.readouterr().out.splitlines()
    assert "chord symbol" in said
    assert line == f"{tmp_path / 'new' / 'a.mid'}: 3 notes, 4.00 s"
    tracks = read_tracks((tmp_path / "new" / "a.mid").read_bytes(), "a.mid")
    assert (tracks.merge().pitch.tolist(), tracks.meter().signature) == ([72, 74, 76], (3, 4))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.musicxml", XML.format(notes="<note><unpitched/><duration>12</duration></note>")),
        ("c.abc", 'X:1\nL:1/4\nK:G\n"C"z4|"G7"z4|\n'),
    ],
)
def test_drums_and_chord_symbols_alone_are_a_page_and_a_file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    for out, options in (("a.svg", ["score=true"]), ("a.musicxml", [])):
        render(settings("render", f"midi={tmp_path / name}", f"out={tmp_path / out}", *options))
        made = (tmp_path / out).read_text()
        assert ("<svg" in made) == (out == "a.svg")
    assert made.count("<unpitched") == text.count("<unpitched")
    assert made.count("<harmony") == text.count('"') // 2 * (name == "c.abc")
    with pytest.raises(UserError, match="no notes"):
        read_tracks(text.encode(), name).merge()


def test_a_compressed_score_is_the_same_score(tmp_path):
    (tmp_path / "a.abc").write_text("X:1\nT:Air\nM:3/4\nL:1/4\nK:G\nc2 d | e3 |\n")
    for out in ("a.musicxml", "a.mxl", "again.mxl"):
        render(settings("render", f"midi={tmp_path / 'a.abc'}", f"out={tmp_path / out}"))
    first, *_, last = (archive := ZipFile(tmp_path / "a.mxl")).namelist()
    assert (first, archive.getinfo(first).compress_type) == ("mimetype", ZIP_STORED)
    assert archive.read(last) == (tmp_path / "a.musicxml").read_bytes()
    assert (tmp_path / "again.mxl").read_bytes() == (tmp_path / "a.mxl").read_bytes()
    assert read_tracks((tmp_path / "a.mxl").read_bytes(), "a.mxl").merge().pitch.tolist() == [72, 74, 76]


def test_bars_a_continuation_and_a_pedal_that_the_file_forgets(world, tmp_path, capsys):
    seed, out = forget_pedal(shutil.copy(world.seed, tmp_path / "a.mid")), tmp_path / "a.svg"
    render(settings("render", f"midi={seed}", f"out={out}", "bars=true", "new_from=6"))
    said = f"{seed}: a pedal that stays down for more than 60 s is taken as forgotten and not heard\n"
    assert capsys.readouterr().out.startswith(said)
    text = out.read_text()
    assert ">bars, and seconds<" in text
    assert ">continuation<" in text


def test_mistakes_are_one_line(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.png").write_text("a picture")
    for words, text in (
        (["out=a.bmp"], "out=a.bmp: "),
        (["out=there.png"], "there.png exists already: give another out= or overwrite=true"),
        (["out=a.png", "new_from=-1"], "new_from=-1.0: give 0 or more"),
        (["out=a.png", "new_from=99"], r"new_from=99.0: .* ends before: give 0 to [\d.]+ s"),
        (["out=a.svg", "score=true", "soundfont=no"], "soundfont=no: it changes only .wav and .flac: leave it out"),
        (["out=a.musicxml", "soundfont=no"], "soundfont=no: it changes only .wav"),
        (["out=a.png", "soundfont=no"], "soundfont=no: it changes only .wav"),
        (["out=a.mid", "new_from=1"], "new_from=1.0: it changes only piano rolls and films"),
        (["out=a.mxl", "bars=true"], "bars=true: it changes only piano rolls and films"),
        (["out=a.wav", "drums=true"], "drums=true: it changes only piano rolls and films"),
        (["out=a.wav", "soundfont=none.sf2"], "soundfont=none.sf2: no such file: give a .sf2 file, or null"),
    ):
        with pytest.raises(UserError, match=text):
            render(settings("render", f"midi={world.seed}", *words))
    assert [p.name for p in tmp_path.iterdir()] == ["there.png"]
