"""The whole path through the real commands: what they leave, and that it is right."""

import json
from hashlib import sha256

import numpy as np
import pytest
from conftest import QUICK, TINY, ok, refused
from omegaconf import OmegaConf

from musictx.data.store import Store
from musictx.model.header import read_header
from musictx.music.read import read_midi
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer


def test_preparing_a_folder_keeps_every_piece_on_one_side(world):
    manifest = json.loads((world.store / "manifest.json").read_text())
    names = [name for split in manifest["splits"].values() for name in split["pieces"]]
    assert sorted(names) == sorted(str(p.relative_to(world.midi)) for p in world.midi.rglob("*.mid"))
    assert {s: len(i["pieces"]) for s, i in manifest["splits"].items()} == {"train": 6, "validation": 1, "test": 1}
    store = Store(world.store, "performance")
    split = store.split("train")
    music = read_midi(world.midi / split.names[0])
    assert store.tokenizer.decode(split[0]) == store.tokenizer.normalise(music)


def test_a_run_folder_has_config_metrics_and_bundle(world):
    folder = world.bundle.parent
    assert sorted(p.name for p in folder.iterdir()) == [
        "checkpoints",
        "config.yaml",
        "curves.png",
        "metrics.csv",
        "model.safetensors",
        "run.json",
    ]
    config = OmegaConf.load(folder / "config.yaml")
    assert config.model.d_model == 16
    assert not OmegaConf.missing_keys(config)
    metrics = (folder / "metrics.csv").read_text()
    assert "val/nll" in metrics.splitlines()[0]
    header = read_header(world.bundle)
    assert header.tokenizer == "performance"
    assert header.vocab_fingerprint == build_tokenizer("performance").vocab.fingerprint
    assert (header.corpus, header.licence) == ("midi", "not stated")
    assert f"{header.val_nll:.4f}"[:5] in metrics


def test_evaluate_agrees_with_the_bundle_and_names_the_baselines(world, tmp_path):
    args = [f"bundle={world.bundle}", f"data.path={world.store}", "data.segment=2048"]
    out = ok(["musictx", "evaluate", *args], tmp_path).stdout
    assert out.splitlines()[0] == f"{world.bundle}: trained on midi, licence not stated"
    assert out.splitlines()[1].startswith("model: 1 layers, attention: relative, impl=auto, ")
    figures = {
        line.split()[0]: float(line.split()[1]) for line in out.splitlines() if line.startswith("  ") and line[2] != " "
    }
    assert figures["uniform"] == pytest.approx(np.log(388), abs=1e-3)
    assert 1 < figures["unigram"] < figures["uniform"]
    assert figures["model"] == pytest.approx(read_header(world.bundle).val_nll, abs=2e-4)
    assert [text in out for text in (": 1 piece, ", "resamples")] == [True, False]  # one piece has no interval
    assert list(tmp_path.iterdir()) == []


def test_evaluate_says_what_fewer_bits_cost(world, tmp_path):
    args = ["musictx", "evaluate", f"bundle={world.bundle}", f"data.path={world.store}", "out=f.json", "overwrite=true"]
    found = {}
    for weights in ("float32", "int8"):
        out = ok([*args, f"weights={weights}"], tmp_path).stdout
        figures = json.loads((tmp_path / "f.json").read_text())
        assert figures["weights"] == weights
        assert figures["weights_are"].startswith(weights)
        assert figures["bundle_sha256"] == sha256(world.bundle.read_bytes()).hexdigest()
        assert out.splitlines()[2].endswith(f" tokens, inputs of 2048 tokens, {figures['weights_are']}")
        found[weights] = figures["per_token"][0]
    assert 0 < abs(found["float32"] - found["int8"]) < 0.02, "fewer bits are not as exact as all of them"
    assert refused([*args, "weights=int4"], tmp_path).startswith("error: weights=int4: ")


def generate(world, cwd, *args, **env):
    return ok(["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", *args], cwd, **env)


def test_the_output_begins_with_the_seed(world, tmp_path):
    generate(world, tmp_path, "out=o", "seed_seconds=3", "length_seconds=2", "variations=2", "wav=true", "png=true")
    names = [f"tune 0{x}" for x in ("-1.mid", "-1.wav", "-2.mid", "-2.wav", ".png")]
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == names
    seed = read_midi(world.seed).clip(0, 3)
    for k in (1, 2):
        music = read_midi(tmp_path / "o" / f"tune 0-{k}.mid")
        begun = music.clip(0, seed.duration_s - 1e-3)
        assert begun.pitch.tolist() == seed.pitch.tolist()
        assert begun.velocity.tolist() == seed.velocity.tolist()  # as the file has them
        np.testing.assert_allclose(begun.onset_s, seed.onset_s, atol=0.0011)
        assert seed.duration_s - 0.1 < music.duration_s <= seed.duration_s + 2.001


def test_the_same_command_gives_the_same_bytes(world, tmp_path):
    for out, fresh in (("a", {"PYTHONHASHSEED": "1"}), ("b", {})):
        generate(world, tmp_path, f"out={out}", "length_seconds=2", "random_seed=9", **fresh)
    assert (tmp_path / "a" / "tune 0-1.mid").read_bytes() == (tmp_path / "b" / "tune 0-1.mid").read_bytes()


def test_music_of_several_instruments_through_miditok_and_bpe(tmp_path):
    rng = np.random.default_rng(3)
    for k in range(6):
        onset = np.arange(40) * 0.25
        flute = Score(onset, onset + 0.25, rng.integers(70, 90, 40), np.full(40, 80), 0.5, np.array(73))
        kit = Score(onset, onset + 0.1, rng.choice([36, 38, 42], 40), np.full(40, 100), 0.5, np.array(DRUMS))
        write_midi(Score.merge([flute, kit]), tmp_path / "midi" / f"{k}.mid")
    prepare = ["data_prep/folder.py", "path=midi", "out=store", "tokenizer=miditok", "tokenizer.bpe_vocab=700"]
    ok([*prepare, "select.drums=true", "workers=1"], tmp_path)
    store = Store(tmp_path / "store")
    assert 661 < store.tokenizer.vocab.size <= 700
    split = store.split("train")
    original = read_midi(tmp_path / "midi" / split.names[0], drums=True, one_tempo=True)
    assert set(original.program.tolist()) == {73, DRUMS}
    assert store.tokenizer.decode(split[0]) == store.tokenizer.normalise(original)
    train = ["musictx", "train", "data.path=store", "tokenizer=miditok", "data.stretch=[1.0]", "data.transpose=2"]
    ok([*train, "out=run", *TINY, *QUICK, "trainer.progress_bar=false"], tmp_path)
    header = read_header(tmp_path / "run" / "model.safetensors")
    assert header.tokenizer_state == store.tokenizer.state != ""
    generate = ["musictx", "generate", "bundle=run/model.safetensors", "seed_midi=midi/0.mid", "seed_seconds=3"]
    ok([*generate, "drums=true", "length_seconds=2", "out=new"], tmp_path)
    made = read_midi(tmp_path / "new" / "0-1.mid", drums=True)
    assert {73, DRUMS} <= set(made.program.tolist())
    assert "store is sound" in ok(["musictx", "inspect", "store=store"], tmp_path).stdout
    other = ["musictx", "train", "data.path=store", "tokenizer=performance", "out=x", *TINY, *QUICK]
    refusal = refused(other, tmp_path)
    assert "tokenizer miditok-remi " in refusal
