"""studies/infill.py: what it chooses on which pieces, what it then makes, and that it can be cut anywhere."""

import json
from dataclasses import asdict, replace

import bundles
import infill
import numpy as np
import pytest
import shared
import torch
from conftest import TINY
from omegaconf import OmegaConf
from strategies import score_of
from trials import trial

from musictx.config.app import settings
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.store import Piece, Store, write_store
from musictx.errors import BundleError, StoreError
from musictx.model.bundle import load_bundle, save_bundle
from musictx.model.header import read_header
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.tokenizers import build_tokenizer
from musictx.training.fit import fit

pytestmark = pytest.mark.usefixtures("no_curves")

FEW = ["trainer.max_steps=2", "trainer.validate_every=2", "trainer.batch_size=2", "trainer.lr=0.1"]


def test_a_model_too_sure_of_itself_is_brought_back(world, monkeypatch):
    model, header = load_bundle(world.hymn_bundle)
    store = Store(world.hymn_store, header.tokenizer)
    monkeypatch.setattr(infill, "TEMPERATURES", [0.5, 0.9, 1.0, 1.1, 1.2, 1.3])
    while (temperature := infill.best_temperature(model, store)) != 1.0:  # the tiny model is far from calibrated
        model = infill.divide_logits(model, temperature)
    sure = infill.divide_logits(model, 1 / 1.2)
    assert infill.nll_of(sure, store) > infill.nll_of(model, store)
    assert infill.best_temperature(sure, store) == 1.2


def test_no_piece_that_is_much_like_another_is_held_out(world, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "HELD_OUT", 3)
    tokenizer, rng = build_tokenizer("performance"), np.random.default_rng(0)
    scores = [score_of(*((k, k + 1, pitch) for k, pitch in enumerate(rng.integers(40, 90, 60)))) for _ in range(4)]
    pieces = [Piece(str(k), tokenizer.encode(score), 1.0) for k, score in enumerate([*scores, scores[1]])]
    splits = {"train": pieces, "validation": pieces[:1]}
    write_store(tmp_path / "all", tokenizer, Store(world.store).manifest.corpus, splits, [])
    store = shared.selection_store(Store(tmp_path / "all"), tmp_path / "few")
    assert [store.split(name).names for name in ("validation", "train")] == [["0", "2", "3"], ["1", "4"]]
    monkeypatch.setattr(shared, "HELD_OUT", 4)
    with pytest.raises(StoreError, match="only 3 pieces"):
        shared.selection_store(Store(tmp_path / "all"), tmp_path / "none")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script in an empty folder: 8 pieces to learn, 4 of them held out, two of its four stages."""
    rng = np.random.default_rng(3)
    chords = np.array([72, 67, 64, 48]) + rng.integers(-3, 4, (12, 8, 4))  # 12 chorales of two bars
    table = [np.repeat(chorale, 4, axis=0).tolist() for chorale in chords]
    splits = {"train": table[:8], "valid": table[8:10], "test": table[10:]}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chorales.json").write_text(json.dumps(splits))
    prepare_jsb(settings("prepare_jsb", "path=chorales.json", "out=store"))
    monkeypatch.setattr(shared, "HELD_OUT", 4)
    for name, value in {"PLAIN": ("jsb",), "GAPS": ("jsb_fill",), "TEMPERATURES": [0.9, 1.1]}.items():
        monkeypatch.setattr(infill, name, value)

    def run(*words):
        trial(infill, "--store", "store", "--out", "out", *TINY, *FEW, *words)

    return run


def test_a_temperature_of_pieces_held_out_then_a_model_of_all(script, tmp_path, monkeypatch, capsys):
    fitted = []

    def cut_in_the_second(config):
        fitted.append(config.out)
        if len(fitted) == 2:
            raise KeyboardInterrupt
        return fit(config)

    monkeypatch.setattr(bundles, "fit", cut_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        script()
    script()
    runs = ["out/compared/jsb", "out/compared/jsb_fill", "out/final/jsb", "out/final/jsb_fill"]
    assert fitted == [*runs[:2], *runs[1:]]

    official, selection = Store("store"), Store("out/selection")
    held_out = selection.split("validation").names
    assert len(held_out) == 4
    assert sorted([*held_out, *selection.split("train").names]) == official.split("train").names
    at = official.split("train").names.index(held_out[0])
    assert (selection.split("validation")[0] == official.split("train")[at]).all()
    said = {out: OmegaConf.load(tmp_path / out / "config.yaml") for out in runs}
    assert [c.data.path for c in said.values()] == ["out/selection"] * 2 + ["store"] * 2
    assert {c.trainer.keep for c in said.values()} == {"last"}
    assert said[runs[3]].init_from == "out/final/in-time.safetensors"

    model, header = load_bundle(tmp_path / "out/chorale.safetensors")
    last = load_bundle(tmp_path / runs[3] / "model.safetensors").model
    temperature, state = header.notes["calibrated"], last.state_dict()
    torch.testing.assert_close(model.state_dict()["norm.weight"] * temperature, state["norm.weight"], rtol=1e-3, atol=0)
    torch.testing.assert_close(model.state_dict()["embed.weight"], state["embed.weight"], rtol=1e-3, atol=1e-6)
    assert header.notes["fitted"].startswith("temperature on 4 training pieces, and then")
    assert (header.notes["held_out"], header.notes["made_by"]) == (held_out, "studies/infill.py")
    assert (header.objective["name"], header.model["clock"], header.model["trained_length"]) == ("infill", "time", 512)
    assert header.corpus == "JSB chorales, 16th grid"
    assert header.val_nll == pytest.approx(infill.nll_of(model, official), abs=1e-6)
    assert header.notes["val_nll_uncalibrated"] == pytest.approx(infill.nll_of(last, official), abs=1e-6)
    assert (tmp_path / "out/chorale.mid").read_bytes().startswith(b"MThd")
    assert json.loads((tmp_path / "out/chorale-validation.json").read_text())["per_token"][0] == header.val_nll
    assert not (tmp_path / "out/chorale-test.json").exists(), "test is read when it is asked for"

    made = (tmp_path / "out/chorale.safetensors").read_bytes()
    capsys.readouterr()
    script("--test")
    assert "chorale-validation.json: found, this model has read the validation split already" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/chorale-test.json").read_text())["split"] == "test"
    with pytest.raises(SystemExit, match=r"\(trainer.lr=0.2 \(was 0.1\)\)"):
        script("trainer.lr=0.2")
    assert len(fitted) == 5
    assert (tmp_path / "out/chorale.safetensors").read_bytes() == made


def test_mistakes_are_said(script, world, tmp_path):
    store = Store("store")
    splits = {name: shared.pieces_of(store, name) for name in ("train", "validation")}
    write_store(tmp_path / "two", store.tokenizer, store.manifest.corpus, splits | {"test": []}, [])
    with pytest.raises(StoreError, match="two: .*test split"):
        bundles.chorales(tmp_path / "two")
    lstm = Recurrent(RecurrentConfig(vocab_size=92, d_model=8, n_layers=1))
    header = replace(read_header(world.hymn_bundle), model={"kind": "recurrent", **asdict(lstm.config)})
    save_bundle(tmp_path / "lstm.safetensors", lstm, header)
    with pytest.raises(BundleError, match="lstm.safetensors .*Transformer"):
        infill.in_time(tmp_path / "lstm.safetensors", store.tokenizer, tmp_path / "x")
    shared.selection_store(store, tmp_path / "selection")
    with pytest.raises(StoreError, match="selection was made from another"):
        shared.selection_store(Store(world.hymn_store), tmp_path / "selection")
