import json

import numpy as np
import pytest
from conftest import ok, refused

from musictx.analysis.bootstrap import Interval
from musictx.analysis.frechet import Frechet
from musictx.analysis.motif import RetentionCurve
from musictx.analysis.report import Memory, ModelReport, table
from musictx.errors import UserError
from musictx.generate.open_bundle import find_bundles, name_bundles

SMALL = ["split=train", "pieces=3", "seed_seconds=2", "length_seconds=3", "span_seconds=1.5"]


def test_bundles_become_a_report(world, filling, tmp_path):
    """Two are one and the same model; the vocabulary of the third is longer by the ids of its objective."""
    copy = tmp_path / "other.safetensors"
    copy.write_bytes(world.hymn_bundle.read_bytes())
    runs = f"runs=[{world.hymn_bundle.parent},{copy},{filling}]"
    scored = [f"store={world.hymn_store}", "out=report", "segment=16", "stride=4", *SMALL]
    args = ["musictx", "compare", runs, "names=[one,two,fills]", *scored]
    out = ok(args, tmp_path).stdout
    assert "report/report.md: the table" in out
    folder = tmp_path / "report"
    rows = json.loads((folder / "report.json").read_text())
    assert [row["name"] for row in rows] == ["the composer", "one", "two", "fills"]
    assert rows[1]["nll"] == rows[2]["nll"] | {"bundle": str(world.hymn_bundle)}
    assert rows[1]["memory"]["copied"] == rows[2]["memory"]["copied"]  # the same seeds, the same draws
    assert all(row["generate_tokens_per_s"] > 0 for row in rows[1:])
    assert rows[0]["memory"]["copied"]["mean"] > 10  # the composers' row: these pieces are the training set
    gain = rows[1]["knows"]["gain"]
    assert gain["seconds"] == [1.5, 3.0]
    assert gain == rows[2]["knows"]["gain"]
    assert 0 <= rows[0]["memory"]["repeated"]["mean"] <= 1
    assert rows[0]["memory"]["from_seed"]["mean"] >= 2
    assert "3 of the composers' continuations have passages to hear, 3 in all; it needs 4" in rows[1]["frechet"]
    text = (folder / "report.md").read_text()
    for words in (
        "| one | ",
        "| the composer |",
        "3 pieces",
        "likelihood of inputs of 16 tokens, moved on by 4; ",
        f"\none: Fréchet distance could not be measured: {rows[1]['frechet']}\n",
    ):
        assert words in text
    for name in ("gain", "intervals", "rolls"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"({name}.png)" in text
    line = refused(args, tmp_path)
    assert "report/report.md exists already: give another out= or overwrite=true" in line


def test_patterns_find_runs_in_order_and_once(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"")
    found = find_bundles([str(tmp_path / "*"), str(tmp_path / "a")])
    assert [p.parent.name for p in found] == ["a", "b"]
    with pytest.raises(UserError, match="names="):
        name_bundles(found, ["one", "one"])


def test_a_row_of_the_table_says_what_was_measured_and_json_has_no_nan():
    column = np.array([0.5, np.nan])
    curve = RetentionCurve(*[column] * 9)
    row = ModelReport("x", Memory(curve, Interval(0.5, 0.25, 0.75), Interval(7, 6, 8.04)), parameters=1234)
    row.frechet = Frechet(1.5, 1, 2, floor=0.75, halved=1.8, p=0.005)
    line = table([row]).splitlines()[-1]
    apart = "1.50 (1.00 – 2.00), p 0.005; halves 1.80, noise floor 0.75"
    assert line == f"| x |  | 1,234 |  | 0.50 (0.25 – 0.75) | {apart} | 7.0 (6.0 – 8.0) |  |  |  |"
    assert row.plain()["frechet"]["floor"] == 0.75
    assert row.plain()["memory"]["retention"]["mean"] == [0.5, None]
    json.dumps(row.plain(), allow_nan=False)
