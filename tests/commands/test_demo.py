"""The demo, shortened: twenty real chorales, the real commands, and a second run that reuses the first."""

from dataclasses import replace

import pytest
from conftest import TINY
from matplotlib.image import imread

from musictx.commands import demo as command
from musictx.commands.demo import DemoConfig, demo
from musictx.commands.evaluate import evaluate
from musictx.commands.generate import COMMAND as GENERATE
from musictx.commands.train import train
from musictx.data.corpora.chorales import prepare_chorales
from musictx.errors import ConfigError
from musictx.music.grid import score_to_grid
from musictx.music.read import read_midi

CONFIG = DemoConfig(out="demo", store="store")
SMALL = [*TINY, "data.length=64", "trainer.batch_size=4", "trainer.max_steps=6", "trainer.progress_bar=false"]


@pytest.fixture
def asked(tmp_path, monkeypatch, no_curves):
    """The commands that the demo gives. It draws once; later drawings are only noted."""
    asked: list[str] = []

    def learn(*words):
        asked.append("train")
        return train(*words, *SMALL)

    def score(*words):
        asked.append("evaluate")
        return evaluate(*words)

    def draw(config):
        asked.append("generate")
        if asked.count("generate") == 1:
            GENERATE.run(replace(config, variations=1))

    monkeypatch.setattr(command, "prepare_chorales", lambda config: prepare_chorales(replace(config, pieces=20)))
    monkeypatch.setattr(command, "train", learn)
    monkeypatch.setattr(command, "evaluate", score)
    monkeypatch.setattr(command, "GENERATE", GENERATE._replace(run=draw))
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
