"""What goes with a melody is learned from songs, in seconds, and scored by the notes that are asked for alone."""

import pytest
import torch
from conftest import ok
from runs import config_of, fit
from songs import write_songs

from musictx.commands.evaluate import evaluate
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle
from musictx.model.header import read_header

SMALL = ["model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.d_ff=32"]
FOUR = ["model.source_voices=4", "model.target_group=4"]
SECONDS = ["model=encoder_decoder_seconds", *SMALL, "model.n_encoder_layers=1"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("songs")
    write_songs(folder / "in", 6)
    words = ["path=in", "out=store", "workers=1", "tokenizer=performance_melody", "validation_fraction=0.3"]
    assert "tokenizer performance-melody" in ok(["musictx", "prepare", "pop909", *words], folder).stdout
    return folder / "store"


def learn(store, world, out, *words):
    asked = ["objective=conditional", *SECONDS, *words, "trainer.max_steps=2", "trainer.validate_every=2"]
    return fit(config_of(world, out, "tokenizer=performance_melody", f"data.path={store}", *asked, model=[]))


def test_it_learns_and_is_scored_by_what_is_asked_for(store, world, tmp_path):
    bundle = learn(store, world, tmp_path / "run")
    header, model = read_header(bundle), load_bundle(bundle).model
    assert header.model["paced"] is True
    torch.testing.assert_close(model.pace, torch.from_numpy(Store(store).tokenizer.pace).float())
    found = evaluate(f"bundle={bundle}", f"data.path={store}", "data.segment=2048")
    pieces = Store(store).split("validation")
    notes = sum(8 * 2 for _ in pieces)  # two to each of eight chords; those of the melody do not count
    rest = sum(len(Store(store).tokenizer.apart(piece)[1]) for piece in pieces)
    assert found.tokens == rest
    assert found.per_note.mean * notes == pytest.approx(found.per_token.mean * rest)
    assert found.per_second.mean == pytest.approx(found.per_token.mean * rest / (len(pieces) * 3.98), rel=0.01)


def test_what_does_not_go_with_it(store, world, tmp_path):
    words = ["data=chorales", "tokenizer=chorale", f"data.path={world.hymn_store}", "objective=conditional"]
    with pytest.raises(ConfigError, match="^objective=conditional: chorale tokens mark"):
        fit(config_of(world, tmp_path / "a", *words, model=SECONDS))
    with pytest.raises(ConfigError, match="^clock=time: on a grid "):
        fit(config_of(world, tmp_path / "a", *words, "objective=voices", *FOUR, model=SECONDS))
    with pytest.raises(ConfigError, match="^clock=time: position=relative "):
        learn(store, world, tmp_path / "b", "model.position=relative")
    with pytest.raises(ConfigError, match="^objective=conditional: performance tokens mark"):
        fit(config_of(world, tmp_path / "c", "objective=conditional", model=SECONDS))
    assert not list(tmp_path.iterdir())
