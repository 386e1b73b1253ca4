"""The recipe of docs/extend/position.md for a form of position, as written there: added, used by the commands, proven,
taken away."""

import re

import pytest
import torch
from conftest import QUICK, ROOT, TINY, ok, refused
from proofs import BLOCKS, assert_cached_steps_equal_one_pass, assert_causal, tokens

from musictx.model.position import FORMS
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.music.read import read_midi

SECTION = (ROOT / "docs/extend/position.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
COMMANDS = re.findall(r"^    python alibi.py (.*)$", SECTION, re.MULTILINE)


@pytest.fixture
def form(monkeypatch):
    """In this process, for one test."""
    monkeypatch.setitem(FORMS, "alibi", None)
    exec(compile(CODE, "alibi.py", "exec"), {"__name__": "alibi"})
    return FORMS["alibi"]


def build(**changes):
    torch.manual_seed(0)
    config = TransformerConfig(23, 24, 2, 3, 48, 0.0, max_distance=6, position="alibi", **changes)
    return Transformer(config).double().eval()


def test_the_commands_train_draw_and_look_with_it(world, tmp_path):
    (tmp_path / "alibi.py").write_text(CODE)
    (tmp_path / "my_store").symlink_to(world.store)
    (tmp_path / "seed.mid").write_bytes(world.seed.read_bytes())
    asked = [words.split() for words in COMMANDS]
    assert [words[0] for words in asked] == ["train", "generate", "attend"]
    asked[0] = [*asked[0][:1], *TINY, *QUICK, "trainer.progress_bar=false", *asked[0][1:]]
    said = [ok([tmp_path / "alibi.py", *words], tmp_path).stdout for words in asked]
    assert "attention: alibi, " in said[0]
    assert "attention: alibi, " in said[1]
    assert len(read_midi(next((tmp_path / "mine").glob("*.mid")))) > 0
    assert {path.name for path in (tmp_path / "mine").glob("*.png")} == {
        f"seed-{x}.png" for x in ("attention", "heads", "map")
    }
    # without its file it is gone, and what was made with it is refused
    for words in (asked[1], asked[2], [*asked[0], "init_from=my_run"]):
        line = refused(["musictx", *words, "out=more"], tmp_path)
        assert re.search("my_run.* has position=alibi, .*: alibi.py adds it: run that script with these words", line)


@pytest.mark.parametrize("block", BLOCKS)
def test_it_is_held_to_what_has_for_all_forms(form, block):
    assert_causal(build(**block), tokens(1, 10))
    for prefill in (1, 9):
        assert_cached_steps_equal_one_pass(build(**block), tokens(3, 25), prefill)
