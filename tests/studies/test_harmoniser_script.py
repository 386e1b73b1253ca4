"""studies/harmoniser.py makes a bundle that accompanies."""

import json
import sys
from pathlib import Path

import harmoniser
import numpy as np
import pytest

import musictx
from musictx.config.app import settings
from musictx.data.corpora.jsb import prepare_jsb
from musictx.model.bundle import read_header
from musictx.music.score import Score

SIZES = ["model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_layers=1", "model.n_encoder_layers=1"]


def test_the_script_makes_a_bundle_that_accompanies_and_continues(tmp_path, monkeypatch, capsys, no_curves):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)  # chorales of different lengths, as the real file has them
    pieces = [(np.array([72, 67, 64, 48]) + rng.integers(-3, 4, (4 * n, 4))).tolist() for n in (4, 2, 3, 4)]
    splits = {"train": pieces[:2], "valid": pieces[2:3], "test": pieces[1:]}
    Path("jsb.json").write_text(json.dumps(splits))
    prepare_jsb(settings("prepare_jsb", path="jsb.json", out="store"))
    words = ["--store", "store", "--out", "o", *SIZES, "trainer.max_steps=2", "trainer.validate_every=1"]
    words += ["trainer.warmup_steps=1", "trainer.batch_size=2", "trainer.precision=32-true"]
    for more in ([], ["--test"]):
        monkeypatch.setattr(sys, "argv", ["harmoniser.py", *words, *more])
        harmoniser.main()
    assert "resuming" not in capsys.readouterr().out
    header = read_header(tmp_path / "o" / "harmoniser.safetensors")
    said = {
        split: json.loads((tmp_path / "o" / f"harmoniser-{split}.json").read_text()) for split in ("validation", "test")
    }
    assert said["validation"]["per_token"][0] == pytest.approx(header.val_nll, abs=1e-6)
    assert said["test"]["pieces"] == 3
    assert len(said["test"]["given"]) == 14
    assert header.notes["made_by"] == "studies/harmoniser.py"
    assert header.model["trained_length"] == 1024
    melody = Score(np.arange(4) * 0.5, np.arange(4) * 0.5 + 0.5, [60, 62, 64, 65], [80] * 4, 0.5)
    assert len(musictx.load("o/harmoniser.safetensors").accompany(melody)[0].voices)
