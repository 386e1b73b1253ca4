"""studies/accompany_pop.py compares models of one size, all of which its commands can train."""

import sys

import pytest
from conftest import ROOT

from musictx.config.app import settings
from musictx.tokenizers import build_tokenizer
from musictx.training.preflight import check_trainer
from musictx.training.start import objective_of, starting_model

sys.path.insert(0, str(ROOT / "studies"))
from accompany_pop import POP909


def test_its_models_are_of_one_size_and_of_the_objectives_they_are_named_for():
    tokenizer, sizes, objectives = build_tokenizer(POP909.tokenizer), [], []
    for words in POP909.models.values():
        config = settings("train", *POP909.common, *words, "data.path=store", "out=run")
        check_trainer(config)
        objective = objective_of(config, tokenizer)
        model = starting_model(config, objective.tokenizer)
        sizes.append(sum(p.numel() for p in model.parameters()))
        objectives.append(config.objective)
        assert config.data.segment == POP909.segment == config.data.length
    assert objectives == ["conditional", "conditional", "melody_first", "lower_voices"]
    assert max(sizes) == pytest.approx(min(sizes), rel=0.05)
