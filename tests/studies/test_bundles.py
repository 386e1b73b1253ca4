"""studies/bundles.py: a file's weights and header, and a split that equal tensors read once; studies/harmoniser.py."""

import json
from functools import partial
from pathlib import Path

import bundles
import harmoniser
import numpy as np
import pytest
import torch
from trials import trial

import musictx
from musictx.commands.evaluate import file_hash
from musictx.config.app import settings
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.store import Store
from musictx.errors import BundleError
from musictx.model.bundle import add_notes, load_bundle
from musictx.model.header import read_header
from musictx.music.score import Score

SIZES = ["model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_layers=1", "model.n_encoder_layers=1"]


def test_a_header_may_change_and_no_split_is_read_again(world, tmp_path, capsys):
    bundle, results, store = tmp_path / "piano.safetensors", tmp_path / "results", Store(world.store)
    results.mkdir()
    model, header = load_bundle(world.bundle)
    figures = results / "piano-validation.json"

    def make():
        bundles.write_bundle(bundle, model, header, store, made_by="me")
        measure = partial(bundles.evaluated, bundle, store, 2048)
        bundles.score_all(bundle, store, results, "piano", False, measure)
        return json.loads(figures.read_text()), capsys.readouterr().out

    first, printed = make()
    placed, said = load_bundle(bundle)
    for name, x in placed.state_dict().items():
        torch.testing.assert_close(x, model.state_dict()[name].half().float())
    assert bundle.stat().st_size < 0.6 * world.bundle.stat().st_size
    corpus = store.manifest.corpus
    assert (said.corpus, said.licence, said.notes["made_by"]) == (corpus.name, corpus.licence, "me")
    assert (said.model, said.val_nll) == (header.model, first["per_token"][0])
    assert [path.name for path in results.iterdir()] == [figures.name]
    assert (first["segment"], first["weights"], first["bundle_sha256"]) == (2048, "float32", file_hash(bundle))
    assert "found" not in printed
    add_notes(bundle, seed_guidance=0.5)
    again, printed = make()
    assert printed.count(": found") == 2
    assert again == first | {"bundle_sha256": file_hash(bundle)} != first
    assert read_header(bundle).seed_guidance == 0.5
    model.load_state_dict({name: x * 2 for name, x in model.state_dict().items()})
    made = bundle.read_bytes()
    with pytest.raises(BundleError, match=r"piano\.safetensors .*other weights"):
        make()
    assert bundle.read_bytes() == made


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
        trial(harmoniser, *words, *more)
    assert "resuming" not in capsys.readouterr().out
    header = read_header(tmp_path / "o/harmoniser.safetensors")
    validation, test = (json.loads(Path(f"o/harmoniser-{split}.json").read_text()) for split in ("validation", "test"))
    assert validation["per_token"][0] == pytest.approx(header.val_nll, abs=1e-6)
    assert (test["split"], test["pieces"], len(test["given"])) == ("test", 3, 14)
    assert header.notes["made_by"] == "studies/harmoniser.py"
    assert header.model["trained_length"] == 1024
    melody = Score(np.arange(4) * 0.5, np.arange(4) * 0.5 + 0.5, [60, 62, 64, 65], [80] * 4, 0.5)
    assert len(musictx.load("o/harmoniser.safetensors").accompany(melody)[0].new_notes)
