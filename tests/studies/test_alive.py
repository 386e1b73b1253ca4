"""studies/alive.py: its measures by hand, its rule, and the whole of it on a tiny model."""

import json

import alive
import numpy as np
import pytest
from alive import LENGTH_S, in_scale, measure, rank, summary, true_music, waits_s
from strategies import score_of
from trials import trial

from musictx.data.store import Piece, Store, write_store
from musictx.errors import UserError
from musictx.model.header import read_header
from musictx.model.tensors import tensors_hash
from musictx.music.read import read_midi
from musictx.music.score import Score

SEED = Score(np.arange(20) * 0.5, np.arange(20) * 0.5 + 0.5, [60, 62, 64, 65, 67] * 4, [80] * 20)


def test_waits_are_counted_from_the_beginning_to_the_end_though_a_note_sounds():
    assert waits_s(score_of((1, 9, 60), (4, 5, 62)), 12).tolist() == [1, 3, 8]
    assert waits_s(Score.empty(), 10).tolist() == [10]


def test_what_is_measured_of_a_continuation():
    found = measure(SEED, score_of((0, 9, 60), (2, 3, 61), (4, 5, 62), (29, 30, 64)), (4.0, 9.0), None)
    assert found == {
        "wait_s": 25.0,
        "notes": 4,
        "long": 1,
        "pace": 4 / LENGTH_S / 2,
        "in scale": 0.75,
        "copied": 0,
        "net, waits": 1,
        "net, notes": 1,
    }
    assert in_scale(SEED, Score.empty()) == 0.0


def test_true_music_follows_a_beginning_or_comes_before_the_ending(monkeypatch):
    monkeypatch.setattr(alive, "LENGTH_S", 4.0)
    piece = Score.merge([SEED, score_of((10, 14, 60), (10, 14, 64))])
    before, after = true_music(piece, "first 5 s", piece.clip(0, 5), 5.0)
    assert (len(before), after.onset_s.tolist()[0], len(after)) == (10, 0.0, 8)
    before, after = true_music(piece, "whole", piece, 10.0)
    assert (before.duration_s, len(after), after.duration_s) == (6.0, 8, 4.0)


def test_who_waits_where_seed_and_composer_do_not_loses():
    row = measure(SEED, SEED.clip(0, 8), (4.0, 9.0), None) | {"wait_s": 3.0, "pace": 1.0}  # 3 s are not more than 3
    waits = row | {"wait_s": 4.0}

    def seed(drawn, true=row, seed_wait_s=1.0):
        return {"drawn": drawn, "true": true, "seed_wait_s": seed_wait_s}

    stuck = summary([seed([row, waits]), seed([waits], waits), seed([waits], row, 5.0)])
    assert (stuck["continuations"], stuck["stuck"], stuck["drawn"]["still 3 s"]) == (4, 1, 3)
    calm, hanging, slow = (summary([seed([each])]) for each in (row, row | {"long": 1}, row | {"pace": 0.4}))
    ranks = [rank(each) for each in (calm, slow, hanging, stuck)]
    assert ranks == sorted(ranks), "standing still is worse than a note that hangs, and that is worse than a slow pace"
    assert len({*ranks}) == 4


def test_the_study_on_a_tiny_model(world, tmp_path, monkeypatch, capsys):
    store, rng, onset_s = Store(world.store), np.random.default_rng(0), np.arange(60) * 0.5
    long = [Score(onset_s, onset_s + 0.4, rng.integers(50, 80, 60), [80] * 60) for _ in range(2)]
    pieces = [Piece(str(k), store.tokenizer.encode(score), 1.0) for k, score in enumerate([SEED, *long])]
    write_store(tmp_path / "store", store.tokenizer, store.manifest.corpus, {"train": pieces, "validation": pieces}, [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.safetensors").write_bytes(world.bundle.read_bytes())
    monkeypatch.setattr(alive, "LENGTH_S", 5.0)
    words = ["--stores", "store", "--bundles", "tiny.safetensors", "--out", "a", "--copies"]

    def study():
        trial(alive, *words, "--pieces", 2, "--draws", 1)
        return json.loads((tmp_path / "a/alive.json").read_text())["tiny.safetensors, default"]

    forms = dict(alive.FORMS)
    monkeypatch.setattr(alive, "FORMS", {form: forms[form] for form in ("whole", "first 5 s")})
    found = study()
    assert capsys.readouterr().out.strip().endswith("the rule of choice takes tiny.safetensors, default")
    assert found["all"]["continuations"] == 2 * 2
    assert found["all"]["tensors_sha256"] == tensors_hash(world.bundle)
    assert found["all"]["drawn"]["still 3 s"] == 0, "the net catches a model that has learned nothing"
    heard = tmp_path / "a/tiny.safetensors/store-whole/1.mid"
    assert len(read_midi(heard))
    heard.unlink()
    monkeypatch.setattr(alive, "FORMS", {form: forms[form] for form in ("whole", "first 15 s")})
    again = study()
    assert (again["all"]["continuations"], again["store, whole"]) == (2 * 2, found["store, whole"])
    assert not heard.exists(), "a cell that is there is not drawn again"
    monkeypatch.setattr(alive, "LENGTH_S", 900.0)
    with pytest.raises(UserError, match="validation pieces are longer than 920 s"):
        study()


def test_filters_are_written_into_the_header_of_a_copy(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--bundles", str(world.bundle), "--write", "--out", "copy"]
    trial(alive, *words, "sampler.top_p=null", "sampler.min_p=0.02")
    own = tmp_path / "copy" / world.bundle.name
    assert read_header(own).sampling == {"top_p": None, "min_p": 0.02, "seed_guidance": None}
    assert tensors_hash(own) == tensors_hash(world.bundle)
    for more, said in {
        (): "--write: ",
        ("sampler.temperature=2",): "--write: .*temperature=2",
        ("length_seconds=9",): "length_seconds=9: ",
        ("sampler.min_p=0.02", "sampler.top_p=null"): "is there already",
    }.items():
        with pytest.raises(UserError, match=said):
            trial(alive, *words, *more)
