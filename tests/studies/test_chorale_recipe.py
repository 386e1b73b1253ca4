"""studies/chorales.py: what it chooses on which pieces, what it then makes, and that it can be cut anywhere."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import chorales
import infill
import numpy as np
import pytest
import torch
from conftest import TINY, ok
from omegaconf import OmegaConf

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.app import settings
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.store import Piece, Store
from musictx.errors import BundleError, StoreError, UserError
from musictx.model.bundle import load_bundle, read_header, save_bundle
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.transformer import Transformer
from musictx.training.fit import fit
from musictx.training.metrics import read_metrics

pytestmark = pytest.mark.usefixtures("no_curves")

SMALL = [*TINY, "trainer.batch_size=2", "trainer.lr=0.1"]
RECIPES = [chorales.Recipe(3, 2, 0.0), chorales.Recipe(4, 1, 0.1)]


@pytest.fixture
def opened(world):
    model, header = load_bundle(world.hymn_bundle)
    return model, Store(world.hymn_store, header.tokenizer)


def nll(model, store):
    return negative_log_likelihood(model, store.split("validation"), store.tokenizer, None).nll


def best_temperature(model, store):
    found = chorales.nll_by_temperature(model, store.split("validation"), store.tokenizer)
    return chorales.TEMPERATURES[int(np.argmin(found))], found


@torch.no_grad()
def test_a_model_too_sure_of_itself_is_brought_back(opened):
    model, store = opened
    for _ in range(40):  # the tiny model is far from calibrated: first to where nothing is left to do
        chorales.divide_logits(model, best_temperature(model, store)[0])
    best = nll(model, store)
    temperature, found = best_temperature(model, store)
    assert temperature == 1.0
    assert min(found) == pytest.approx(best, abs=1e-6)
    chorales.divide_logits(model, 1 / 1.2)
    assert nll(model, store) > best
    temperature, found = best_temperature(model, store)
    assert temperature == pytest.approx(1.2, abs=0.011)
    assert min(found) == pytest.approx(best, abs=1e-4)


def pieces_of(sketches):
    return [Piece(str(k), np.zeros(0, np.uint16), 1.0, np.array(x, np.uint32)) for k, x in enumerate(sketches)]


def test_no_piece_that_is_much_like_another_is_held_out():
    sketches = np.arange(24 * 64).reshape(24, 64)
    sketches[3, :7] = sketches[17, :7]  # 7 of 64 are 0.109
    sketches[4, :6] = sketches[18, :6]
    splits = chorales.hold_out(pieces_of(sketches), [])
    assert (splits.count("validation"), splits.count("train")) == (20, 4)
    assert (splits[3], splits[17]) == ("train", "train")
    assert splits == chorales.hold_out(pieces_of(sketches), [])
    sketches[4, :7] = sketches[18, :7]
    splits = chorales.hold_out(pieces_of(sketches), [])
    assert [k for k in range(24) if splits[k] == "train"] == [3, 4, 17, 18]
    sketches[5, :7] = sketches[19, :7]
    with pytest.raises(StoreError, match="only 18 training pieces"):
        chorales.hold_out(pieces_of(sketches), [])


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script in an empty folder: 8 pieces to learn, 4 of them held out while two tiny recipes are compared."""
    rng = np.random.default_rng(3)
    chords = np.array([72, 67, 64, 48]) + rng.integers(-3, 4, (12, 8, 4))  # 12 chorales of two bars
    table = [np.repeat(chorale, 4, axis=0).tolist() for chorale in chords]
    splits = {"train": table[:8], "valid": table[8:10], "test": table[10:]}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chorales.json").write_text(json.dumps(splits))
    prepare_jsb(settings("prepare_jsb", "path=chorales.json", "out=store"))
    monkeypatch.setattr(chorales, "RECIPES", RECIPES)
    monkeypatch.setattr(chorales, "HELD_OUT", 4)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["chorales.py", "--store", "store", "--out", "out", *SMALL, *words])
        chorales.main()

    return run


def test_what_is_chosen_on_pieces_held_out_is_then_made_of_all(script, tmp_path, monkeypatch, capsys):
    fitted = []

    def cut_in_the_third(config):
        fitted.append(config.out)
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return fit(config)

    monkeypatch.setattr(chorales, "fit", cut_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        script()
    script()
    names = ["compared/dropout-0-3", "compared/dropout-0-3-2", "compared/dropout-0.1-4", "compared/dropout-0.1-4"]
    assert fitted[:4] == [f"out/{name}" for name in names]

    official, selection = Store(tmp_path / "store"), Store(tmp_path / "out" / "selection")
    held_out = selection.split("validation").names
    assert (len(held_out), len(selection.split("test"))) == (4, 0)
    assert sorted([*held_out, *selection.split("train").names]) == official.split("train").names
    at = official.split("train").names.index(held_out[0])
    assert (selection.split("validation")[0] == official.split("train")[at]).all()

    found = json.loads((tmp_path / "out" / "chorale-selection.json").read_text())
    rows = found["recipes"]
    assert found["held_out"] == held_out
    assert rows[0]["nll"] <= rows[1]["nll"]
    chosen = chorales.Recipe(*(rows[0][name] for name in chorales.Recipe._fields))
    first = f"dropout-{chosen.dropout:g}-{chosen.steps}"
    ends = [first, f"{first}-{chosen.long_steps}"]
    assert [name for name in fitted if "final" in name] == [f"out/final/{end}" for end in ends]
    for number, end in enumerate(ends):
        said = [OmegaConf.load(tmp_path / "out" / kind / end / "config.yaml") for kind in ("compared", "final")]
        assert [c.data.path for c in said] == ["out/selection", "store"]
        assert [c.trainer.keep for c in said] == ["last", "last"]
        assert [c.trainer.max_steps for c in said] == [chosen[number]] * 2
        assert [c.data.length for c in said] == [(512, 1024)[number]] * 2
        read = [r for r in read_metrics(tmp_path / "out" / "final" / end / "metrics.csv") if r.get("val/nll")]
        assert [int(r["step"]) + 1 for r in read] == [chosen[number]], "official validation is read at the end alone"

    model, header = load_bundle(tmp_path / "out" / "chorale.safetensors")
    last = load_bundle(tmp_path / "out" / "final" / ends[1] / "model.safetensors").model
    assert isinstance(model, Transformer)
    assert isinstance(last, Transformer)
    torch.testing.assert_close(model.norm.weight * header.notes["calibrated"], last.norm.weight, rtol=1e-3, atol=0)
    torch.testing.assert_close(model.embed.weight, last.embed.weight, rtol=1e-3, atol=1e-6)
    assert header.notes["calibrated"] == rows[0]["temperature"]
    assert header.notes["fitted"].startswith("steps, dropout and temperature on 4 training pieces, and then")
    assert header.notes["held_out"] == held_out
    assert header.model["trained_length"] == 512
    assert header.corpus == "JSB chorales, 16th grid"
    assert header.val_nll == pytest.approx(nll(model, official), abs=1e-6)
    assert header.notes["val_nll_uncalibrated"] == pytest.approx(nll(last, official), abs=1e-6)
    assert (tmp_path / "out" / "chorale.mid").read_bytes().startswith(b"MThd")
    said = json.loads((tmp_path / "out" / "chorale-validation.json").read_text())
    assert said["per_token"][0] == pytest.approx(header.val_nll, abs=1e-6)
    assert not (tmp_path / "out" / "chorale-test.json").exists(), "test is read when it is asked for"

    trained, made = len(fitted), (tmp_path / "out" / "chorale.safetensors").read_bytes()
    script("--test")
    assert json.loads((tmp_path / "out" / "chorale-test.json").read_text())["split"] == "test"
    chorales.score(tmp_path / "out" / "chorale.safetensors", official, "test", Path("out/chorale-test.json"))
    assert "out/chorale-test.json: kept, this model has read the test split already" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"\(trainer.lr=0.2 \(was 0.1\)\)"):
        script("trainer.lr=0.2")
    assert len(fitted) == trained
    assert (tmp_path / "out" / "chorale.safetensors").read_bytes() == made

    few = ["trainer.max_steps=2", "trainer.warmup_steps=1", "trainer.validate_every=2"]
    monkeypatch.setattr(infill, "COMMON", [*chorales.COMMON, *few])
    monkeypatch.setattr(sys, "argv", ["infill.py", "--store", "store", "--chorales", "out", "--out", "fill", *SMALL])
    infill.main()
    stages = [f"fill/{kind}/{stage}" for kind in ("compared", "final") for stage in infill.STAGES]
    assert fitted[trained:] == stages  # the models of chorales.py are there
    taught = read_header(tmp_path / "fill/chorale.safetensors")
    assert (taught.objective["name"], taught.model["clock"]) == ("infill", "time")
    assert taught.notes["made_by"] == "studies/infill.py"
    begun = OmegaConf.load(tmp_path / "fill/final/jsb_fill/config.yaml")
    assert (begun.init_from, begun.objective_settings.plain) == ("fill/final.safetensors", 0.4)


def test_mistakes_are_said(script, world, tmp_path):
    for share in ("0", "1.5", "nan"):  # the door of all studies that have this option
        with pytest.raises(UserError, match=f"^--fraction {float(share)}: "):
            script("--fraction", share)
    ok(["data_prep/folder.py", f"path={world.hymns}", "out=two", "tokenizer=chorale", "test_fraction=0"], tmp_path)
    with pytest.raises(StoreError, match="^two: .*test split"):
        script("--store", "two")
    lstm = Recurrent(RecurrentConfig(vocab_size=92, d_model=8, n_layers=1))
    header = replace(read_header(world.hymn_bundle), model={"kind": "recurrent", **asdict(lstm.config)})
    save_bundle(tmp_path / "lstm.safetensors", lstm, header)
    with pytest.raises(BundleError, match="lstm.safetensors .*Transformer"):
        chorales.load(tmp_path / "lstm.safetensors")
    chorales.selection_store(Store(tmp_path / "store"), tmp_path / "out" / "selection")
    with pytest.raises(StoreError, match="out/selection"):
        chorales.selection_store(Store(world.hymn_store), tmp_path / "out" / "selection")
