"""The harmoniser inside the package: what is said of it, and that it harmonises."""

import numpy as np
import pytest
import torch
from conftest import ok

import musictx
from musictx.generate.open_bundle import open_bundle
from musictx.model.packaged import FOLDER, packaged_bundle
from musictx.music.grid import REST, grid_to_score, score_to_grid
from musictx.music.read import read_midi
from musictx.music.write import write_midi
from musictx.objectives import Example, build_objective
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.rules import VOICE_RANGES

BUNDLE = packaged_bundle("harmoniser")


@pytest.fixture(scope="module")
def chorale():
    """Two bars of a test piece, (32, 4), in which no voice rests or crosses."""
    return by_height(read_midi(FOLDER / "chorale.mid"))


def by_height(score):
    return -np.sort(-score_to_grid(score), axis=1)


def test_the_true_voices_are_likelier_below_their_own_melody(chorale):
    model, tokenizer, _ = open_bundle(BUNDLE, continues=False)
    assert isinstance(tokenizer, ChoraleTokenizer)
    asked, nats = build_objective("voices", {"given": "S"}, tokenizer), []
    for melody in (chorale[:, 0], chorale[:, 0] + 1, np.full(len(chorale), 72)):
        grid = chorale.copy()
        grid[:, 0] = melody
        window = torch.from_numpy(np.append(tokenizer.vocab.bos, tokenizer.encode_grid(grid)).astype(np.int64))
        (source, ids), targets = asked.example(window, np.random.default_rng(0))
        with torch.inference_mode():
            total, count = asked.loss(model, Example((source[None], ids[None]), targets[None]))
        nats.append(float(total / count))
    assert nats[0] < 0.5
    assert min(nats[1:]) > nats[0] + 0.2


def test_it_accompanies_a_soprano(chorale, tmp_path):
    alone = chorale.copy()
    alone[:, 1:] = REST
    write_midi(grid_to_score(alone, 0.6), tmp_path / "soprano.mid")
    words = ["melody=soprano.mid", "bundle=harmoniser", "out=o", "variations=2", "random_seed=3"]
    said = ok(["musictx", "accompany", *words], tmp_path).stdout
    assert said.startswith("harmoniser: trained on JSB chorales, 16th grid, licence public domain")
    assert "o/soprano-1.mid: " in said
    made = musictx.load("harmoniser").accompany(tmp_path / "soprano.mid", variations=2, random_seed=3)
    for k, music in enumerate(made, 1):
        assert read_midi(tmp_path / "o" / f"soprano-{k}.mid").pitch.tolist() == music.score.pitch.tolist()
        assert music.mean_log_p > -0.7  # an untrained one: -4.5
        grid = by_height(music.score)
        assert grid[:, 0].tolist() == chorale[:, 0].tolist()
        assert (grid != REST).mean() > 0.95
        for v, (low, high) in enumerate(VOICE_RANGES):
            sung = grid[:, v][grid[:, v] != REST]
            assert ((sung >= low) & (sung <= high)).all()
    assert made[0].new_notes != made[1].new_notes


def test_it_writes_above_a_bass_and_writes_a_tenor_again(chorale, tmp_path):
    write_midi(grid_to_score(np.where(np.arange(4) == 3, chorale, REST), 0.6), tmp_path / "bass.mid")
    (above,) = musictx.load("harmoniser").accompany(tmp_path / "bass.mid", voices="B")
    assert above.given_notes == read_midi(tmp_path / "bass.mid")
    assert by_height(above.score)[:, 3].tolist() == chorale[:, 3].tolist()
    (again,) = musictx.load("harmoniser").accompany(FOLDER / "chorale.mid", rewrite="T")
    assert len(again.new_notes)
    grid, others = by_height(again.score), [0, 1, 3]
    assert grid[:, others].tolist() == chorale[:, others].tolist()
    for music in (above, again):
        assert (by_height(music.score) != REST).mean() > 0.95
        assert music.mean_log_p > -0.7
