"""Filling a gap, an objective from outside the package: what training makes of it."""

import pytest
import torch
from runs import config_of, curve, fit

from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle
from musictx.model.header import read_header

STEPS = ["trainer.log_every=1", "trainer.max_steps=4", "trainer.validate_every=4", "data.length=32"]
FILL = ["objective=toys:Infill", "model.dropout=0", *STEPS]


@pytest.fixture(scope="module")
def tuned(world, tmp_path_factory):
    return fit(config_of(world, tmp_path_factory.mktemp("tuned") / "run", *FILL, f"init_from={world.bundle}"))


def test_it_begins_with_a_bundle_of_the_next_token_and_its_own_is_a_beginning_of_one(world, tuned, tmp_path, capsys):
    before, after = load_bundle(world.bundle).model.embed.weight, load_bundle(tuned).model.embed.weight
    assert (before.shape, after.shape) == ((391, 16), (394, 16))
    header = read_header(tuned)
    added = [["TO", 0, 0], ["FILL", 0, 0], ["END", 0, 0]]
    assert header.objective == {"name": "toys:Infill", "settings": {}, "added": added, "length": 32}
    assert header.vocab_fingerprint == read_header(world.bundle).vocab_fingerprint
    with pytest.raises(ConfigError, match=r"^init_from=.* objective=toys:Infill \(TO, FILL, END\)"):
        fit(config_of(world, tmp_path / "other", "objective=infill", *STEPS, f"init_from={tuned}"))
    capsys.readouterr()
    back = fit(config_of(world, tmp_path / "back", *STEPS, "trainer.lr=1e-9", f"init_from={tuned}"))
    assert "(TO, FILL, END): objective=toys:Infill keeps them" in (capsys.readouterr().out)
    assert read_header(back).objective == {}
    torch.testing.assert_close(load_bundle(back).model.embed.weight, after[:391], atol=1e-6, rtol=0)


def test_the_chance_in_an_example_is_a_function_of_its_number(world, tuned, tmp_path):
    parts = fit(config_of(world, tmp_path / "two", *FILL, f"init_from={world.bundle}", "data.workers=2"))
    assert curve(parts.parent) == curve(tuned.parent)
