"""The recipe of docs/extend/tokenizer.md for a tokenizer, as written there: added, used by the commands, proven,
taken away."""

import re

import numpy as np
import pytest
from conftest import QUICK, ROOT, TINY, ok, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import ids, scores

from musictx.data.store import Store
from musictx.errors import UserError
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.tokenizers import TOKENIZERS, Tokenizer, build_tokenizer

SECTION = (ROOT / "docs/extend/tokenizer.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
COMMANDS = re.findall(r"^    python triples.py (.*)$", SECTION, re.MULTILINE)
SHARED = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def triples(monkeypatch):
    """In this process, for one test."""
    monkeypatch.setitem(TOKENIZERS, "triples", None)
    exec(compile(CODE, "triples.py", "exec"), {"__name__": "triples"})
    return build_tokenizer("triples")


def test_the_commands_prepare_train_draw_and_look_with_it(world, triples, tmp_path):
    (tmp_path / "triples.py").write_text(CODE)
    (tmp_path / "my_midi_files").symlink_to(world.midi)
    (tmp_path / "seed.mid").write_bytes(world.seed.read_bytes())
    asked = [words.split() for words in COMMANDS]
    assert [words[0] for words in asked] == ["prepare", "train", "generate", "attend"]
    asked[1] = [*asked[1][:1], *TINY, *QUICK, "trainer.progress_bar=false", *asked[1][1:]]
    said = [ok([tmp_path / "triples.py", *words], tmp_path).stdout for words in asked]
    assert "tokenizer triples" in said[0]
    store = Store(tmp_path / "my_store", "triples")
    expected = {triples.encode(read_midi(path, one_tempo=True)).tobytes() for path in world.midi.rglob("*.mid")}
    assert {piece.tobytes() for name in store.manifest.splits for piece in store.split(name)} == expected
    assert "triples: any token" in said[2]
    seed, (made,) = read_midi(tmp_path / "seed.mid"), (tmp_path / "mine").glob("*.mid")
    assert len(read_midi(made)) > len(seed)
    assert {path.name for path in (tmp_path / "mine").glob("*.png")} == {
        f"seed-{x}.png" for x in ("attention", "heads", "map", "positions")
    }
    # without its file it is gone, and what was made with it is refused
    for words, part in ((asked[0], "tokenizer 'triples' is"), (asked[2], "tokenizer=triples, .*triples.py adds it")):
        assert re.search(part, refused(["musictx", *words, "overwrite=true"], tmp_path))


def test_one_that_says_the_least_encodes_and_decodes(triples):
    """Without `trace`, `pitched`, `group` and `metrical`."""
    said = ("name", "vocab", "encode", "decode")
    least = type("Least", (Tokenizer,), {name: vars(type(triples))[name] for name in said})()
    score = Score([0.0, 0.5], [0.5, 1.0], [60, 64], [80, 80])
    assert least.decode(least.encode(score)) == triples.decode(triples.encode(score)) == score
    with pytest.raises(UserError, match="triples does"):
        least.trace(least.encode(score), 0.5)


@SHARED
@given(scores(max_notes=20))
def test_what_is_said_is_heard_again(triples, score):
    heard = triples.decode(triples.encode(score), score.quarter_s)
    assert len(heard) == len(score)
    assert triples.normalise(heard) == heard
    np.testing.assert_array_equal(triples.trace(triples.encode(score), 0.5).note, np.repeat(np.arange(len(score)), 3))
    shift = 1 if score.pitch.max(initial=0) < 127 else -1 if score.pitch.min() > 0 else 0  # 0 to 127 have no room
    higher = triples.decode(triples.transpose(triples.encode(score), shift))
    assert len(higher) == len(score)


@SHARED
@given(st.data())
def test_any_ids_are_music(triples, data):
    triples.decode(data.draw(ids(triples.vocab)))
