import json

from conftest import BENCHMARKS, ok, refused


def test_the_bench_measures_both_and_the_growth(world, tmp_path):
    args = [
        "musictx",
        BENCHMARKS / "prepare.py",
        f"path={world.midi}",
        "max_files=6",
        "repeats=2",
        "workers=1",
        "out=f.json",
    ]
    out = ok(args, tmp_path).stdout
    figures = json.loads((tmp_path / "f.json").read_text())
    assert set(figures["one_core_s"]) == {"musictx", "MidiTok MIDILike"}
    assert all(len(times) == 2 and min(times) > 0 for times in figures["one_core_s"].values())
    assert [row["files"] for row in figures["scaling"]] == [6, 24, 96]
    tokens = [row["tokens"] for row in figures["scaling"]]
    assert tokens[1:] == [4 * tokens[0], 16 * tokens[0]]
    assert "6 files, one core" in out


def test_sizes_that_cannot_be(world, tmp_path):
    for setting in ("max_files=0", "repeats=0"):
        for bench in ("prepare", "tokens"):
            args = ["musictx", BENCHMARKS / f"{bench}.py", f"path={world.midi}", setting]
            assert f"error: {setting}: give 1 or more" in refused(args, tmp_path)
