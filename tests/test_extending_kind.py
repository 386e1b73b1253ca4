"""The kind of model of docs/extend/model.md, as written there: trained, continued, proven, taken away."""

import re

import pytest
from conftest import QUICK, ROOT, ok, refused
from proofs import assert_cached_steps_equal_one_pass, assert_causal, tokens

import musictx
from musictx.config.app import command_help
from musictx.config.command import find
from musictx.model.build import KINDS, build_model, model_config
from musictx.model.header import read_header

SECTION = (ROOT / "docs/extend/model.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
TRAIN, GENERATE = (words.split() for words in re.findall(r"^    python gru.py (.*)$", SECTION, re.MULTILINE))


@pytest.fixture
def place(world, tmp_path, monkeypatch):
    """A folder with the file, which this process knows too for one test."""
    (tmp_path / "gru.py").write_text(CODE)
    (tmp_path / "my_store").symlink_to(world.store)
    (tmp_path / "seed.mid").write_bytes(world.seed.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(KINDS, "gru", None)
    exec(compile(CODE, "gru.py", "exec"), {"__name__": "gru"})
    return tmp_path


def test_it_is_trained_and_continues_a_seed_by_command_and_from_python(place):
    ok([place / "gru.py", *TRAIN, *QUICK, "trainer.progress_bar=false"], place)
    ok([place / "gru.py", *GENERATE], place)
    assert list((place / "mine").glob("*.mid"))
    assert re.search("has kind=gru, .*gru.py adds it", refused(["musictx", *GENERATE, "overwrite=true"], place))
    bundle = place / "my_run" / "model.safetensors"
    assert read_header(bundle).model == {"kind": "gru", "vocab_size": 391, "width": 32}
    (music,) = musictx.load(bundle).continue_midi("seed.mid", tokens=32)
    assert len(music.score) > len(musictx.read_midi("seed.mid"))
    with pytest.raises(musictx.UserError, match="^model.d_model=.*kind, width"):
        musictx.train(*TRAIN[1:], "model.d_model=8")


def test_a_person_sets_its_settings_and_nothing_else(place):
    said = command_help(find("train"), ["model=gru_schema"])
    assert "model: The model to train: a net of gated cells." in said
    assert re.findall(r"^  model\.(\S+)", said, re.MULTILINE) == ["kind=gru", "width=64"]


def test_it_is_held_to_what_has_for_all_models(place):
    model, other = (build_model(model_config("gru", {"width": 8}, vocab_size=23)).double().eval() for _ in range(2))
    assert_causal(model, tokens(1, 10))
    assert_cached_steps_equal_one_pass(other, tokens(3, 25), 9)
