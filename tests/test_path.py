"""The whole path through the real commands: what they leave, and that it is right."""

import json

import numpy as np
import pytest
from conftest import QUICK, TINY, ok
from omegaconf import OmegaConf

from musictx.data.store import Store
from musictx.model.bundle import load_bundle, read_header
from musictx.notes.read import read_midi
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


def test_one_worker_and_two_write_the_same_bytes(world, tmp_path):
    ok(["data_prep/folder.py", f"path={world.midi}", "out=one", "workers=1", "corpus=midi"], tmp_path)
    for file in sorted(world.store.iterdir()):
        assert file.read_bytes() == (tmp_path / "one" / file.name).read_bytes(), file.name


def test_a_run_folder_holds_config_metrics_and_bundle(world):
    folder = world.bundle.parent
    assert sorted(p.name for p in folder.iterdir()) == [
        "checkpoints",
        "config.yaml",
        "metrics.csv",
        "model.safetensors",
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
    figures = {line.split()[0]: float(line.split()[1]) for line in out.splitlines() if line.startswith("  ")}
    assert figures["uniform"] == pytest.approx(np.log(388), abs=1e-3)
    assert 1 < figures["unigram"] < figures["uniform"]
    assert figures["model"] == pytest.approx(read_header(world.bundle).val_nll, abs=2e-4)
    assert list(tmp_path.iterdir()) == []


def test_training_is_reproducible_from_its_seed(world, tmp_path):
    args = [f"data.path={world.store}", *TINY, *QUICK, "trainer.progress_bar=false"]
    ok(["musictx", "train", "out=a", *args], tmp_path)
    weights = [load_bundle(p).model.state_dict() for p in (world.bundle, tmp_path / "a" / "model.safetensors")]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def generate(world, cwd, *args):
    return ok(["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", *args], cwd)


def test_the_output_begins_with_the_seed(world, tmp_path):
    generate(world, tmp_path, "out=o", "seed_seconds=3", "length_seconds=2", "variations=2", "wav=true", "png=true")
    names = [f"tune 0{x}" for x in ("-1.mid", "-1.wav", "-2.mid", "-2.wav", ".png")]
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == names
    tok = build_tokenizer("performance")
    seed = tok.normalise(read_midi(world.seed).clip(0, 3))
    for k in (1, 2):
        music = read_midi(tmp_path / "o" / f"tune 0-{k}.mid")
        begun = music.clip(0, seed.duration_s - 1e-3)
        assert begun.pitch.tolist() == seed.pitch.tolist()
        np.testing.assert_allclose(begun.onset_s, seed.onset_s, atol=0.0011)
        assert seed.duration_s - 0.1 < music.duration_s <= seed.duration_s + 2.001


def test_without_the_seed_only_new_music_is_left(world, tmp_path):
    args = ("seed_seconds=3", "length_seconds=2", "seed=5")
    generate(world, tmp_path, "out=with", *args)
    generate(world, tmp_path, "out=without", "include_seed=false", *args)
    whole, new = (read_midi(tmp_path / o / "tune 0-1.mid") for o in ("with", "without"))
    start = build_tokenizer("performance").normalise(read_midi(world.seed).clip(0, 3)).duration_s
    tail = whole.clip(start - 1e-3, 1e9)
    assert tail.pitch.tolist() == new.pitch.tolist()
    np.testing.assert_allclose(tail.onset_s - 1e-3, new.onset_s, atol=0.0021)


def test_the_same_command_gives_the_same_bytes(world, tmp_path):
    for out in ("a", "b"):
        generate(world, tmp_path, f"out={out}", "length_seconds=2", "seed=9")
    assert (tmp_path / "a" / "tune 0-1.mid").read_bytes() == (tmp_path / "b" / "tune 0-1.mid").read_bytes()


def test_a_chorale_model_keeps_the_tempo_of_the_seed(world, tmp_path):
    ok(
        ["musictx", "generate", f"bundle={world.hymn_bundle}", f"seed_midi={world.hymn}", "out=o", "length_seconds=3"],
        tmp_path,
    )
    seed, music = read_midi(world.hymn), read_midi(tmp_path / "o" / "hymn0-1.mid")
    assert music.quarter_s == pytest.approx(seed.quarter_s)
    seed = build_tokenizer("chorale").normalise(seed)
    count = int((music.onset_s < seed.duration_s - 0.3).sum())
    assert music.pitch[:count].tolist() == seed.pitch[:count].tolist()


def test_wandb_offline_asks_nothing(world, tmp_path):
    args = [f"data.path={world.store}", "out=w", "logger=wandb", *TINY, *QUICK, "trainer.progress_bar=false"]
    done = ok(["musictx", "train", *args], tmp_path, WANDB_MODE="offline")
    assert list((tmp_path / "w" / "wandb").glob("offline-run-*/*.wandb"))
    assert "best model" in done.stdout


def test_bench_tokens_prints_rates_and_keeps_its_figures(world, tmp_path):
    out = ok(["musictx", "bench", "tokens", f"path={world.midi}", "repeats=2", "out=b/figures.json"], tmp_path).stdout
    assert "files/s" in out
    figures = json.loads((tmp_path / "b" / "figures.json").read_text())
    assert figures["files"] == 8
    assert figures["notes"] == sum(len(read_midi(p)) for p in world.midi.rglob("*.mid"))
    assert {name: len(s) for name, s in figures["seconds"].items()} == {"read": 2, "encode": 2, "decode": 2}
