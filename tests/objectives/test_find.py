"""`objective=` as a person gives it."""

import pytest
from toys import Infill

from musictx.errors import ConfigError
from musictx.objectives import build_objective, find_objective
from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("chorale")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nxt", ""),
        ("nowhere:Mine", ""),
        ("toys:PAIR", ""),
        ("toys:Pair", "Pair .*added, inputs"),
        ("wrong_here:Mine", ""),
    ],
)
def test_what_is_no_objective(name, text, tmp_path, monkeypatch):
    (tmp_path / "wrong_here.py").write_text("class Mine\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"^objective={name}: {text}") as caught:
        find_objective(name)
    assert "\n" not in str(caught.value)


def test_settings_go_to_the_objective_and_others_are_refused():
    infill = build_objective("toys:Infill", {"plain": 0.25}, TOK)
    assert isinstance(infill, Infill)
    assert infill.plain == 0.25
    for name, settings, text in (
        ("toys:Infill", {"plian": 0.25}, ".plian=0.25: .*objective=toys:Infill .*plain"),
        ("next_token", {"p": 1}, ".p=1: .*objective=next_token "),
        ("toys:Infill", 0.5, "=0.5: "),
    ):
        with pytest.raises(ConfigError, match=f"^objective_settings{text}"):
            build_objective(name, settings, TOK)


def test_the_tokenizer_of_an_objective_has_its_ids():
    vocab = build_objective("toys:Infill", None, TOK).tokenizer.vocab
    assert [vocab.id(name) for name in ("PAD", "BOS", "EOS", "TO", "FILL", "END")] == [89, 90, 91, 92, 93, 94]
    assert TOK.vocab.size == 92  # as it was
    assert build_objective("next_token", None, TOK).tokenizer is TOK
