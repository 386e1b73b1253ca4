"""studies/transposition.py: each random seed learns with its own words, and the mean of their nats is the figure."""

import json

import pytest
import torch
import transposition
from chorales import TEMPERATURES, divide_logits

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.data.store import Store
from musictx.model.bundle import load_bundle, save_bundle


def test_the_mean_of_three_seeds_at_the_temperature_of_pieces_held_out(world, tmp_path, monkeypatch):
    store = Store(world.hymn_store, "chorale")
    asked = []

    def learn(recipe, store, folder, validations, overrides):
        """Seed n has the logits of the hymn model, sharper by a tenth of n."""
        asked.append((folder.name, overrides))
        seed = next(int(word.partition("=")[2]) for word in overrides if word.startswith("random_seed="))
        model, header = load_bundle(world.hymn_bundle)
        divide_logits(model, 1 - seed / 10)
        path = tmp_path / f"{folder.name}.safetensors"
        save_bundle(path, model, header, torch.float16)
        return path

    monkeypatch.setattr(transposition, "learn", learn)
    monkeypatch.setattr(transposition, "selection_store", lambda *_: store)
    chosen_on = []

    def nll_by_temperature(model, split, tokenizer):
        chosen_on.append((asked[-1][0], split.names))
        return [2.0, 1.0, 3.0]

    monkeypatch.setattr(transposition, "nll_by_temperature", nll_by_temperature)
    monkeypatch.setattr("sys.argv", ["x", "--store", str(world.hymn_store), "--out", str(tmp_path / "out"), "--test"])
    transposition.main()
    found = json.loads((tmp_path / "out" / "transposition.json").read_text())
    best = TEMPERATURES[1]
    assert {found[f"{name}, held out"]["temperature"] for name in transposition.SEMITONES} == {best}
    held_out = store.split("validation").names
    assert chosen_on == [(f"{name} 0 {world.hymn_store.name}", held_out) for name in transposition.SEMITONES]
    row = found[f"transposed, test, temperature {best:g}"]
    by_hand = []
    for seed in transposition.SEEDS:
        model, _ = load_bundle(tmp_path / "out" / f"transposed {seed}.safetensors")
        divide_logits(model, best)
        by_hand.append(negative_log_likelihood(model, store.split("test"), store.tokenizer, None).nll)
    assert [seed["nll"] for seed in row["seeds"]] == pytest.approx(by_hand)
    assert len(set(by_hand)) == 3
    assert row["nll"][0] == pytest.approx(sum(by_hand) / 3)
    words = {folder: overrides[:2] for folder, overrides in asked}
    assert words["as written 2 " + world.hymn_store.name] == ["data.transpose=0", "random_seed=2"]
    assert words["transposed 1 " + world.hymn_store.name] == ["data.transpose=5", "random_seed=1"]
