"""studies/pictures.py: the points that it draws are those of the rows and of the raw file, and the pages have them."""

from typing import Any

import about_pages
import numpy as np
import pages
import pictures
import pytest
import report
from conftest import ROOT
from matplotlib.colors import to_hex
from matplotlib.image import imread
from trials import trial

from musictx.errors import UserError

ROWS = report.all_rows()
TITLE = "Kinds of model and training windows on {}: nats a token"


def cell(line, mean, music="chorales", column=pictures.COLUMN):
    return {
        "table": TITLE.format(music),
        "line": line,
        "column": column,
        "figure": mean,
        "low": mean - 0.1,
        "high": mean + 0.2,
    }


def dots(axes, colour, filled=True):
    """(x, y) of the single marks of one colour, from the top."""
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1 and to_hex(line.get_color()) == colour]
    marks = [line for line in marks if (to_hex(line.get_markerfacecolor()) == colour) == filled]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in marks]


def xy(line):
    """(N, 2) the points of a line."""
    return np.stack([np.asarray(line.get_xdata()), np.asarray(line.get_ydata())], 1)


def test_a_point_is_a_kind_and_a_window_of_one_music_in_equal_time():
    rows = [
        cell("LSTM 256", 0.5),
        cell("LSTM, attention 256", 0.6),  # no kind of model now
        cell("table 1024", 0.4),
        cell("table 1024", 3.4, "piano"),
        cell("table 256, as many ids", 0.3),
        cell("table 256", 0.2, column="validation: whole pieces"),
        {"page": "likelihood", "claim": "no table"},
    ]
    assert pictures.points(rows, "chorales") == [
        ("LSTM", 256, 0.5, 0.4, 0.7),
        ("table", 1024, 0.4, 0.4 - 0.1, 0.4 + 0.2),
    ]
    with pytest.raises(UserError, match="has no table of kinds on jazz"):
        pictures.points(rows, "jazz")
    with pytest.raises(UserError, match="no row with the key gone"):
        pictures.keyed(rows, "gone")


@pytest.mark.parametrize(("panel", "music"), enumerate(pictures.MUSIC))
def test_the_picture_of_kinds_has_every_row_with_its_interval_and_every_paper(panel, music):
    axes = pictures.kinds(ROWS).axes[panel]
    _, ours, papers = pictures.MUSIC[music]
    found = {tuple(map(float, line.get_xdata())) for line in axes.lines}
    own = [row for row in ROWS if row.get("key") == ours]
    of = [row for row in ROWS if row.get("table", "").startswith(TITLE.format(music).partition(" nats")[0])]
    of = [row for row in of if row["column"] == pictures.COLUMN and "as many ids" not in row["line"]]
    of = [row for row in of if not row["line"].startswith("LSTM, attention ")]
    assert len(of) == {"chorales": 14, "piano": 7}[music]
    for row in own + of:
        assert {(row["figure"],), (row["low"], row["high"])} <= found
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [
        pictures.INSIDE,
        *(name for kind, name in pictures.KINDS.items() if kind in {x[0] for x in pictures.points(ROWS, music)}),
    ]
    for key in papers:
        row = next(row for row in ROWS if row.get("key") == key)
        assert (row["figure"], row["figure"]) in found
        assert any(text.get_text().endswith(f", {pages.said(row)}") for text in axes.texts)


def test_waits_are_shares_of_passages_and_copies_have_a_median_and_a_longest():
    def of(still, copied, most):
        return {"still 3 s": still, "copied of training": copied, "most copied of training": most}

    each = {"continuations": 120, "drawn": of(6, 9.5, 30), "true": of(10, 8.0, 20)}
    found = {"draws": 3, "seconds": 30.0, "piano, default": {"pop, whole": each, "all": each, "files": {"x": 1}}}
    waits, copies = pictures.waits_and_copies(found).axes
    assert [x for x, _ in dots(waits, pictures.OURS)] == [5.0]
    assert [x for x, _ in dots(waits, pictures.COMPOSERS)] == [25.0]
    assert [x for x, _ in dots(copies, pictures.OURS)] == [9.5]
    assert [x for x, _ in dots(copies, pictures.OURS, filled=False)] == [30]
    assert [x for x, _ in dots(copies, pictures.COMPOSERS, filled=False)] == [20]
    assert [label.get_text() for label in waits.get_yticklabels()] == ["POP909, whole piece"]


def test_seed_gain_has_the_kinds_that_have_all_parts_of_the_window():
    parts = {f"gain against a stranger, part {n}": [0.1 * n, 0.1 * n - 0.05, 0.1 * n + 0.05] for n in pictures.PARTS}
    none = parts | {"gain against a stranger, part 6": None}
    found: dict[str, dict[str, Any]] = {
        "chorales": {"LSTM 1024": parts, "RoPE 1024": none, "table 256": parts},
        "piano": {"sines 2048": parts},
    }
    chorales, piano = pictures.seed_gain(found).axes
    (line,), (other,) = ([xy(each) for each in axes.lines[:-1]] for axes in (chorales, piano))
    assert np.allclose(line, [(2.4 * (n - 0.5), 0.1 * n) for n in pictures.PARTS])
    assert np.allclose(other[:2, 0], [2.5, 7.5])


def test_sampling_has_the_median_and_all_turns_of_one_row():
    def row(name, seconds, failed=""):
        return {"name": name, "tokens": 10, "seconds": seconds, "failed": failed}

    rows = [row("ours, 1 row after 128 ids", [1, 2, 5]), row("ours, 1 row after 2,048 ids", [4, 5, 10])]
    rows += [row("ours, 4 rows after 128 ids", [9]), row("theirs, 1 row after 128 ids", [1], "no memory")]
    (axes,) = pictures.sampling({"where": "a processor, torch 2", "rows": rows}).axes
    line, *turns = (xy(each).tolist() for each in axes.lines)
    assert line == [[128, 5], [2048, 2]]
    assert turns == [[[128, 2], [128, 10]], [[2048, 1], [2048, 2.5]]]
    assert axes.get_title() == "a processor"


def test_the_pictures_of_the_pages_are_those_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trial(pictures, "--out", "o")
    made = sorted(path.name for path in (tmp_path / "o").glob("*.png"))
    assert made == sorted(pictures.pictures())
    for name in made:
        new, old = imread(tmp_path / "o" / name), imread(ROOT / "docs/results" / name)
        assert new.shape == old.shape
        assert np.abs(new - old).max() < 0.05, "run python studies/pictures.py, and copy the pictures to docs/results"
        assert sum(f"]({name})" in text for text in about_pages.ABOUT.values()) == 1
