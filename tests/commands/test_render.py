"""musictx render, through the real command."""

import re
import shutil

import pytest
import soundfile
from conftest import ok, refused, run
from strategies import forget_pedal


def render(world, cwd, *args):
    return ok(["musictx", "render", f"midi={world.seed}", *args], cwd).stdout


def test_the_suffix_says_what_is_made(world, tmp_path):
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "gif": b"GIF89a", "wav": b"RIFF", "flac": b"fLaC"}
    for suffix, start in starts.items():
        line = render(world, tmp_path, f"out=out/a.{suffix}")
        assert re.fullmatch(rf"out/a.{suffix}: 60 notes, \d+\.\d\d s\n", line)
        assert (tmp_path / "out" / f"a.{suffix}").read_bytes().startswith(start)
    assert len(list((tmp_path / "out").iterdir())) == len(starts)
    assert soundfile.info(tmp_path / "out" / "a.flac").channels == 2


def test_a_pedal_that_the_file_forgets_is_said(world, tmp_path):
    seed = forget_pedal(shutil.copy(world.seed, tmp_path / "a.mid"))
    said = f"{seed}: a pedal that stays down for more than 60 s is taken as forgotten and not heard\n"
    assert ok(["musictx", "render", f"midi={seed}", "out=a.svg"], tmp_path).stdout.startswith(said)
    attend = ["musictx", "attend", f"bundle={world.bundle}", f"midi={seed}", "out=b.svg", "device=cpu"]
    assert said in ok(attend, tmp_path).stdout
    accompany = ["musictx", "accompany", f"melody={seed}", "out=o", "device=cpu"]
    assert said in run(accompany, tmp_path).stdout


def test_bars_and_a_continuation(world, tmp_path):
    render(world, tmp_path, "out=a.svg", "bars=true", "new_from=6")
    text = (tmp_path / "a.svg").read_text()
    assert ">bars<" in text
    assert ">continuation<" in text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["out=a.bmp"], "out=a.bmp: "),
        (["out=there.png"], "there.png exists already: give another out= or overwrite=true"),
        (["out=a.png", "new_from=-1"], "new_from=-1.0: give 0 or more"),
        (["out=a.wav", "soundfont=none.sf2"], "soundfont=none.sf2: no such file: give a .sf2 file, or null"),
    ],
)
def test_mistakes_are_one_line(world, tmp_path, args, text):
    (tmp_path / "there.png").write_text("a picture")
    assert text in refused(["musictx", "render", f"midi={world.seed}", *args], tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["there.png"]
