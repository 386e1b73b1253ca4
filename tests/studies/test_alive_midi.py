"""studies/alive.py --midi: the composers' own music by hand, and the whole of it on two loops and a tiny model."""

import json
from io import BytesIO
from pathlib import Path

import alive
import alive_midi
import numpy as np
import pytest
from alive_midi import File, between, by_kind, own_rows, summary, together
from quantised_loops import loop
from quantised_scores import midi_of
from strategies import score_of
from trials import trial

from musictx.music.beat_grid import grid_by_name
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Meter

METER = Meter(0.5)  # a bar of 2 s
LONG = score_of(*((k / 2, (k + 1) / 2, 60 + k % 8) for k in range(40)))  # of 20 s; two bars of eight notes


def file_of(score):
    return File(Path("x.mid"), read_tracks(midi_bytes(loop(0)), "x"), score, METER, grid_by_name("1/8"))


def midi_bytes(piece):
    midi_of(piece).save(file=(file := BytesIO()))
    return file.getvalue()


def test_notes_between_two_moments_are_cut_at_the_second():
    found = between(score_of((1, 3, 60), (2, 9, 62), (4, 5, 64)), 2.0, 4.0)
    assert (found.onset_s.tolist(), found.offset_s.tolist(), found.pitch.tolist()) == ([2.0], [4.0], [62])


@pytest.mark.parametrize(("form", "places"), [("first 4 bars", 5), ("last 4 bars", 5), ("whole", 4)])
def test_the_composers_own_music_is_measured_after_bar_lines(form, places):
    """Ten bars, of which four come before and two after; of all that comes before, from the middle on."""
    rows = own_rows(file_of(LONG), form, 4.0)
    assert [(row["longest copy"], row["copied"], row["density"], row["begins a bar"]) for row in rows] == [
        (8, 1.0, 1.0, 1.0)  # a step of the scale up to eight notes
    ] * places
    assert own_rows(file_of(LONG.clip(0, 9)), form, 8.0) == []


def each(drawn, *true):
    """A file: one continuation, and the composer's own, by two figures: of loops less is as good, of density not."""
    row = {"wait": 1.0, "looped": 0.0}
    own = [row | {"looped": value, "density": value, "wait": 4.0} for value in true]
    return {"drawn": [row | {"looped": drawn, "density": drawn}], "true": own}


COMPOSERS = [k / 100 for k in range(21)]  # from 0 to 0.2: 5 to 95 % are 0.01 to 0.19


def test_what_lies_within_the_percentiles_of_the_composers_is_inside():
    kind = summary([each(0.005, *COMPOSERS), each(0.5), each(None, None)])
    like = {"drawn": 0.253, "true": 0.1, "like": [0.01, 0.19], "of": 2, "own inside": None, "own of": 0}
    assert (kind["density"], kind["looped"]) == (like | {"inside": 0.0}, like | {"inside": 0.5})
    assert (kind["drawn, waits"], kind["true, waits"], kind["continuations"], kind["composers"]) == (0, 22, 3, 22)
    both = together([kind, summary([each(0.15, *COMPOSERS[1:], 0.7), each(0.15, *COMPOSERS)])])
    assert both["looped"]["inside"] == 0.75  # three of four
    assert both["continuations"] == 5


def test_composers_are_beside_the_other_files_of_their_kind():
    found = summary([each(0.1, *COMPOSERS), each(0.1, *(x + 0.1 for x in COMPOSERS))])
    assert (found["density"]["own inside"], found["density"]["own of"]) == (0.476, 42)  # ten of each


def test_little_music_of_composers_says_nothing():
    found = summary([each(0.1, *COMPOSERS[:19])])
    assert (found["density"]["inside"], found["density"]["of"]) == (None, 0)


def test_kinds_are_names_before_the_number():
    paths = [Path(f"{kind}-{k}.mid") for kind in ("a-b", "c") for k in range(5)] + [Path("song.mid")]
    kinds = by_kind(paths, 3)
    assert {kind: [path.stem for path in each] for kind, each in kinds.items()} == {
        "a-b": ["a-b-0", "a-b-2", "a-b-4"],
        "c": ["c-0", "c-2", "c-4"],
        "all": ["song"],
    }


def test_the_study_of_two_files_on_a_tiny_model(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("files").mkdir()
    for name, piece in {"loop-1": loop(0), "swung-1": loop(0, swings=True)}.items():
        Path(f"files/{name}.mid").write_bytes(midi_bytes(piece))
    Path("tiny.safetensors").write_bytes(world.bundle.read_bytes())
    words = ["--midi", "files", "--bundles", "tiny.safetensors", "--length", 4, "--draws", 1, "--out", "a"]
    trial(alive, *words, "--forms", "whole", "first 4 bars")
    facts = json.loads(Path("a/alive.json").read_text())
    assert "chosen" not in facts
    found = facts["tiny.safetensors, default"]["files"]
    assert capsys.readouterr().out.strip().endswith("a/alive.json: all figures")
    for form in ("whole", "first 4 bars"):
        assert (found[form]["continuations"], found[form]["composers"]) == (2, 12)
        assert [found[form][name]["drawn"] for name in ("on grid", "starts at a bar", "tempo kept")] == [1.0] * 3
        assert set(found[form]["kinds"]) == {"loop", "swung"}
        assert found[form]["kinds"]["loop"]["processor"]
    heard = Path("a/tiny.safetensors/files-first-4-bars-loop/loop-1.mid")
    tracks = read_tracks(read_bytes(heard), heard)
    assert tracks.tracks[-1].name == "musictx"
    four_s = float(tracks.meter().bars_s(20.0)[4])
    assert tracks.tracks[-1].score.onset_s[0] >= four_s - 1e-6
    heard.unlink()
    monkeypatch.setattr(alive_midi, "continue_all", lambda *_, **__: pytest.fail("a cell is drawn again"))
    trial(alive, *words, "--forms", "whole", "first 4 bars")
    assert json.loads(Path("a/alive.json").read_text()) == facts
    assert np.isfinite(found["whole"]["density"]["drawn"])
