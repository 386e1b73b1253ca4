"""model=encoder objective=masked, then labels of pieces from what it learned, as a person gives the commands."""

import pytest
from conftest import TINY, ok, refused
from runs import config_of, fit
from test_learning_labels import QUICK, tune

from musictx.data.datamodule import MusicData
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.model.header import read_header
from musictx.music.write import write_midi
from musictx.objectives import build_objective
from musictx.training.metrics import read_metrics

SHORT = [word for word in QUICK if not word.startswith("model.")]


MASKED = ["model=encoder", "objective=masked"]
DEEP = ["model.dropout=0", "model.n_layers=2"]  # a probe reads between two layers


@pytest.fixture(scope="module")
def reader(world, tmp_path_factory):
    """A run that has learned to guess hidden notes, and two folders of labelled music."""
    folder = tmp_path_factory.mktemp("reader")
    for seed in range(6):
        write_midi(tune(30, seed), folder / f"music/low/{seed}.mid")
        write_midi(tune(75, 100 + seed), folder / f"music/high/{seed}.mid")
    settings = "objective_settings={share: 0.2}"
    ok(["musictx", "train", *MASKED, settings, f"data.path={world.store}", "out=run", *TINY, *SHORT, *DEEP], folder)
    return folder


def test_it_learns_to_guess(reader):
    rows = [row["val/nll"] for row in read_metrics(reader / "run/metrics.csv") if "val/nll" in row]
    assert float(rows[-1]) < float(rows[0])
    header = read_header(reader / "run/model.safetensors")
    assert header.objective["settings"] == {"share": 0.2}
    assert [row[0] for row in header.objective["added"]] == ["MASK"]


def test_what_it_learned_is_the_beginning_of_a_model_of_labels(reader):
    words = ["musictx", "train", "objective=classify", "data.path=music", "init_from=run", "out=labels", *SHORT]
    assert "held-out accuracy 1.00 (" in ok(words, reader).stdout
    said = ok(["musictx", "probe", "path=music", "bundle=run", "out=probe.safetensors"], reader).stdout
    assert "12 files; always saying high: 0.50" in said


def test_it_continues_nothing(reader, world, tmp_path):
    for words, said in (
        (["model=encoder"], "objective=next_token: .*kind=encoder "),
        (["model=small", "objective=masked"], "objective=masked: "),
    ):
        with pytest.raises(ConfigError, match=f"^{said}"):
            fit(config_of(world, tmp_path / "no", *words))
    line = refused(["musictx", "generate", f"bundle={reader}/run", "seed_midi=null", "out=o"], tmp_path)
    assert ": encoder models " in line
    words = [f"bundle={reader}/run", f"data.path={world.store}", "objective=next_token"]
    assert "kind=encoder " in refused(["musictx", "evaluate", *words], tmp_path)


def test_validation_reads_windows_as_long_as_those_of_training(world):
    config, store = config_of(world, "run", "data.segment=null").data, Store(world.store, "performance")
    longest = {}
    for name in ("masked", "next_token"):
        data = MusicData(config, store, build_objective(name, None, store.tokenizer), batch_size=2, random_seed=0)
        longest[name] = max(example.inputs[0].shape[1] for example in data.val_dataloader())
    assert longest["masked"] == config.length < longest["next_token"]
