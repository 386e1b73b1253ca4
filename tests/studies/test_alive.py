"""studies/alive.py: its measures by hand, its rule, and the whole of it on a tiny model."""

import json
import re
import sys

import alive
import numpy as np
import pytest
from alive import Cell, Figures, in_scale, measure, rank, summary, true_music, waits_s
from conftest import ok, run
from strategies import score_of

from musictx.data.store import Piece, Store, write_store
from musictx.errors import UserError
from musictx.model.bundle import read_header, tensors_hash
from musictx.music.read import read_midi
from musictx.music.score import Score

SEED = Score(np.arange(20) * 0.5, np.arange(20) * 0.5 + 0.5, [60, 62, 64, 65, 67] * 4, [80] * 20)


def test_waits_are_counted_from_the_beginning_to_the_end_though_a_note_sounds():
    assert waits_s(score_of((1, 9, 60), (4, 5, 62)), 12).tolist() == [1, 3, 8]
    assert waits_s(Score.empty(), 10).tolist() == [10]


def test_what_is_measured_of_a_continuation():
    found = measure(SEED, score_of((0, 9, 60), (2, 3, 61), (4, 5, 62), (8, 9, 64)), 10, (4.0, 9.0), None)
    assert found == Figures(4.0, 4, 1, 4 / 10 / (20 / 10), 0.75, 0, 1, 1)
    assert found.still
    assert not found._replace(wait_s=3.0).still, "three seconds are not more than three"
    assert in_scale(SEED, Score.empty()) == 0.0


def test_true_music_follows_a_beginning_or_comes_before_the_ending():
    piece = Score.merge([SEED, score_of((10, 14, 60), (10, 14, 64))])
    before, after = true_music(piece, "first 5 s", piece.clip(0, 5), 5.0, 4.0)
    assert (len(before), after.onset_s.tolist()[0], len(after)) == (10, 0.0, 8)
    before, after = true_music(piece, "whole", piece, 10.0, 4.0)
    assert (before.duration_s, len(after), after.duration_s) == (6.0, 8, 4.0)


def test_who_waits_where_seed_and_composer_do_not_loses():
    row = Figures(1.0, 10, 0, 1.0, 1.0, 0, 0, 0)
    waits = row._replace(wait_s=4.0)
    cell = Cell([[row, waits], [waits], [waits]], [row, waits, row], [1.0, 1.0, 5.0])
    assert cell.stuck() == 1
    calm, hanging, slow = (Cell([[each]], [row], [1.0]) for each in (row, row._replace(long=1), row._replace(pace=0.4)))
    ranks = [rank(summary([each])) for each in (calm, slow, hanging, cell)]
    assert ranks == sorted(ranks), "standing still is worse than a note that hangs, and that is worse than a slow pace"
    assert len({*ranks}) == 4


def test_the_study_on_a_tiny_model(world, tmp_path, monkeypatch, capsys):
    store, rng, onset_s = Store(world.store), np.random.default_rng(0), np.arange(60) * 0.5
    long = [Score(onset_s, onset_s + 0.4, rng.integers(50, 80, 60), [80] * 60) for _ in range(2)]
    pieces = [Piece(str(k), store.tokenizer.encode(score), 1.0) for k, score in enumerate([SEED, *long])]
    splits = {"train": pieces, "validation": pieces}
    write_store(tmp_path / "store", store.tokenizer, store.manifest.corpus, splits, [])
    monkeypatch.chdir(tmp_path)

    def study(*words):
        where = ["--stores", "store", "--bundles", str(world.bundle), "--split", "train", "--out", "a.json"]
        monkeypatch.setattr(sys, "argv", ["alive.py", *where, "--pieces", "2", "--draws", "1", "--copies", *words])
        alive.run()
        return json.loads((tmp_path / "a.json").read_text())

    forms = dict(alive.FORMS)
    monkeypatch.setattr(alive, "FORMS", {form: forms[form] for form in ("whole", "first 5 s")})
    found = study("--ways", "all", "--seconds", "5")
    names = [f"model.safetensors, {way}" for way in ("default", "neither", "no net", "endings kept")]
    assert [name for name in found if name in names] == names
    assert found["chosen"] in names
    assert re.search(rf"the rule of choice takes {found['chosen']}$", capsys.readouterr().out.strip())
    default = found[names[0]]
    assert default["all"]["continuations"] == 2 * 2
    assert default["all"]["tensors_sha256"] == tensors_hash(world.bundle)
    assert default["all"]["drawn"]["still 3 s"] == 0, "the net catches a model that has learned nothing"
    heard = tmp_path / "a" / "model.safetensors-default" / "store-whole" / "1.mid"
    assert len(read_midi(heard))
    heard.unlink()
    monkeypatch.setattr(alive, "FORMS", forms)
    again = study("--seconds", "5")[names[0]]
    assert again["all"]["continuations"] == 4 * 2
    assert again["store, whole"] == default["store, whole"]
    assert not heard.exists(), "a cell that is there is not drawn again"
    with pytest.raises(UserError, match="train split .* 920 s: .*--seconds"):
        study("--seconds", "900")


def test_filters_are_written_into_the_header_alone(world, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(world.bundle.read_bytes())
    words = ["studies/alive.py", "--bundles", "own.safetensors", "--write"]
    ok([*words, "sampler.top_p=null", "sampler.min_p=0.02"], tmp_path)
    assert read_header(own).sampling == {"top_p": None, "min_p": 0.02, "seed_guidance": None}
    assert tensors_hash(own) == tensors_hash(world.bundle)
    refused = run(words, tmp_path)
    assert refused.returncode == 2
    assert "error: --write: " in refused.stderr
