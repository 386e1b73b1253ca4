"""studies/report.py: pages have the figures of `studies/results.json`, as it writes them, and no others of these."""

import importlib
import json
import re
import shlex
import sys
from argparse import ArgumentParser
from pathlib import Path

import pages
import pytest
import report
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from musictx.config.app import settings
from musictx.errors import UserError

ROWS = report.all_rows()
CLAIMS = [row for row in ROWS if "says" in row]
KEYED = [row for row in ROWS if "key" in row]
SPEED = {"key": "fast", "page": "speed", "claim": "fast", "figure": 5.25, "low": 4.0, "high": 6.0, "unit": "tokens/s"}


def test_the_script_would_change_no_page():
    old = [path for path, text in pages.pages_of(ROWS).items() if path.read_text() != text]
    assert old == [], "run python studies/report.py"
    rows = [{name: x for name, x in row.items() if name not in (*report.WRITTEN, "commit")} for row in ROWS]
    new = [{name: x for name, x in row.items() if name != "commit"} for row in report.collected()]
    assert [row["claim"] for row in new if row not in rows] == [], "run python studies/report.py"


def test_a_person_can_read_all_claims():
    assert 20 < len(CLAIMS) <= 40
    assert all("key" in row and len(row["says"]) < 160 for row in CLAIMS)
    lines = [line for line in pages.claims_page(ROWS).splitlines() if line.startswith("| <a ")]
    assert len(lines) == len(CLAIMS)
    for line in lines:
        figures = re.findall(r"\| \[-?[\d,.]+\]\(results/\w+\.md#[\w-]+\)[^|]* \| ([^|]+) \|", line)
        assert len(figures) == 1
        assert figures[0] == "–" or re.fullmatch(r"-?[\d,.]+ to -?[\d,.]+", figures[0])


def test_every_row_is_on_one_page_and_every_key_is_an_anchor_there():
    assert {row["page"] for row in ROWS} == set(pages.TITLES)
    assert len({row["key"] for row in KEYED}) == len(KEYED)
    for name in pages.TITLES:
        anchors = re.findall(r'id="([\w-]+)"', pages.subject_page(name, [row for row in ROWS if row["page"] == name]))
        assert sorted(anchors) == sorted(row["key"] for row in KEYED if row["page"] == name)
    anchors = re.findall(r'id="([\w-]+)"', pages.claims_page(ROWS))
    assert sorted(anchors) == sorted(row["key"] for row in CLAIMS)


def test_a_figure_is_written_into_its_link_alone():
    text = "5 of 7: [1](docs/results/speed.md#fast), [1 (0 to 2)](speed/results/speed.md#fast), [2](words.md#fast)"
    after = (
        "5 of 7: [5.25](docs/results/speed.md#fast), [5.25 (4 to 6)](speed/results/speed.md#fast), [2](words.md#fast)"
    )
    assert pages.filled(text, [SPEED]) == after
    assert pages.filled("[1](results.md#fast)", [SPEED | {"says": "Fast", "digits": 1}]) == "[5.2](results.md#fast)"
    words = "[by kind](results/speed.md#fast)"
    assert pages.filled(words, [SPEED]) == words


@given(st.floats(-1e6, 1e6), st.none() | st.integers(0, 4), st.sampled_from(["nats a token", "tokens/s", ""]))
def test_a_changed_row_changes_the_page(value, digits, unit):
    row = SPEED | {"figure": value, "unit": unit} | ({} if digits is None else {"digits": digits})
    page = pages.filled("[7](results/speed.md#fast)", [row])
    shown = float(page.partition("]")[0].removeprefix("[").replace(",", ""))
    if digits is None:
        digits = 3 if unit == "nats a token" else 0
    assert abs(shown - value) <= max(0.5 * 10**-digits, abs(value) * 0.005) * 1.001
    assert pages.filled(page, [row]) == page  # what it writes, it finds again
    assert pages.filled(page, [row | {"figure": value + 2 + abs(value)}]) != page


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("[1](results/speed.md#slow)", "has no row with this key"),
        ("[1](results/gpu.md#fast)", "is on results/speed.md"),
        ("[1](results.md#fast)", "is on results/speed.md"),
        ("[1 (0 to 2)](results/speed.md#fast)", "has no interval"),
    ],
)
def test_a_link_to_what_is_not_there_is_refused_in_one_line(link, reason):
    with pytest.raises(UserError, match=reason) as raised:
        pages.filled(f"text {link}", [SPEED | {"low": None, "high": None}])
    assert "\n" not in str(raised.value)


def test_rows_are_those_of_the_raw_files_that_are_kept():
    rows = {row["source"]: row for row in ROWS}
    for name in ("chorale", "harmoniser", "piano"):
        for split in ("validation", "test"):
            path = f"studies/results/{name}-{split}.json"
            found = json.loads((ROOT / path).read_text())["per_token"]
            row = next(row for row in ROWS if row["source"] == path)
            assert row["key"] == f"{name}-{split}"
            assert [row["figure"], row["low"], row["high"]] == pytest.approx(found, abs=1e-6)
            words = shlex.split(row["command"])
            assert words[:3] == ["musictx", "evaluate", name]
            config = settings("evaluate", f"bundle={name}", *words[3:])
            assert config.split == split
            assert config.data.segment == (2048 if name == "piano" else None)
    assert len(rows) > 20


def test_every_row_says_where_it_is_from():
    for row in ROWS:
        assert row["claim"]
        known = ("arXiv", "no raw file")
        in_the_repository = (ROOT / row["source"]).is_file() or (ROOT / "studies/results" / row["source"]).is_file()
        assert row["commit"] or in_the_repository or any(x in row["source"] for x in known)
        if pages.is_history(row) and row["command"] and row["commit"]:
            assert f"git worktree add ../at-{row['commit']} {row['commit']} " in pages.command_of(row)


def commands_of_today():
    rows = [row for row in ROWS if row["command"] and not pages.is_history(row)]
    return sorted({row["command"] for row in rows if "studies/" in row["command"]})


@pytest.mark.parametrize("command", commands_of_today())
def test_the_study_can_read_the_command_of_a_row(command, monkeypatch):
    script, *words = shlex.split(command.partition("python ")[2])
    study, read = importlib.import_module(Path(script).stem), ArgumentParser.parse_args

    def read_alone(parser, words=None):
        read(parser, words)
        raise InterruptedError

    monkeypatch.setattr(ArgumentParser, "parse_args", read_alone)
    monkeypatch.setattr(sys, "argv", [script, *words])
    with pytest.raises(InterruptedError):
        study.main()
