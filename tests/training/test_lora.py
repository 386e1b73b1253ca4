"""Learning adapters beside the frozen weights of a bundle."""

import pytest
import torch
from runs import RECURRENT, config_of, fit, losses

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle, read_header
from musictx.model.lora import add_adapters
from musictx.model.transformer import Transformer
from musictx.training.module import LanguageModelTraining

LORA = ["trainer.lora_rank=2", "trainer.lr=3e-2", "trainer.warmup_steps=1", "trainer.log_every=1"]


def adapted(world, rank=2):
    torch.manual_seed(0)
    model = load_bundle(world.bundle).model
    assert isinstance(model, Transformer)
    add_adapters(model, rank)
    return model


def nll(model, world):
    store = Store(world.store)
    return negative_log_likelihood(model, store.split("validation"), store.tokenizer, None).nll


def test_it_begins_as_the_bundle_itself(world, tmp_path):
    ids = torch.arange(40).view(2, 20)
    bundle = load_bundle(world.bundle).model
    assert torch.equal(adapted(world).eval()(ids), bundle(ids))
    still = fit(config_of(world, tmp_path / "run", f"init_from={world.bundle}", *LORA, "trainer.lr=1e-30"))
    assert float(losses(still.parent)[-1]["val/nll"]) == pytest.approx(nll(bundle, world), abs=1e-5)


@pytest.mark.parametrize("more", ["", "trainer.optimizer=muon trainer.ema_decay=0.5"], ids=["adamw", "muon and ema"])
def test_only_the_adapters_learn_and_the_bundle_knows_nothing_of_them(world, tmp_path, monkeypatch, capsys, more):
    trained = []
    monkeypatch.setattr(LanguageModelTraining, "on_train_end", lambda self: trained.append(self.model))
    settings = [f"init_from={world.bundle}", *LORA, *more.split(), "trainer.weight_decay=0.1"]
    bundle = fit(config_of(world, tmp_path / "run", *settings))
    # ranks of 2 beside matrices of 48 by 16, 16 by 16, 32 by 16 and 16 by 32
    assert "LoRA rank 2: 384 parameters learn" in capsys.readouterr().out
    before, after = load_bundle(world.bundle).model, load_bundle(bundle).model
    old, new = before.state_dict(), after.state_dict()
    best = load_bundle(bundle.parent / "checkpoints" / "best.ckpt").model.state_dict()  # opens like a bundle
    assert all(torch.equal(best[name], new[name]) for name in new)
    assert list(new) == list(old)
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed == {f"blocks.0.{layer}.weight" for layer in ("qkv", "project", "up", "down")}
    assert all(torch.linalg.matrix_rank(new[name] - old[name], rtol=1e-3) <= 2 for name in changed)
    assert read_header(bundle).val_nll == pytest.approx(nll(after, world), abs=1e-5)
    assert read_header(bundle).val_nll < nll(before, world)
    if not more:  # where the best are the last weights, not an average
        ids = torch.arange(40).view(2, 20)
        assert torch.equal(trained[0].eval()(ids), after(ids))


@pytest.mark.parametrize(("rank", "allowed"), [(0, "1 or more"), (-1, "1 or more"), (17, "1 to 16")])
def test_ranks_that_cannot_be(world, tmp_path, rank, allowed):
    with pytest.raises(ConfigError, match=f"^lora_rank={rank}: .*give {allowed}"):
        fit(config_of(world, tmp_path / "run", f"init_from={world.bundle}", f"trainer.lora_rank={rank}"))
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_adapted(world, tmp_path):
    with pytest.raises(ConfigError, match="^lora_rank=2: "):
        fit(config_of(world, tmp_path / "run", "trainer.lora_rank=2"))
    lstm = fit(config_of(world, tmp_path / "lstm", "trainer.max_steps=1", model=RECURRENT))
    # the settings around it are a transformer's: what counts is the bundle
    for setting in ("lora_rank=2", "checkpoint_activations=true"):
        with pytest.raises(ConfigError, match=f"^{setting}: kind=recurrent "):
            fit(config_of(world, tmp_path / "run", f"init_from={lstm}", f"trainer.{setting}"))
