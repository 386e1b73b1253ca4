"""studies/long.py, run for real on a tiny model, and its measures by hand."""

import json
import re
import sys

import numpy as np
import pytest
from conftest import ROOT, ok, run

from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer

sys.path.insert(0, str(ROOT / "studies"))
import long

SCRIPT = "studies/long.py"


@pytest.fixture
def words(world):
    ours = [f"bundle={world.hymn_bundle}", f"seed_midi={world.hymn}", "out=o"]
    return [SCRIPT, *ours, "--store", world.hymn_store, "--threads", 1]


def test_ten_windows_are_the_music_of_generate_and_their_figures_are_kept(world, words, tmp_path):
    out = ok([*words, "variations=2", "--every", 8, "--out", "deep/l.json"], tmp_path).stdout
    args = [f"bundle={world.hymn_bundle}", f"seed_midi={world.hymn}", "length_tokens=320", "variations=2"]
    ok(["musictx", "generate", *args, "out=same"], tmp_path)
    assert read_midi(tmp_path / "o" / "hymn0-1.mid") == read_midi(tmp_path / "same" / "hymn0-1.mid")
    figures = json.loads((tmp_path / "deep" / "l.json").read_text())
    assert figures["window"] == 32
    assert [cost["tokens"] for cost in figures["costs"]] == list(range(8, 321, 8))
    assert all(cost["ms_per_step"] > 0 and cost["memory_mb"] > 0 for cost in figures["costs"])
    assert [len(row) for row in figures["rows"]] == [40, 40]
    assert figures["rows"][0] != figures["rows"][1]
    assert len(figures["held_out"]) == 4, "the one held-out hymn has more than a window"
    assert all(0 < part["nll"] < 10 and 0 <= part["entropy_bits"] < 3.6 for row in figures["rows"] for part in row)
    assert figures["sampler"]["top_p"] == 0.98
    assert re.findall(r"^ +(\S+) ", out, re.MULTILINE)[:11] == ["tokens", *(str(k * 32) for k in range(1, 11))]
    assert (tmp_path / "deep" / "l.png").read_bytes()[:4] == b"\x89PNG"


def test_guided_music_is_that_of_generate_too(world, words, tmp_path):
    how = ["sampler.seed_guidance=3", "sampler.guidance_tokens=4", "variations=1"]
    ok([*words, *how, "--contexts", 2, "--every", 32, "--out", "l.json"], tmp_path)
    args = [f"bundle={world.hymn_bundle}", f"seed_midi={world.hymn}", "length_tokens=64", *how]
    ok(["musictx", "generate", *args, "out=same"], tmp_path)
    ok(["musictx", "generate", *args, "sampler.seed_guidance=null", "out=other"], tmp_path)
    made, same, other = (read_midi(tmp_path / name / "hymn0-1.mid") for name in ("o", "same", "other"))
    assert made == same
    assert made != other
    assert json.loads((tmp_path / "l.json").read_text())["sampler"]["seed_guidance"] == 3


def test_a_part_is_measured_by_hand():
    tokenizer = ChoraleTokenizer()
    rest = tokenizer.rest
    primer, held = [60 - 21, rest, rest, rest], [62 - 21, rest, rest, rest]
    two_notes = [60 - 21, rest, rest, rest, 67 - 21, rest, rest, rest]
    ids = np.array(primer * 2 + held * 2 + two_notes, np.uint16)
    seed = Score([0.0, 0.15, 0.3], [0.15, 0.3, 0.45], [60, 62, 64], [80] * 3, 0.6)
    first, second = long.parts(tokenizer, ids, np.log(np.full(16, 0.25)), 0.6, 8, seed)
    assert (first.notes_per_s, first.note_s, first.entropy_bits) == pytest.approx((1 / 0.3, 0.3, 0))
    assert (second.notes_per_s, second.note_s, second.entropy_bits) == pytest.approx((2 / 0.3, 0.15, 1))
    assert first.nll == pytest.approx(np.log(4))
    assert first.kept == second.kept == 0
    scale = np.array([x for pitch in (72, 74, 76, 50) for x in (pitch - 21, rest, rest, rest)], np.uint16)
    (part,) = long.parts(tokenizer, scale, np.zeros(16), 0.6, 16, seed)
    assert part.kept == 1  # two whole tones up, in another key; then a fall


def test_the_share_of_parts_like_held_out_ones_is_told():
    real = np.repeat(np.linspace(1, 2, 21)[:, None], 7, 1)  # 5 to 95 %: 1.05 to 1.95
    drawn = np.full((2, 2, 7), 1.5)
    drawn[0, 1, 0] = 2  # too many notes a second
    drawn[1, 0, 2] = np.nan  # no note to measure
    costs = [long.Cost(tokens, 1.0, 9.0) for tokens in (8, 16)]
    inside = long.report(costs, drawn, real).splitlines()[-1]
    assert inside.split() == ["drawn", "inside", "0.75", "1.000", "0.750", *["1.000"] * 4]


def test_a_bar_that_came_lately_is_heard_before():
    bar, between = np.arange(64, dtype=np.uint16), np.arange(2048, dtype=np.uint16) + 100
    ids = np.concatenate([bar, between[: 2048 - 64], bar])
    assert np.flatnonzero(long.heard_before(ids)).tolist() == [len(ids) - 1]
    assert not long.heard_before(np.concatenate([bar, between[: 2048 - 63], bar])).any()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--every", 6], "--every 6: give a multiple of 4, 32 at most"),
        (["--contexts", 0], "contexts=0: give 1 or more"),
        (["--every", 300], "--every 300: give a multiple of 4, 32 at most"),
    ],
)
def test_what_cannot_be_measured_is_told(words, tmp_path, more, said):
    done = run([*words, *more], tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
