"""studies/report.py: docs/results.md is what it writes, and the pages state no other figures."""

import importlib
import json
import re
import shlex
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest
import report
from conftest import ROOT

OTHER = r" ?(?:s\b|MB|%|million param|million tok|hours|Hz)"  # sizes, lengths and versions are no results
DECIMAL = re.compile(rf"(?<![\w.,/:-])-?\d+\.\d+(?![\w.]*\d|{OTHER})")


def stated(text):
    """The decimal numbers of a page's sentences, and the speeds of its table."""
    speeds = [line.split("|")[2:] for line in text.splitlines() if re.match(r"\|.*tokens/s \|", line)]
    text = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|Python \S+|(?m:^ {4}[^\n]*$)", " ", text, flags=re.DOTALL)
    found = set(DECIMAL.findall(text))
    return found | {
        number for cells in speeds for number in re.findall(r"(?<![\w.-])\d[\d,]*(?![\w.-])", "|".join(cells))
    }


def test_the_page_is_what_the_script_writes():
    page = report.page(report.all_rows())
    assert (ROOT / "docs/results.md").read_text() == page, "run python studies/report.py"
    assert len(page.splitlines()) <= 220
    rows = [row | {"commit": None} for row in report.all_rows()]
    assert all(row in rows for row in report.collected()), "run python studies/report.py"


@pytest.mark.parametrize("name", ["README.md", "docs/researchers.md", "docs/models.md", "docs/training.md"])
def test_a_page_states_only_figures_that_are_rows(name):
    text = (ROOT / name).read_text()
    if name == "docs/models.md":
        text = text.partition("## The piano model")[0]  # tests/test_packaged.py has its figures
    known = [value for row in report.all_rows() for key in ("figure", "low", "high") if (value := row[key]) is not None]
    numbers = stated(text)
    assert len(numbers) > 5
    for number in numbers:
        digits = len(number.partition(".")[2])
        assert number in {f"{value:,.{digits}f}" for value in known}, number


def test_the_chorale_comparison_states_its_own_figures():
    """A number of three digits is easily that of another row."""
    found = json.loads((ROOT / "studies/results/baselines/chorales-test.json").read_text())
    known = {f"{x:.3f}" for row in found.values() for each in row.values() if isinstance(each, list) for x in each}
    page = (ROOT / "docs/researchers.md").read_text().partition("- **Chorales**")[2].partition("- **Sines**")[0]
    assert {number for number in stated(page) if len(number) == 5} <= known | {x.lstrip("-") for x in known}
    rows = {row["claim"]: row["figure"] for row in report.all_rows()}
    small = [figure for claim, figure in rows.items() if claim.startswith("sines of size 0.02, chorales")]
    sines = (ROOT / "docs/researchers.md").read_text().partition("- **Sines**")[2].partition("- **Piano**")[0]
    paper = rows["Music Transformer paper, JSB chorales, validation: absolute positions"]
    whole = rows["sines 1024, validation: whole pieces"]
    assert re.findall(r"0\.\d{3}", sines) == [f"{x:.3f}" for x in (small[0], whole, min(small[1:]), paper)]
    for kind, text in {
        "Fourier": "Fourier takes ",
        "RoPE": "RoPE ",
        "LSTM": "the LSTM ",
        "table": "the table ",
    }.items():
        assert f"{text}{found[f'{kind} 256']['fresh'][0]:.3f}" in " ".join(page.split())
    for kind, text in {"table": "the table of 1,024 saves ", "RoPE": "RoPE ", "LSTM": "the plain LSTM "}.items():
        assert f"{text}{found[f'{kind} 1024']['gain against a stranger, part 6'][0]:.3f}" in " ".join(page.split())


def test_the_piano_comparison_states_its_own_figures():
    found = json.loads((ROOT / "studies/results/baselines/piano-test.json").read_text())
    page = (ROOT / "docs/researchers.md").read_text().partition("- **Piano**")[2].partition("- Motifs")[0]
    shown = ("LSTM 256", "LSTM 1024", "LSTM 2048", "Fourier 2048", "RoPE 2048", "table 2048", "sines 2048")
    figures = [f"{found[name]['fresh'][0]:.3f}" for name in (*shown, "LSTM 2048, as many ids")]
    last = max(row["gain against a stranger, part 6"][0] for row in found.values())
    reset = [found[name]["gain against a reset, part 1"][0] for name in ("table 2048", "LSTM 2048")]
    assert re.findall(r"\d\.\d{3}", page) == [*figures, *(f"{x:.3f}" for x in (last, *reset))]
    assert all(row["gain against a reset, part 6"][1] <= 0 for row in found.values())


def test_rows_are_those_of_the_raw_files_that_are_kept():
    rows = {row["source"]: row for row in report.all_rows()}
    for name in ("chorale", "harmoniser", "piano"):
        for split in ("validation", "test"):
            path = f"studies/results/{name}-{split}.json"
            found = json.loads((ROOT / path).read_text())["per_token"]
            row = next(row for row in report.all_rows() if row["source"] == path)
            assert [row["figure"], row["low"], row["high"]] == pytest.approx(found, abs=1e-6)
    assert len(rows) > 20


def test_every_row_says_where_it_is_from():
    for row in report.all_rows():
        assert row["claim"]
        assert row["source"]
        known = ("arXiv", "no raw file")
        in_the_repository = (ROOT / row["source"]).is_file() or (ROOT / "studies/results" / row["source"]).is_file()
        assert row["commit"] or in_the_repository or any(x in row["source"] for x in known)


def commands_of_today():
    rows = [row for row in report.all_rows() if row["command"] and not report.is_older(row)]
    return sorted({row["command"] for row in rows if "python studies/" in row["command"]})


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
