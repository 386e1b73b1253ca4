"""The table of the JSB chorales: what it trains, keeps and reports."""

import json
import sys
from dataclasses import replace

import jsb
import numpy as np
import pytest

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.compare import compare
from musictx.config.app import settings
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.store import Store
from musictx.generate.open_bundle import open_bundle

TINY = ["model.d_model=16", "model.n_layers=1", "data.length=32", "trainer.batch_size=2"]
TINY += ["trainer.sample_every=null", "trainer.precision=32-true"]
LEARNED = ["model.position=learned", "model.max_positions=1024", "data.segment=1024", "model.n_heads=2"]
MODELS = {
    "rnn": (["model=rnn", *TINY], (1e-2,)),
    "learned": ([*TINY, *LEARNED], (1e-2,)),
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The script on chorales of 1,120 ids, with two tiny models."""
    rng = np.random.default_rng(3)
    chords = np.array([72, 67, 64, 48]) + rng.integers(-3, 4, (8, 70, 4))
    pieces = [np.repeat(chorale, 4, axis=0).tolist() for chorale in chords]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jsb.json").write_text(json.dumps({"train": pieces[:4], "valid": pieces[4:], "test": []}))
    prepare_jsb(settings("prepare_jsb", "path=jsb.json", "out=store"))
    monkeypatch.setattr(jsb, "MODELS", MODELS)
    short = {"seed_seconds": 2.4, "length_seconds": 2.4, "span_seconds": 2.4, "seed_gain": False}
    monkeypatch.setattr(jsb, "compare", lambda config: compare(replace(config, **short)))

    def run(*words):
        usual = [
            "--store",
            "store",
            "--out",
            "out",
            "--steps",
            "3",
            "--random-seeds",
            "2",
            "--pieces",
            "2",
            "--json",
            "t.json",
        ]
        monkeypatch.setattr(sys, "argv", ["jsb.py", *usual, *words])
        jsb.main()
        return [json.loads((tmp_path / name).read_text()) for name in ("t.json", "out/report/report.json")]

    return run


def test_beside_learned_positions_all_models_read_inputs_of_their_length(table, tmp_path):
    kept, report = table()
    assert {len(ids) for ids in Store(tmp_path / "store").split("validation")} == {1120}
    told = {row["name"]: row["nll"]["per_token"]["mean"] for row in report[1:]}
    for name, row in kept.items():
        assert len(row["nll"]) == 2
        assert list(row["search"]) == ["0.01"]
        bundle = tmp_path / f"out/{name}-{row['lr']:g}-0-3/model.safetensors"
        opened = open_bundle(bundle)
        split = Store(tmp_path / "store").split("validation")
        cut = negative_log_likelihood(opened.model, split, opened.tokenizer, 1024, 4096)
        assert told[name] == pytest.approx(cut.per(cut.tokens_of).mean, abs=1e-5)
