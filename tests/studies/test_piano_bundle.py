"""studies/piano_bundle.py: the mean of weights, the header, and a split that equal tensors read once."""

import json
from dataclasses import asdict, replace

import piano_bundle
import pytest
import torch

from musictx.commands.evaluate import file_hash
from musictx.model.build import build_model, model_config
from musictx.model.bundle import add_notes, load_bundle, read_header, save_bundle
from musictx.model.keyboard import Keys
from musictx.tokenizers import build_tokenizer
from musictx.training.start import keys_of


def test_weights_are_averaged_by_their_shares_and_the_header_says_whose_music_it_is(world, tmp_path):
    model, header = load_bundle(world.bundle)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    model.load_state_dict({name: x + 1 for name, x in before.items()})
    other, target = tmp_path / "other.safetensors", tmp_path / "new/piano.safetensors"
    save_bundle(other, model, replace(header, corpus="something else"))
    piano_bundle.write_mean([world.bundle, other], [0.75, 0.25], world.store, target)
    placed, said = load_bundle(target)
    for name, x in placed.state_dict().items():
        torch.testing.assert_close(x, (before[name] + 0.25).half().float())
    manifest = json.loads((world.store / "manifest.json").read_text())["corpus"]
    assert (said.corpus, said.licence) == (manifest["name"], manifest["licence"])
    assert (said.notes["name"], said.notes["averaged"], said.val_nll) == ("piano", [0.75, 0.25], None)
    assert said.model == header.model
    assert target.stat().st_size < 0.6 * other.stat().st_size


def test_what_ids_do_to_the_keyboard_is_no_average(world, tmp_path):
    tokenizer = build_tokenizer("performance")
    sizes = {"vocab_size": tokenizer.vocab.size, "d_model": 16, "n_layers": 1, "n_heads": 2, "keyboard": "both"}
    config = model_config("transformer", sizes)
    model = build_model(config, keys=keys_of(tokenizer))
    _, header = load_bundle(world.bundle)
    header = replace(header, tokenizer="performance", model={"kind": "transformer", **asdict(config)})
    for name in "one", "two":
        save_bundle(tmp_path / f"{name}.safetensors", model, header)
    sources = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    piano_bundle.write_mean(sources, [0.7, 0.3], world.store, tmp_path / "mean.safetensors")
    placed = load_bundle(tmp_path / "mean.safetensors")[0].keyboard
    for name in Keys._fields:
        assert torch.equal(getattr(placed, name), getattr(model.keyboard, name))


def test_a_header_may_change_and_no_split_is_read_again(world, tmp_path, capsys):
    bundle, results = tmp_path / "piano.safetensors", tmp_path / "results"
    piano_bundle.write_mean([world.bundle], [1.0], world.store, bundle)
    piano_bundle.score_all(bundle, world.store, results, test=False)
    first = json.loads((results / "piano-validation.json").read_text())
    assert [path.name for path in results.iterdir()] == ["piano-validation.json"]
    assert (first["segment"], first["weights"]) == (2048, "float32")
    assert first["bundle_sha256"] == file_hash(bundle)
    assert read_header(bundle).val_nll == first["per_token"][0]
    assert "kept" not in capsys.readouterr().out
    add_notes(bundle, seed_guidance=0.5)
    piano_bundle.score_all(bundle, world.store, results, test=False)
    assert "kept" in capsys.readouterr().out
    again = json.loads((results / "piano-validation.json").read_text())
    assert again == first | {"bundle_sha256": file_hash(bundle)}
    assert again["bundle_sha256"] != first["bundle_sha256"]
    assert read_header(bundle).seed_guidance == 0.5
    model, header = load_bundle(bundle)
    model.load_state_dict({name: x * 2 for name, x in model.state_dict().items()})
    save_bundle(bundle, model, header, torch.float16)
    piano_bundle.score_all(bundle, world.store, results, test=False)
    assert "kept" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pop", "chosen"),
    [([2.34, 2.30, 2.19, 2.18, 2.15], 0.7), ([2.34, 2.3, 2.28, 2.27, 2.26], 0.7), ([2.34, 2.35, 2.36, 2.37, 2.38], 0)],
)
def test_the_share_keeps_to_what_was_asked_of_pop(pop, chosen):
    hours = [1.83, 1.81, 1.825, 1.82, 1.84]
    rows = [
        {"share": share, "hour": hour, "pop": nats}
        for share, hour, nats in zip([0.0, *piano_bundle.SHARES], hours, pop, strict=True)
    ]
    assert piano_bundle.choose(rows) == chosen


def test_pop_is_scored_from_the_lowest_hour_on_until_a_share_is_able(monkeypatch, tmp_path):
    hour = dict(zip((0.0, *piano_bundle.SHARES), [1.80, 1.81, 1.82, 1.79, 1.83], strict=True))
    pop = dict(zip((0.0, *piano_bundle.SHARES), [2.1, 2.19, 2.18, 2.21, 2.1], strict=True))
    shares: list[float] = []
    scored = []

    def score(_, store, split, __):
        scored.append((store.name, shares[-1]))
        return {"per_token": [{"hour": hour, "pop": pop}[store.name][shares[-1]]]}

    monkeypatch.setattr(piano_bundle, "write_mean", lambda _, of, *__: shares.append(of[1]))
    monkeypatch.setattr(piano_bundle, "score", score)
    stores = [tmp_path / "hour", tmp_path / "pop"]
    rows = piano_bundle.shares_by_validation([], stores, tmp_path, tmp_path / "tried")
    assert [share for name, share in scored if name == "pop"] == [0.7, 0.0, 0.3]
    all_rows = [{"share": share, "hour": hour[share], "pop": pop[share]} for share in hour]
    assert piano_bundle.choose(rows) == piano_bundle.choose(all_rows) == 0.3
