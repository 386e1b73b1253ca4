"""Which passages of new music a corpus has."""

import re
from dataclasses import asdict, replace
from pathlib import Path

import mido
import numpy as np
import pytest
from conftest import ok, refused

from musictx.analysis.embedding import Embedder
from musictx.analysis.repeats import Provenance
from musictx.analysis.similarity import Neighbours, piece_names
from musictx.data.store import Piece, Store, write_store
from musictx.generate.continuation import Continuation
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import save_bundle
from musictx.model.header import read_header
from musictx.model.tensors import tensors_hash
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.music.score import Score


def test_a_training_piece_is_named_in_words_that_fit_into_a_midi_file(world):
    known, score = Provenance(Store(world.store)), known_piece(world)
    assert f": {len(score)} notes at {score.onset_s[0]:.1f} to " in known.text(score)
    assert f", in {known.names[0]} from {score.onset_s[0]:.1f} s on" in known.text(score)
    assert known.text(Score.empty()).endswith(": none")
    known.names = [f"Dvořák\n{name}" for name in known.names]
    assert "in Dvořák\\n" in known.text(score)
    assert known.text(score).isprintable()


def known_piece(world):
    store = Store(world.store)
    return store.tokenizer.decode(np.asarray(store.split("train")[0]))


def test_each_file_says_what_it_shares(world, tmp_path):
    words = ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "length_seconds=2", "out=o"]
    done = ok([*words, f"known_store={world.store}", "variations=2"], tmp_path)
    for file in sorted((tmp_path / "o").iterdir()):
        (said,) = [m.text for track in mido.MidiFile(file).tracks for m in track if m.type == "text"]
        assert said.startswith("longest runs shared with ")
        assert f"o/{file.name}: {said}\n" in done.stdout
    plain = ok([*words[:-1], "out=p", "variations=2"], tmp_path)
    assert "shared with" not in plain.stdout


@pytest.fixture(scope="module")
def heard(world, tmp_path_factory):
    """A folder with a model of two layers, and `musictx similar` of the store by it."""
    folder, header = tmp_path_factory.mktemp("heard"), read_header(world.bundle)
    config = TransformerConfig(header.model["vocab_size"], 16, 2, 2, 32)
    save_bundle(folder / "ear", Transformer(config), replace(header, model={"kind": "transformer", **asdict(config)}))
    words = ["musictx", "generate", "bundle=ear", f"seed_midi={world.seed}", "length_seconds=9"]
    words.append(f"known_store={world.store}")
    before = ok([*words, "out=before"], folder).stdout
    ok(["musictx", "similar", "bundle=ear", f"midi={world.seed}", f"store={world.store}", "out=o"], folder)
    return folder, before, ok([*words, "out=after"], folder).stdout


def test_the_nearest_passages_are_said_once_the_store_was_heard(heard, world):
    folder, before, after = heard
    (file,) = (folder / "after").iterdir()
    (said,) = [m.text for track in mido.MidiFile(file).tracks for m in track if m.type == "text"]
    shared, near = said.split("; nearest passages as the model hears them, 1 is the same: ")
    assert any(f" of {name}, " in near for name in piece_names(Store(world.store)))
    assert f"after/{file.name}: {said}\n" in after
    assert f"before/{file.name}: {shared}\n" in before
    assert f"store={world.store} bundle=ear` once\n" in before
    assert "once" not in after
    (begin,) = re.findall(r"new music from ([\d.]+) s on", after)
    assert min(float(at) for at in re.findall(r"([\d.]+) s is like", near)) >= float(begin) - 0.1  # as rounded


def test_a_piece_of_the_store_is_nearest_to_itself(heard, world, monkeypatch):
    monkeypatch.chdir(heard[0])
    opened, store = open_bundle(Path("ear")), Store(world.store)
    near = Neighbours(store, Embedder(opened.model, opened.tokenizer), tensors_hash(Path("ear")))
    name = store.split("train").names[0]  # whose first note comes after half a second
    assert f" 0.5 s is like 0.0 s of {name}, 0.9" in near.text(known_piece(world))
    assert near.text(Score.empty()) == ""


def test_new_notes_are_those_of_the_gap_or_after_the_seed(world):
    score = known_piece(world)
    assert len(Continuation(score, new_from_s=1e9).new_notes) == 0
    assert len(Continuation(score, new_from_s=0.0).new_notes) == len(score)
    assert len(Continuation(score, 0.0, is_new=np.arange(len(score)) < 5).new_notes) == 5


def test_a_store_without_two_notes_is_refused_before_the_model_opens(world, tmp_path):
    store = Store(world.store)
    one = Piece("one", store.tokenizer.encode(Score([0.0], [1.0], [60], [80])), 1.0)
    write_store(tmp_path / "one", store.tokenizer, store.manifest.corpus, {"train": [one], "validation": [one]}, [])
    words = ["musictx", "generate", "bundle=nowhere", f"seed_midi={world.seed}", "known_store=one"]
    assert refused(words, tmp_path).startswith("error: 1 training piece ")
    said = "error: nothing is not a token store (no manifest.json): make one with musictx prepare"
    assert refused([*words, "known_store=nothing"], tmp_path) == said
