"""studies/control.py: its measures by hand, what it asks, and the whole of it on a tiny model."""

import json

import control
import numpy as np
import pytest
from control import ASKED, LENGTH_S, asked_of, obeyed, paired, progression, surprise
from hypothesis import given
from hypothesis import strategies as st
from strategies import score_of, scores
from trials import trial

from musictx.data.store import Piece, Store, write_store
from musictx.errors import UserError
from musictx.generate.control import Control
from musictx.generate.open_bundle import open_bundle
from musictx.music.harmony import LETTERS
from musictx.music.score import Score

KEYS = ["C minor", "G minor", "Eb minor", "B major", "D major", "Eb minor"]  # of the first six pieces


@pytest.mark.parametrize(
    ("name", "value", "share"),
    [
        ("key", "C major", 0.8),
        ("key", "Db", 0.8),
        ("key", "F# minor", 0.4),
        ("chords", "0 C, 2 Dm, 10", 0.6),  # a C that rings into Dm is outside from then on
        ("register", 60, 0.8),
        ("register", 80, 0.2),
        ("loudness", 64, 1.0),
        ("loudness", 63, 0.0),
        ("density", 1.25, 1.0),
        ("density", 1.3, 0.0),
        ("polyphony", 1, 1.0),
        ("polyphony", 1.6, 0.0),
    ],
)
def test_what_obeys_is_a_share_of_the_time_that_sounds_or_a_mean_that_is_near(name, value, share, monkeypatch):
    monkeypatch.setattr(control, "LENGTH_S", 4.0)
    music = score_of((0, 1, 60), (1, 3, 60), (1, 2, 61), (3, 9, 86))  # C, C, C#, D for 1, 2, 1, 1 s of 4 s
    assert obeyed(Control(**{name: value}), music) == pytest.approx(share)
    assert obeyed(Control(**{name: value}), Score.empty()) == 0.0


@given(scores(), st.integers(0, 11), st.integers(0, 11), st.sampled_from(["major", "minor"]))
def test_music_in_another_key_obeys_as_much_of_that_key(music, tonic, higher, mode):
    music = music.select((music.pitch < 116) & (music.onset_s < 12))
    keys = [Control(key=f"{LETTERS[k % 12]} {mode}") for k in (tonic, tonic + higher)]
    chords = [Control(chords=progression(k)) for k in (tonic, tonic + higher)]
    for here, there in (keys, chords):
        assert obeyed(there, music.transpose(higher)) == pytest.approx(obeyed(here, music))
        assert 0 <= obeyed(here, music) <= 1 + 1e-9


def test_what_is_asked_follows_from_the_script_alone():
    assert asked_of(6, "key") == KEYS
    assert asked_of(3, "key") == KEYS[:3], "more pieces change nothing of the first ones"
    assert progression(2) == "0 D, 2.4 Bm, 4.8 G, 7.2 A7"
    for name, most in {"key": 24, "chords": 12, "density": 4, "polyphony": 4, "register": 6, "loudness": 5}.items():
        values, counts = np.unique(asked_of(2400, name), return_counts=True)
        assert len(values) == most
        assert counts.min() > 0.6 * 2400 / most, "each as probable as any other"
    assert {*ASKED} == {"key", "chords", "density", "polyphony", "register", "loudness"}


def test_a_difference_is_of_pieces_that_have_both():
    found = paired([1.0, None, 3.0, 9.0], [0.5, 1.0, 2.5, None])
    assert found == {"difference": (0.5, 0.5, 0.5), "pieces": 2}


def test_surprise_is_that_of_the_new_ids_and_of_none_after_the_end(world):
    opened = open_bundle(world.bundle)
    seed = score_of((0, 1, 60), (1, 2, 64))
    music = [(0, 1, 67), (2, LENGTH_S, 72)]
    nats = surprise(opened, seed, score_of(*music))
    assert nats is not None
    assert 2 < nats < 9  # a model that has learned next to nothing: ln 391 is 6.0
    assert surprise(opened, seed, score_of(*music, (LENGTH_S, LENGTH_S + 1, 60))) == nats
    assert surprise(opened, seed, score_of(*music, (LENGTH_S - 1, LENGTH_S, 60))) != nats
    assert surprise(opened, seed, Score.empty()) is None


def test_the_study_on_a_tiny_model(world, tmp_path, monkeypatch, capsys):
    store, rng, onset_s = Store(world.store), np.random.default_rng(0), np.arange(60) * 0.1
    music = [Score(onset_s, onset_s + 0.1, rng.integers(50, 80, 60), [80] * 60) for _ in range(3)]
    pieces = [Piece(str(k), store.tokenizer.encode(score), 6.0) for k, score in enumerate(music)]
    write_store(tmp_path / "store", store.tokenizer, store.manifest.corpus, {"train": pieces, "validation": pieces}, [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(control, "SEED_S", 2.0)
    monkeypatch.setattr(control, "LENGTH_S", 2.0)
    monkeypatch.setattr(control, "ASKED", {name: ASKED[name] for name in ("key", "register")})
    words = ["--store", "store", "--bundle", world.bundle, "--out", "c"]
    trial(control, *words, "--pieces", 2)
    found = json.loads((tmp_path / "c/validation.json").read_text())
    assert (found["pieces"], found["split"], [*found["steerings"]]) == (2, "validation", ["key", "register"])
    for each in found["steerings"].values():
        steered, unsteered, composers = (each["obeyed"][who] for who in ("steered", "unsteered", "composers"))
        assert steered[0] >= unsteered[0]  # where the guard keeps a range, all may obey
        assert steered[0] > composers[0]
        assert each["more than unsteered"]["difference"][0] == pytest.approx(steered[0] - unsteered[0])
        assert each["nats a token"]["pieces"] == 2
        assert each["processor"]
    capsys.readouterr()
    monkeypatch.setattr(control, "drawn", lambda *_: pytest.fail("what is there is not drawn again"))
    trial(control, *words, "--pieces", 2)
    assert json.loads((tmp_path / "c/validation.json").read_text()) == found
    with pytest.raises(UserError, match="1 piece is long enough"):
        trial(control, *words, "--pieces", 1)


def test_what_an_encoding_cannot_take_is_said(world, capsys):
    opened = open_bundle(world.hymn_bundle)
    assert [*control.steerings(opened, 2, 6.0)] == ["key", "chords"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("=")[0] for line in lines] == [
        f"not measured: {name}" for name in ("density", "polyphony", "register", "loudness")
    ]
