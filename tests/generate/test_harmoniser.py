"""The harmoniser inside the package: what is said of it, and that it harmonises."""

import json
from hashlib import sha256

import numpy as np
import pytest
import torch
from conftest import ROOT, ok, refused
from safetensors import safe_open

import musictx
from musictx.errors import BundleError
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


def test_the_card_says_what_the_bundle_says_of_itself_and_what_evaluate_found_of_this_very_file():
    model, tokenizer, header = open_bundle(BUNDLE, continues=False)
    card = (ROOT / "docs" / "models.md").read_text().split("## The harmoniser")[1].split("\n## ")[0]
    assert f"{BUNDLE.stat().st_size / 1e6:.1f} MB" in card
    assert f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters" in card
    with safe_open(BUNDLE, "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float16}  # noqa: SIM118 - not a dict
    assert (tokenizer.name, header.objective["name"]) == ("chorale", "voices")
    assert header.corpus.startswith("JSB chorales")
    said = []
    for split, pieces in (("validation", 76), ("test", 77)):
        found = json.loads((ROOT / "studies" / "results" / f"harmoniser-{split}.json").read_text())
        assert found["bundle_sha256"] == sha256(BUNDLE.read_bytes()).hexdigest()
        assert (found["split"], found["pieces"]) == (split, pieces)
        said.append([f"{x:.3f}" for x in found["per_token"]])
        for given in ("B", "SB", "STB"):
            assert f"{found['given'][given][0]:.3f}" in card
    assert "validation **{}** nats a token ({} to {},".format(*said[0]) in card
    assert "test {} ({} to {}), read once".format(*said[1]) in card
    assert f"{header.val_nll:.3f}" == said[0][0]


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


def test_without_a_bundle_it_accompanies_a_soprano(chorale, tmp_path):
    alone = chorale.copy()
    alone[:, 1:] = REST
    write_midi(grid_to_score(alone, 0.6), tmp_path / "soprano.mid")
    said = ok(["musictx", "accompany", "melody=soprano.mid", "out=o", "variations=2", "random_seed=3"], tmp_path).stdout
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
    assert made[0].voices != made[1].voices


def test_it_writes_above_a_bass_and_writes_a_tenor_again(chorale, tmp_path):
    write_midi(grid_to_score(np.where(np.arange(4) == 3, chorale, REST), 0.6), tmp_path / "bass.mid")
    (above,) = musictx.load("harmoniser").accompany(tmp_path / "bass.mid", voices="B")
    assert above.melody == read_midi(tmp_path / "bass.mid")
    assert by_height(above.score)[:, 3].tolist() == chorale[:, 3].tolist()
    (again,) = musictx.load("harmoniser").accompany(FOLDER / "chorale.mid", rewrite="T")
    assert len(again.voices)
    grid, others = by_height(again.score), [0, 1, 3]
    assert grid[:, others].tolist() == chorale[:, others].tolist()
    for music in (above, again):
        assert (by_height(music.score) != REST).mean() > 0.95
        assert music.mean_log_p > -0.7


def test_it_is_guided_by_a_melody_where_that_is_asked_for_alone(chorale):
    """Guidance changes its voices, but brought no sure gain: docs/results.md."""
    model = musictx.load("harmoniser")
    assert model.header is not None
    assert model.header.seed_guidance is None
    assert model.header.hides_source
    alone = chorale.copy()
    alone[:, 1:] = REST
    (plain,), (guided,) = (model.accompany(grid_to_score(alone, 0.6), seed_guidance=g) for g in ("auto", 1.0))
    assert plain.voices != guided.voices
    assert guided.melody == plain.melody == grid_to_score(alone, 0.6)


def test_what_continues_refuses_it_in_one_line(world, tmp_path):
    words = [f"input={world.hymn}", "output=o.mid", "bundle=harmoniser"]
    assert "harmoniser" in refused(["musictx", "jam", *words], tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(BundleError, match="encoder_decoder.* continue"):
        open_bundle(BUNDLE)
