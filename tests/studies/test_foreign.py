"""studies/foreign.py: folds without copies, stores of each form, the mean of weights, the rules, a trial."""

from dataclasses import replace
from itertools import pairwise

import foreign
import numpy as np
import pytest
import torch
from conftest import QUICK, TINY

from musictx.data.store import Store
from musictx.model.bundle import load_bundle, save_bundle

pytestmark = pytest.mark.usefixtures("no_curves")


@pytest.fixture
def study(world, tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "FOLDS", 2)
    official = Store(world.hymn_store, "chorale")
    other = [replace(piece, name=f"other {piece.name}") for piece in foreign.pieces_of(official, ("test",))]
    return foreign.Study(official, {"fakes": other * 3, "polish": other}, tmp_path, 0.001)


def test_alike_pieces_share_a_fold():
    sketches = np.arange(20 * 128).reshape(20, 128).astype(np.uint32)
    sketches[7] = sketches[3]
    found = foreign.folds(list(sketches))
    assert found[7] == found[3]
    assert np.bincount(found).min() >= 3
    assert found == foreign.folds(list(sketches))


def test_a_fold_is_never_learned_with_its_store(study):
    held_out = {p.name for p, k in zip(study.bach, study.fold_of, strict=True) if k == 1}
    for names, before in ((), False), (("fakes", "polish"), True), (("fakes", "polish"), False):
        store = Store(study.store(names, before, 1), "chorale")
        learned = store.split("train").names
        assert {name.removeprefix("held out: ") for name in store.split("validation").names} == held_out
        assert not {name.rpartition(" ")[0] for name in learned} & held_out
        assert any(name.startswith("other") for name in learned) == bool(names)
    beside = [name for name in learned if not name.startswith("other")]
    assert len(beside) % (len(study.bach) - len(held_out)) == 0


def test_the_mean_of_weights(world, tmp_path):
    model, header = load_bundle(world.hymn_bundle)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict({name: 3 * value for name, value in before.items()})
    save_bundle(tmp_path / "b.safetensors", model, header)
    for name, value in foreign.averaged([world.hymn_bundle, tmp_path / "b.safetensors"]).state_dict().items():
        torch.testing.assert_close(value, 2 * before[name])


def test_the_rules_choose_form_then_length_then_the_mean(study, monkeypatch):
    def nats(recipe):
        worth = {"Polish before": 0.2, "both before": 0.1}.get(recipe.form, 0.0)
        return {"nll": 1 - worth - 0.01 * recipe.length - 0.001 * recipe.averaged}

    monkeypatch.setattr(study, "nats", nats)
    chosen, alone = study.choice(form_only=False)
    assert chosen == foreign.Recipe("Polish before", 2.0, True)
    assert alone == chosen._replace(form="Bach alone")
    assert study.choice(form_only=True) == [foreign.Recipe("Polish before"), foreign.Recipe("Bach alone")]


def test_a_trial_learns_foreign_music_first(study, world):
    study.overrides = [*TINY, *QUICK]
    paths = study.learn(foreign.Recipe("JS Fakes before", averaged=True), 0)
    assert [path.parent.name for path in paths] == ["last-0", "last-1", "last-2"]
    states = [load_bundle(path)[0].state_dict() for path in paths]
    assert any(not torch.equal(a[name], b[name]) for a, b in pairwise(states) for name in a)
    assert np.isfinite(study.nats(foreign.Recipe("JS Fakes before"))["nll"])
