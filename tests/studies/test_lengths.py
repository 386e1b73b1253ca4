"""studies/lengths.py: paths that are as long as they say, differences by length, and a trial from the command."""

import json
import sys
from pathlib import Path

import lengths
import numpy as np
import pytest
import torch

from musictx.config.app import settings
from musictx.data.corpora.jsb import prepare_jsb


def test_the_longest_paths():
    paths = {kind: [lengths.path(kind, ids) for ids in (64, 65, 4096)] for kind in lengths.KINDS}
    assert paths == {
        "LSTM": [64, 65, 4096],
        "dilated convolutions": [6, 7, 12],
        "attention, Fourier": [1, 1, 1],
        "attention, table": [1, 1, 1],
    }


def test_so_many_layers_of_convolutions_join_the_ends_and_no_fewer():
    torch.manual_seed(0)
    ids = torch.arange(64)[None]
    other = ids.clone()
    other[0, 0] = 70
    for layers, hears in ((6, True), (5, False)):
        net = lengths.Dilated(layers, width=32)
        assert torch.equal(net(ids)[:, -1], net(other)[:, -1]) is not hears


def test_the_difference_is_paired_by_length(monkeypatch):
    monkeypatch.setattr(lengths, "QUARTERS", (2, 64))
    nats, tokens = np.array([10.0, 90.0, 20.0]), np.array([10, 100, 30])
    more = {"2": (-0.5, -0.25), "64": (0.25, 0.75)}  # nats a token of each random seed, the same in all pieces
    attention = [{n: {"nats": nats + seed, "tokens": tokens} for n in more} for seed in range(2)]
    vector = [{n: {"nats": nats + k + x[k] * tokens, "tokens": tokens} for n, x in more.items()} for k in range(2)]
    found = lengths.compared({"attention": attention, "one fixed vector": vector})
    for n, (one, other) in more.items():
        mean = (one + other) / 2
        assert found["one fixed vector less attention"]["nats"][n] == pytest.approx((mean, mean, mean))
        assert found["one fixed vector less attention"]["seeds"][n] == pytest.approx([one, other])
        assert found["attention"]["seeds"][n] == pytest.approx([120 / 140, 123 / 140])
        nll = found["attention"]["nats"][n]
        assert nll.mean == pytest.approx(121.5 / 140)
        assert nll.low < nll.mean < nll.high
        assert found["one fixed vector"]["nats"][n].mean == pytest.approx(121.5 / 140 + mean)


def test_a_trial_from_the_command_writes_figures_and_picture(tmp_path, monkeypatch, no_curves):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pieces = [(np.array([72, 67, 64, 48]) + rng.integers(-3, 4, (12 * n, 4))).tolist() for n in (4, 2, 3, 4)]
    Path("jsb.json").write_text(json.dumps({"train": pieces[:2], "valid": pieces[1:], "test": pieces[:1]}))
    prepare_jsb(settings("prepare_jsb", path="jsb.json", out="store"))
    for name, few in {"QUARTERS": (2, 4), "IDS": (8, 16), "REPEATS": 2}.items():
        monkeypatch.setattr(lengths, name, few)
    words = ["lengths.py", "--store", "store", "--out", "o", "--results", "r", "--fraction", "0.005"]
    monkeypatch.setattr(sys, "argv", [*words, "model.d_model=8", "data.length=32", "trainer.batch_size=2"])
    lengths.main()
    written = Path("r/lengths.json").read_bytes()
    Path("r/lengths.json").unlink()
    monkeypatch.setattr(lengths, "trained", None)  # the second time all is known
    lengths.main()
    assert Path("r/lengths.json").read_bytes() == written
    assert len(written.splitlines()) <= 20
    found = json.loads(written)
    attention, vector, less = (
        found[form] for form in ("attention", "one fixed vector", "one fixed vector less attention")
    )
    assert attention["steps"] == vector["steps"] == 2
    assert vector["parameters"] != attention["parameters"]
    for n in ("2", "4"):
        assert less["nats"][n][0] == pytest.approx(vector["nats"][n][0] - attention["nats"][n][0])
        assert 0 < attention["nats"][n][0] < 6
        assert len(set(attention["seeds"][n])) == 2
    assert found["LSTM"]["path"] == {"8": 8, "16": 16}
    assert all(0 < low <= middle <= high for middle, low, high in found["LSTM"]["s"].values())
    assert Path("o/lengths.png").read_bytes()[:4] == b"\x89PNG"
