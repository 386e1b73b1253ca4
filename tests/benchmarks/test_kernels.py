"""benchmarks/kernels.py: the shipped tunings, compiled for cards that are not here."""

import json
import sys

import pytest
from conftest import ROOT, run

from musictx.model.attention.triton_tuning import tuning_for

pytest.importorskip("triton", reason="the package triton is not installed")
import kernels
from kernels import CARDS, KernelUse, line

SCRIPT = "benchmarks/kernels.py"
SHIPPED = json.loads((ROOT / "studies" / "results" / "kernels.json").read_text())
SAID = {"forward": 0, "queries": 1, "queries, deterministic": 1, "keys": 2, "table, deterministic": 3}
WIDTH = {"bfloat16": 2, "float32": 4}
FITTING = KernelUse(86, "bfloat16", 128, "keys", 32, 8, 2, 172, 0, 53504, 101376)


def test_the_default_tuning_fits_the_card(tmp_path):
    """One card, one precision, one size of heads; `make kernels` compiles for all."""
    words = ["--cards", 90, "--dtypes", "bfloat16", "--d-heads", 128, "--json", "k.json"]
    done = run([SCRIPT, *words], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads((tmp_path / "k.json").read_text())
    rows = [KernelUse(**row) for row in made["rows"]]
    assert {row.kernel for row in rows} == {*SAID}
    assert len(rows) == 5
    for row in rows:
        assert (row.capability, row.dtype, row.d_head) == (90, "bfloat16", 128)
        assert 0 < row.shared_bytes <= 232448, row
        assert 0 < row.registers <= 255, row
        assert line(row) in done.stdout
        assert (row.tile, row.warps, row.stages) == tuning_for(90, 232448, 128, 2)[SAID[row.kernel]], row
    spilled = sum(row.spilled_bytes > 0 for row in rows)
    assert f"5 kernels compiled: 5 fit the shared memory of their card, {spilled}" in done.stdout
    if made["triton"] == SHIPPED["triton"]:
        shipped = [r for r in SHIPPED["rows"] if (r["capability"], r["dtype"], r["d_head"]) == (90, "bfloat16", 128)]
        assert made["rows"] == shipped


def test_the_published_table_is_of_the_tunings_that_are_shipped_and_all_fit():
    rows = [KernelUse(**row) for row in SHIPPED["rows"]]
    assert len(rows) == 6 * 2 * 4 * 5
    for row in rows:
        limit = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}[row.capability]
        launch = tuning_for(row.capability, limit, row.d_head, WIDTH[row.dtype])[SAID[row.kernel]]
        assert (row.tile, row.warps, row.stages) == launch, row
        assert row.shared_limit == limit
        assert row.shared_bytes <= limit, row
        assert row.spilled_bytes <= 100, row  # as triton_tuning.py says
    assert set(CARDS) == {row.capability for row in rows}


@pytest.mark.parametrize(
    ("interpret", "status", "said"), [("0", 1, "DOES NOT FIT"), ("1", 2, "error: with TRITON_INT")]
)
def test_a_misfit_and_what_cannot_compile_end_with_a_status(interpret, status, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TRITON_INTERPRET", interpret)
    monkeypatch.setattr(kernels, "measure", lambda *_: [FITTING._replace(shared_bytes=101377)])
    monkeypatch.setattr(sys, "argv", [SCRIPT, "--cards", "86", "--json", str(tmp_path / "k.json")])
    with pytest.raises(SystemExit) as ended:
        kernels.main()
    assert ended.value.code == status
    assert said in "".join(capsys.readouterr())
    assert (tmp_path / "k.json").exists() == (interpret == "0")  # the table of misfits is kept
    (tmp_path / "k.json").write_text("mine")
    with pytest.raises(SystemExit):
        kernels.main()
    assert "k.json exists already" in capsys.readouterr().err
    assert (tmp_path / "k.json").read_text() == "mine"
