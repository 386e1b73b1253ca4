"""The demo, shortened: forty real chorales, the real commands, and a second run that reuses the first."""

from conftest import ok
from matplotlib.image import imread

import musictx.commands.demo
from musictx.commands.demo import demo
from musictx.config.use import DemoConfig
from musictx.music.grid import score_to_grid
from musictx.music.read import read_midi

DEMO = ["musictx", "demo", "out=demo", "store=store", "pieces=40", "max_steps=6", "variations=2"]


def test_demo_leaves_everything_and_a_second_run_reuses_it(tmp_path, monkeypatch, capsys):
    first = ok(DEMO, tmp_path)
    folder = tmp_path / "demo"
    names = {p.name for p in folder.iterdir()}
    assert names >= {
        "seed.mid",
        "seed-1.mid",
        "seed-2.mid",
        "seed-1.wav",
        "seed.png",
        "chorale-2.wav",
        "chorale.png",
        "elise-2.wav",
        "elise.png",
        "config.yaml",
        "model.safetensors",
    }
    for word in ("uniform", "unigram", "Next:", "musictx generate bundle=demo/model.safetensors"):
        assert word in first.stdout
    assert imread(folder / "seed.png").shape[1] > 1000

    seed, one, two = (score_to_grid(read_midi(folder / f"seed{x}.mid")) for x in ("", "-1", "-2"))
    assert len(seed) >= 24
    assert (one[: len(seed) - 4] == seed[: len(seed) - 4]).mean() > 0.9
    assert len(one) > len(seed) + 60
    assert one.shape != two.shape or (one != two).any()

    model = (folder / "model.safetensors").read_bytes()
    asked, run = [], musictx.commands.demo._run

    def run_one(title, args):  # over what is there already
        asked.append(args[0])
        if asked == ["evaluate", "generate"]:
            run(title, args)

    monkeypatch.setattr("musictx.commands.demo._run", run_one)
    monkeypatch.chdir(tmp_path)
    demo(DemoConfig(out=str(folder), store=str(tmp_path / "store"), max_steps=6, variations=2))
    assert capsys.readouterr().out.count("there already") == 2
    assert asked == ["evaluate", "generate", "generate", "generate"]
    assert (folder / "model.safetensors").read_bytes() == model
