"""The demo, shortened: twenty real chorales, the real commands, and a second run that reuses the first."""

import sys
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest
from conftest import TINY, run
from matplotlib.image import imread

from musictx.commands.demo import DemoConfig, demo
from musictx.errors import ConfigError
from musictx.music.grid import score_to_grid
from musictx.music.read import read_midi

CONFIG = DemoConfig(out="demo", store="store", pieces=20, max_steps=6, variations=1)
SMALL = [*TINY, "data.length=64", "trainer.batch_size=4"]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The commands that the demo gives, by their first words. The first three are run, by a process that has imported
    PyTorch already."""
    asked = []

    def command(args, check):
        assert args[:3] == [sys.executable, "-m", "musictx"]
        asked.append(args[3])
        if len(asked) > 3:
            return CompletedProcess(args, 0)
        done = run([*args[2:], *(SMALL if args[3] == "train" else [])], tmp_path)
        print(done.stdout)
        return done

    monkeypatch.setattr("musictx.commands.demo.subprocess", SimpleNamespace(run=command))
    monkeypatch.chdir(tmp_path)
    return asked


def test_demo_leaves_everything_and_a_second_run_reuses_it(tmp_path, asked, capsys):
    demo(CONFIG)
    said = capsys.readouterr().out
    folder = tmp_path / "demo"
    assert {p.name for p in folder.iterdir()} >= {"seed.mid", "seed-1.wav", "seed.png"}
    for word in ("uniform", "unigram", "Next:", "musictx generate bundle=demo/model.safetensors"):
        assert word in said
    assert imread(folder / "seed.png").shape[1] > 1000

    seed, one = (score_to_grid(read_midi(folder / f"{name}.mid")) for name in ("seed", "seed-1"))
    assert len(seed) >= 24
    assert (one[: len(seed) - 4] == seed[: len(seed) - 4]).mean() > 0.9
    assert len(one) > len(seed) + 60

    model = (folder / "model.safetensors").read_bytes()
    demo(CONFIG)
    assert capsys.readouterr().out.count("there already") == 2
    assert asked == ["train", *["evaluate", "generate", "generate", "generate"] * 2]
    assert (folder / "model.safetensors").read_bytes() == model


def test_a_file_or_a_folder_of_other_things_is_refused_before_any_work(tmp_path, asked):
    (tmp_path / "demo").write_text("mine")
    with pytest.raises(ConfigError, match="out=demo: "):
        demo(CONFIG)
    assert ((tmp_path / "demo").read_text(), (tmp_path / "store").exists(), asked) == ("mine", False, [])
