"""The recipe of docs/extend/objective.md, as written there: an objective from a person's own file."""

import re
import shlex
import shutil

import pytest
from conftest import QUICK, ROOT, TINY, ok, refused

from musictx.model.header import read_header

TEXT = (ROOT / "docs/extend/objective.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
(SHELL,) = re.findall(r"```bash\n(.*?)```", TEXT, flags=re.DOTALL)
TRAIN, BLANKS, PLAIN, GENERATE = map(shlex.split, SHELL.splitlines())
SMALLER = [*TINY, *[word for word in QUICK if "max_steps" not in word], "trainer.progress_bar=false"]


@pytest.fixture
def place(world, tmp_path):
    shutil.copytree(world.store, tmp_path / "my_store")
    shutil.copy(world.seed, tmp_path / "my.mid")
    (tmp_path / "blanks.py").write_text(CODE)
    return tmp_path


def nats(said):
    return float(re.findall(r"model +(\d\.\d{4})", said)[0])


def test_an_objective_of_ones_own_is_learned_scored_and_taken_away(world, place):
    ok([*TRAIN, *SMALLER, f"init_from={world.bundle}"], place)
    header = read_header(place / "outputs" / "blanks" / "model.safetensors")
    assert header.objective == {"name": "blanks:Blanks", "settings": {"share": 0.2}, "added": [["BLANK", 0, 0]]}
    assert header.model["vocab_size"] == 392
    blanks, plain = (nats(ok([*words, "data.segment=32"], place).stdout) for words in (BLANKS, PLAIN))
    assert 0 < abs(blanks - plain) < 1
    ok([*GENERATE, "length_tokens=30"], place)

    (place / "blanks.py").unlink()
    shutil.rmtree(place / "continued")
    for words in ([*TRAIN, *SMALLER, "out=again"], BLANKS):
        assert "error: objective=blanks:Blanks: " in refused(words, place)
    assert "give objective=blanks:Blanks " in refused(BLANKS[:-1], place)
    assert nats(ok([*PLAIN, "data.segment=32"], place).stdout) == plain  # the bundle is none the worse
    ok([*GENERATE, "length_tokens=30"], place)
