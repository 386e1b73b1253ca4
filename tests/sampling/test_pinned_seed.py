"""`seed_pinned=true` from the outside: what is drawn, each row as alone, with guidance too; what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import refused
from test_music import LONGER, SEED, build, same

from musictx.errors import ConfigError
from musictx.model.static_steps import StaticSteps
from musictx.music.score import Meter
from musictx.sampling.music import Drawing, continue_primers
from musictx.sampling.primer import Primer
from musictx.sampling.settings import PLAIN, Length, Sampling, Settings

WINDOW = 64
PINNED = Settings(PLAIN, Length(tokens=90), seed_pinned=True, window=WINDOW)
GUIDED = Sampling(seed_guidance=1.0, guidance_tokens=3)


def primer(score) -> Primer:
    return Primer(score, score.duration_s, Meter(score.quarter_s))


@pytest.mark.parametrize("position", ["relative", "relative_fourier", "rope"])
@pytest.mark.parametrize("sampling", [PLAIN, GUIDED])
def test_it_changes_nothing_before_the_window_is_full_and_something_after(position, sampling):
    model, tokenizer = build("performance", position)
    model.double()

    def drawn(on):
        settings = PINNED._replace(seed_pinned=on, sampling=sampling)
        drawing = Drawing([primer(LONGER)], model, tokenizer, settings)
        return torch.cat([each.log_p for each in drawing]), WINDOW - len(drawing.prompts[0].heard)

    (plain, left), (pinned, _) = drawn(False), drawn(True)
    assert left > 10
    assert torch.equal(plain[: left + 1], pinned[: left + 1])  # the last of them is chosen by a full window
    assert not torch.equal(plain, pinned)


@pytest.mark.parametrize("sampling", [PLAIN, GUIDED])
def test_several_seeds_in_one_batch_are_each_as_if_alone(sampling):
    model, tokenizer = build("performance", "relative_fourier")
    model.double()
    settings, primers = PINNED._replace(sampling=sampling), [primer(SEED), primer(LONGER)]
    together = continue_primers(primers, model, tokenizer, settings, 2)
    for one, both in zip(primers, together, strict=True):
        alone = continue_primers([one], model, tokenizer, settings._replace(rows_at_once=1), 2)[0]
        assert all(same(a, b) for a, b in zip(alone, both, strict=True))


def test_what_cannot_be_is_told():
    model, tokenizer = build("performance")
    long = primer(replace(LONGER, velocity=np.arange(9, dtype=np.uint8) * 8 + 8))
    for given, seed, changes, text in (
        (model, None, {}, "seed_pinned=true: there is no seed to keep in sight; give one, or leave it out"),
        (model, long, {"window": 30}, "seed_pinned=true: the primer has 37 tokens, and may take 22 of a window of 30"),
        (StaticSteps(model), long, {}, "seed_pinned=true: graph=true cannot keep the seed in sight"),
        (model, long, {"sampling": Sampling(beams=2, top_p=None)}, "seed_pinned=true: beams cannot keep the"),
    ):
        with pytest.raises(ConfigError, match=text):
            Drawing([seed], given, tokenizer, PINNED._replace(**changes))


def test_the_command_tells_it(world, tmp_path):
    line = refused(["musictx", "generate", f"bundle={world.bundle}", "seed_midi=elise", "seed_pinned=true"], tmp_path)
    assert line.startswith("error: seed_pinned=true: the primer has ")
    assert "may take 24 of a window of 32; give a shorter one" in line
