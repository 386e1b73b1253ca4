"""The old name of a setting works for one release, at the shell and in Python; for runs, training/test_stopping.py."""

from typing import Any

from conftest import ok, refused

import musictx
from musictx.config import SCHEMAS
from musictx.config.app import settings
from musictx.config.renamed import RENAMED, words_now

SAID = "seed= is called random_seed= now: the next release refuses the old name\n"


def test_only_a_whole_key_that_the_command_has_is_changed(capsys):
    words = ["seed=3", "++seed=1,2", "seed_midi=seed=1", "model.seed=1", "hydra.sweeper.sampler.seed=4", "-m", "seed"]
    now = ["random_seed=3", "++random_seed=1,2", *words[2:]]
    assert words_now(words, SCHEMAS["train"]) == now
    assert capsys.readouterr().err == 2 * SAID
    assert words_now(words, SCHEMAS["render"]) == words
    assert words_now(["window_seconds=2", "seed=1"], SCHEMAS["compare"]) == ["span_seconds=2", "random_seed=1"]
    assert words_now(["seeds=2"], SCHEMAS["bench_positions"]) == ["random_seeds=2"]


def test_no_schema_has_an_old_name_and_each_new_one_is_somewhere():
    names = {name for schema in SCHEMAS.values() for name in vars(schema)["__dataclass_fields__"]}
    assert not names & set(RENAMED)
    assert set(RENAMED.values()) <= names


def test_the_same_music_with_one_line_more(world, tmp_path):
    words = ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "length_seconds=1"]
    old = ok([*words, "out=old", "seed=5"], tmp_path)
    assert SAID.strip() in old.stderr.splitlines()
    new = ok([*words, "out=new", "random_seed=5"], tmp_path)
    assert new.stderr == old.stderr.replace(SAID, "")
    (a,), (b,), (c,) = ((tmp_path / out).glob("*.mid") for out in ("old", "new", "old"))
    assert a.read_bytes() == b.read_bytes() == c.read_bytes()
    ok([*words, "out=other", "random_seed=6"], tmp_path)
    assert next((tmp_path / "other").glob("*.mid")).read_bytes() != a.read_bytes()


def test_python_may_give_the_old_name_too(world, capsys):
    assert settings("train", "seed=2", "data.path=x").random_seed == 2
    assert settings("train", "data.path=x", seed=3).random_seed == 3
    assert capsys.readouterr().err == 2 * SAID
    model = musictx.load(world.bundle)
    given: list[dict[str, Any]] = [{"seed": 4}, {"random_seed": 4}]
    (old,), (new,) = (model.continue_score(None, length_tokens=24, **each) for each in given)
    assert old.score == new.score
    assert capsys.readouterr().err == SAID


def test_what_has_no_random_seed_says_so_and_a_file_of_ones_own_is_told_the_new_name(tmp_path):
    assert "seed is not a setting: " in refused(["musictx", "render", "midi=elise", "out=a.png", "seed=1"], tmp_path)
    experiment = tmp_path / "mine" / "experiment" / "own.yaml"
    experiment.parent.mkdir(parents=True)
    experiment.write_text("# @package _global_\nseed: 3\n")
    line = refused(["musictx", "train", "--config-dir", "mine", "experiment=own", "data.path=x", "out=run"], tmp_path)
    assert line == "error: experiment/own.yaml: seed is called random_seed now; change it there"
