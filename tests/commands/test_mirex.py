"""musictx mirex: generations that the contest's checks pass, and mistakes in a line."""

import json

import pytest
from conftest import ok, refused
from untrained import write_score_model

PROMPT = [(12, 67, 4), (16, 72, 8), (24, 71, 8), (16, 48, 16), (32, 69, 16), (32, 53, 16), (48, 67, 32), (48, 43, 32)]


@pytest.fixture
def folder(tmp_path):
    write_score_model(tmp_path / "score.safetensors")
    rows = [{"start": start, "pitch": pitch, "duration": duration} for start, pitch, duration in PROMPT]
    (tmp_path / "prompt.json").write_text(json.dumps({"prompt": rows}))
    return tmp_path


def test_twelve_bars_of_sixteenths_follow(folder):
    words = ["musictx", "mirex", "prompt.json", "out/new.json", "bundle=score.safetensors", "variations=2"]
    said = ok(words, folder).stdout
    first, second = (json.loads((folder / f"out/new-{k}.json").read_text()) for k in (1, 2))
    assert first != second
    for found in (first, second):
        assert f": {len(found['generation'])} notes in 12 bars" in said
        assert [*found] == ["generation"]
        assert found["generation"]
        for note in found["generation"]:
            assert [*note] == ["start", "pitch", "duration"]
            assert 80 <= note["start"] < note["start"] + note["duration"] <= 272
            assert 0 <= note["pitch"] <= 127
    assert "out/new-1.json" in refused(words, folder)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prompt.json"], "files"),
        (["prompt.json", "new.json", "third.json"], "files"),
        (["prompt.json", "new.mid"], "files=new.mid: give a name that ends in .json"),
        (["prompt.json", "new"], "files=new: give a name that ends in .json"),
        (["prompt.json", "new.json", "variations=999999999999"], "variations=999999999999: give 1 to 1000"),
        (["prompt.json", "prompt.json", "overwrite=true"], "prompt.json is the prompt and would be overwritten"),
        (["none.json", "new.json"], "No such file"),
        (["score.safetensors", "new.json"], "no JSON"),
        (["prompt.json", "new.json", "bundle=chorale"], "no model of scores"),
    ],
)
def test_a_mistake_is_a_line(folder, words, says):
    bundle = [] if any("bundle=" in word for word in words) else ["bundle=score.safetensors"]
    assert says in refused(["musictx", "mirex", *words, *bundle], folder)
    assert not [*folder.glob("new*")]
