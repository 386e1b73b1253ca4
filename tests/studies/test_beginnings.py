"""studies/beginnings.py: its measures by hand, and the whole of it on a tiny model."""

import json
import re
import sys

import pytest
from conftest import ROOT, ok, run

from musictx.errors import UserError
from musictx.model.bundle import read_header, tensors_hash
from musictx.music.read import read_midi
from musictx.music.score import Score

sys.path.insert(0, str(ROOT / "studies"))
from beginnings import choose, silences, standstill_s


def music(*notes):
    onset, offset = zip(*notes, strict=True)
    return Score(onset, offset, [60 + k for k in range(len(notes))], [80] * len(notes))


def test_silences_before_between_and_after_the_notes_are_counted_and_a_held_note_is_none():
    assert silences(music((0, 1), (4.5, 5)), 6) == 1
    assert silences(music((3.5, 4), (7.5, 8)), 12) == 3
    assert silences(music((0, 9), (1, 2), (8, 8.5)), 12) == 0, "three seconds are not more than three"
    assert silences(music((0, 9), (1, 2)), 12.1) == 1
    assert silences(Score.empty(), 10) == 1


def test_the_longest_time_without_a_new_note_is_counted_though_one_sounds():
    assert standstill_s(music((0, 9), (1, 2), (8, 8.5)), 12) == 7
    assert standstill_s(music((4, 5), (6, 6.5)), 8) == 4, "from the beginning on"
    assert standstill_s(music((0, 1), (2, 12)), 12) == 10, "to the end"
    assert standstill_s(Score.empty(), 10) == 10


def test_the_slowest_fastest_sparsest_and_densest_are_chosen_none_twice():
    slow = music((0, 4), (4, 8), (8, 12))
    fast = music(*((k / 10, k / 10 + 0.1) for k in range(40)))
    dense = music((0, 9), (0.9, 9), (1.8, 9), (2.7, 9))
    plain = music((0, 1), (1, 2), (2, 3), (3, 4))
    assert choose([plain, dense, fast, slow], 1) == {"slow": [3], "fast": [2], "sparse": [0], "dense": [1]}
    with pytest.raises(UserError, match="4 pieces are long enough: 8 are needed; give shorter --seed-seconds"):
        choose([plain, dense, fast, slow], 2)


def test_the_study_on_a_tiny_model(world, tmp_path):
    words = ["studies/beginnings.py", "--store", world.store, "--bundle", world.bundle, "--threads", 1]
    words += ["--split", "train", "--each", 1, "--draws", 2, "--seed-seconds", 2, "--seconds", 3, "--out", "b.json"]
    out = ok(words, tmp_path).stdout
    assert out.startswith("4 beginnings of 2 s, 2 continuations of 3 s\n")
    found = json.loads((tmp_path / "b.json").read_text())
    assert set(found["silences_a_minute"]) == {"true", "model"}
    assert sorted(i for chosen in found["pieces"].values() for i in chosen) == sorted(
        {i for chosen in found["pieces"].values() for i in chosen}
    )
    assert list(found["hanging"]) == ["true", "model"]
    assert re.search(r"^notes over 8 s, true  0 of \d+, in 0 of 4$", out, re.MULTILINE)
    assert re.search(r"^no new note for 5 s, model 0 of 8$", out, re.MULTILINE), "of three seconds again"
    assert [len(found["still_s"][name]) for name in ("true", "model")] == [4, 8]
    assert found["tensors_sha256"] == tensors_hash(world.bundle)
    assert re.search(r"^notes over 8 s, model 0 of \d+, in 0 of 8$", out, re.MULTILINE), "music of three seconds"
    assert found["sampler"]["top_p"] == 0.98
    ok([*words, "sampler.top_p=null", "sampler.min_p=0.02"], tmp_path)
    filtered = json.loads((tmp_path / "b.json").read_text())["sampler"]
    assert (filtered["top_p"], filtered["min_p"]) == (None, 0.02)
    assert "rules.lowest=3: give settings that begin with sampler." in run([*words, "rules.lowest=3"], tmp_path).stderr
    names = {f"{kind}-1-{who}.mid" for kind in ("slow", "fast", "sparse", "dense") for who in ("true", "model")}
    assert {path.name for path in (tmp_path / "b").glob("*.mid")} == names
    true, drawn = (read_midi(tmp_path / "b" / f"fast-1-{who}.mid") for who in ("true", "model"))
    assert true.clip(0, 1.9) == drawn.clip(0, 1.9), "both begin with the seed"
    assert (tmp_path / "b" / "slow.png").read_bytes()[:4] == b"\x89PNG"


def test_the_chosen_filters_are_written_into_the_header(world, tmp_path):
    (tmp_path / "own.safetensors").write_bytes(world.bundle.read_bytes())
    words = ["studies/beginnings.py", "--bundle", "own.safetensors", "--write"]
    assert "--write: give the filters, as in sampler.top_p=null sampler.min_p=" in run(words, tmp_path).stderr
    assert read_header(tmp_path / "own.safetensors") == read_header(world.bundle)
    told = ok([*words, "sampler.top_p=null", "sampler.min_p=0.02"], tmp_path).stdout
    assert told == "own.safetensors: top_p=None, min_p=0.02\n"
    assert read_header(tmp_path / "own.safetensors").notes["sampler"] == {"top_p": None, "min_p": 0.02}


def test_too_few_pieces_are_told_in_one_line(world, tmp_path):
    words = ["studies/beginnings.py", "--store", world.store, "--bundle", world.bundle, "--seconds", 900]
    done = run(words, tmp_path)
    assert done.returncode == 2
    assert "pieces are long enough for a seed of 15 s and 900 s of music after it" in done.stderr
    assert not (tmp_path / "outputs").exists()
