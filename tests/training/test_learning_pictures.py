"""model=vit and model=se_resnet learn labels from piano rolls and show what they see, as a person gives commands."""

import json

import numpy as np
import pytest
from conftest import ok, refused
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from runs import fit, val_nll
from test_learning_labels import QUICK as ALL
from test_learning_labels import duet, tune

from musictx.config.app import settings
from musictx.errors import ConfigError
from musictx.model.header import read_header
from musictx.music.write import write_midi
from musictx.viz.patches import plot_patches

QUICK = [*(word for word in ALL if not word.startswith("model.")), "model.n_frames=160", "model.dropout=0"]
QUICK += ["trainer.max_epochs=600", "trainer.max_steps=70", "trainer.lr=0.007"]
KINDS = {
    "vit": ["model=vit", "model.d_model=16", "model.n_layers=2", "model.n_heads=2", "model.d_ff=32"],
    "se_resnet": ["model=se_resnet", "model.d_model=16"],
}


def train(folder, kind, objective, path, *words):
    """The bundle of a run in `folder`, as a person gives the command."""
    given = ["train", f"objective={objective}", f"data.path={path}", f"out={folder}", *KINDS[kind], *QUICK, *words]
    return fit(settings(*given))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A vision transformer that has learned high from low, a residual net that has learned the two tracks of songs."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed in range(6):
        write_midi(tune(30, seed), folder / f"music/low/{seed}.mid")
        write_midi(tune(75, 100 + seed), folder / f"music/high/{seed}.mid")
        write_midi(duet(seed), folder / f"songs/{seed}.mid", names=["BASS", "TUNE"])
    write_midi(tune(75, 999, notes=90), folder / "my.mid")
    write_midi(duet(50), folder / "song.mid")
    train(folder / "vit-music", "vit", "classify", folder / "music")
    train(folder / "se_resnet-songs", "se_resnet", "classify_notes", folder / "songs")
    return folder


def test_both_tasks_are_learned(folder):
    for run in ("vit-music", "se_resnet-songs"):
        bundle = folder / run / "model.safetensors"
        assert val_nll(bundle) < 0.2  # 0.69 by chance
        assert "held-out accuracy 1.00 (" in read_header(bundle).notes["held_out"]
    ok(["musictx", "classify", "midi=my.mid", "labels=vit-music", "out=one"], folder)
    found = json.loads((folder / "one/my.json").read_text())
    assert found["label"] == "high"
    assert len(found["notes"]) > 15
    ok(["musictx", "classify", "midi=song.mid", "labels=se_resnet-songs", "out=two"], folder)
    notes = json.loads((folder / "two/song.json").read_text())["notes"]
    assert {(note["pitch"] > 60, note["label"]) for note in notes} == {(False, "BASS"), (True, "TUNE")}


def test_where_the_class_token_looks_is_drawn(folder):
    given = ["musictx", "attend", "bundle=vit-music", "midi=my.mid"]
    assert (
        "looks/my-class-token.png: where the class token looks in 3 windows" in ok([*given, "out=looks"], folder).stdout
    )
    ok([*given, "out=layer", "layer=1", "head=0"], folder)
    assert imread(folder / "looks/my-class-token.png").std() > 0.05
    assert (folder / "looks/my-class-token.png").read_bytes() != (folder / "layer/my-class-token.png").read_bytes()
    assert "layer=2: give 0 to 1" in refused([*given, "out=o", "layer=2"], folder)
    for word in ("at=3", "voice=A"):
        assert f"{word.split('=')[0]}=" in refused([*given, "out=o", word], folder)


def test_how_open_the_channels_are_is_drawn(folder):
    given = ["musictx", "attend", "bundle=se_resnet-songs", "midi=song.mid"]
    said = ok([*given, "out=open"], folder).stdout
    assert "open/song-gates.png: how open each layer's channels are in" in said
    assert imread(folder / "open/song-gates.png").std() > 0.05
    assert "error: layer=0: " in refused([*given, "out=o", "layer=0"], folder)


def test_the_weight_of_a_patch_is_its_colour_where_it_lies(tmp_path):
    """A heavy patch between seconds 4 and 8, high up; nothing is shown after second 8."""
    score, weight = tune(60, 0, notes=60), np.zeros((2, 2))
    weight[1, 1] = 3.0
    plot_patches("a", score, [(weight, np.array([58, 70, 86]), np.array([0, 4, 8]))], "weight", tmp_path / "a.png")
    image = imread(tmp_path / "a.png")[:, :, :3].astype(float)
    heavy = (np.abs(image - np.array(to_rgb("#7f2704"))) < 0.02).all(-1)[:, :1150]  # the darkest orange, beside the bar
    rows, columns = np.nonzero(heavy)
    assert len(rows) > 3000
    assert rows.max() < 0.65 * image.shape[0]
    assert 0.3 * 1150 < columns.min() < columns.max() < 0.75 * 1150


def test_wrong_use_is_one_line(folder, world, tmp_path):
    for kind, objective in (("vit", "next_token"), ("se_resnet", "masked")):
        with pytest.raises(ConfigError, match=f"^objective={objective}: .*kind={kind} "):
            train(tmp_path / "no", kind, objective, world.store)
    for frames, said in (("100", "^n_frames=100: "), ("16", "^length=64: .* shows 0.8 s")):
        with pytest.raises(ConfigError, match=said):
            train(tmp_path / "no", "vit", "classify", folder / "music", f"model.n_frames={frames}")
    bundle = f"{folder}/vit-music"
    line = refused(["musictx", "generate", f"bundle={bundle}", f"seed_midi={folder}/my.mid", "out=new"], tmp_path)
    assert ": vit models " in line
    line = refused(["musictx", "probe", f"path={folder}/music", f"bundle={bundle}", "out=p.safetensors"], tmp_path)
    assert "no layer" in line


def test_a_net_without_gates_has_none_to_show(folder, tmp_path):
    words = ["model.gates=false", "trainer.max_steps=1"]
    plain = train(tmp_path / "plain", "se_resnet", "classify", folder / "music", *words)
    line = refused(["musictx", "attend", f"bundle={plain}", f"midi={folder}/my.mid", "out=o"], tmp_path)
    assert "no gates" in line
