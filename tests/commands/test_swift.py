"""`musictx generate` and `accompany` on a CPU: the same files each time, before PyTorch is imported."""

import os
import subprocess
import sys

import pytest

WAYS = {
    "a performance": ["generate", "seed_midi=elise", "seed_seconds=3", "length_seconds=3", "variations=2"],
    "four voices": ["generate", "seed_midi=chorale", "length_seconds=3"],
    "a fill": ["generate", "infill=elise", "from_s=4", "to_s=6"],
    "three voices below a melody": ["accompany", "melody=chorale", "variations=2"],
    "a tenor": ["accompany", "melody=chorale", "rewrite=T", "control.chords=G | D"],
}
CODE = """
import sys
from musictx.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
assert "onnxruntime" in sys.modules
print(*sorted({"torch", "lightning", "matplotlib", "transformers"} & sys.modules.keys()))
"""


def run(words, folder):
    """What it has imported, and the files. Nothing is left elsewhere, as a library's note of whom it told about it."""
    command, apart = [sys.executable, "-c", CODE, *words, f"out={folder}"], folder.with_name("apart")
    apart.mkdir(exist_ok=True)
    there = {
        name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_")) and name != "CI"
    }
    there |= {"HOME": str(apart), "TMPDIR": str(apart)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=there)
    assert done.returncode == 0, done.stderr
    assert [*apart.rglob("*")] == []
    return done.stdout.splitlines()[-1], {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_words_give_the_same_bytes_without_pytorch(way, tmp_path):
    (imported, first), (_, second) = (run(WAYS[way], tmp_path / name) for name in "ab")
    assert imported == ""
    assert first == second
    assert first


def test_a_row_is_the_same_bytes_whatever_other_rows_there_are(tmp_path):
    words = WAYS["a performance"]
    _, together = run([*words, "variations=3"], tmp_path / "a")
    _, alone = run([*words, "variations=3", "rows_at_once=1"], tmp_path / "b")
    assert together == alone
    assert len(set(together.values())) == 3
