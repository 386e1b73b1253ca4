"""A seed that stays in sight, against keys that are chosen one by one; and models that cannot keep one."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from musictx.errors import ConfigError
from musictx.model.build import build_model, model_config
from musictx.model.pinned import Pinned, check_pinned
from musictx.model.position.form import Form
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.sampling.engine import prefill

V, WINDOW = 23, 24
FORMS: dict[str, dict[str, Any]] = {
    "relative": {"position": "relative"},
    "reference": {"position": "relative", "attention": "reference"},
    "fourier": {"position": "relative_fourier", "n_frequencies": 3},
    "rope": {"position": "rope"},
    "none": {"position": "none"},
    "fourier in time": {"position": "relative_fourier", "n_frequencies": 3, "clock": "time"},
    "rope in time, in beats": {"position": "rope", "clock": "time", "cycle": 4},
    "fourier in beats": {"position": "relative_fourier", "n_frequencies": 3, "cycle": 4, "value_residual": True},
}
CONFIG = TransformerConfig(V, 24, 2, 3, 48, 0.0, max_distance=9, trained_length=WINDOW, attention="auto")


def build(**changes) -> Transformer:
    torch.manual_seed(0)
    pace = torch.arange(V) % 4 / 4
    return Transformer(replace(CONFIG, **changes), pace).double().eval()


def tokens(n, seed=1) -> torch.Tensor:
    return torch.randint(0, V, (n,), generator=torch.Generator().manual_seed(seed))


class ByHand:
    """All keys of one row, as they were made; a step is shown the seed's, moved, and the newest: no ring, no mask."""

    def __init__(self, model, n_seed):
        self.model, self.n_seed, self.length = model, n_seed, 0
        self.keys, self.clocks = {}, []
        self.clock, self.masked, self.age = torch.zeros(1, 1, dtype=torch.float64), None, None

    def begin(self, t):
        index = torch.arange(self.length, self.length + t, dtype=torch.float64)[None]
        seen, period = self.length + t, self.model.cycle
        self.shown, self.by, self.age = list(range(seen)), 0, None
        if seen > WINDOW:
            newest = list(range(seen))[-(WINDOW - self.n_seed - period + 1) :]
            self.by = 0
            while self.n_seed + self.by + period <= newest[0]:  # as near as whole cycles go
                self.by += period
            self.shown = [*range(self.n_seed), *newest]
            places = [i + self.by for i in range(self.n_seed)] + newest
            assert places == sorted(set(places))
            assert seen - places[0] <= WINDOW
            self.age = seen - 1 - torch.tensor(places)
        return index

    keyboard: torch.Tensor | None = None

    def append(self, layer, k, v):
        old = self.keys.get(layer)
        k, v = (k, v) if old is None else (torch.cat([old[0], k], 2), torch.cat([old[1], v], 2))
        self.keys[layer] = k, v
        k, v = k[:, :, self.shown], v[:, :, self.shown]
        if self.by:
            by = float(self.by)
            if self.model.config.clock == "time":
                by = self.clocks[self.n_seed + self.by - 1] - self.clocks[self.n_seed - 1]
            form = self.model.blocks[layer].attend
            seed = form.moved(k[:, :, : self.n_seed], torch.tensor([[by]], dtype=torch.float64))
            k = torch.cat([seed, k[:, :, self.n_seed :]], 2)
        return k, v

    def advance(self, t, clock):
        assert t == 1
        self.length, self.clock = self.length + 1, clock
        self.clocks.append(float(clock))


@pytest.mark.parametrize("name", FORMS)
@torch.inference_mode()
def test_a_step_sees_the_seed_moved_and_the_newest_each_row_as_alone(name):
    model, prompts, seeds = build(**FORMS[name]), [tokens(6), tokens(11, 2), tokens(4, 3)], [6, 11, 0]
    of_row = [0, 1, 2, 1]
    _, state = prefill(model, prompts, of_row, WINDOW, True)
    pinned = Pinned.of_rows(state, [seeds[i] for i in of_row], model)
    then = torch.stack([tokens(70, 10 + row) for row in range(4)])
    got = torch.stack([model.step(then[:, t], pinned) for t in range(70)], 1)
    for row, i in enumerate(of_row):
        if seeds[i]:
            hand = ByHand(model, seeds[i])
            for id_ in prompts[i]:
                model.step(id_[None], hand)
        else:  # a row that keeps nothing goes on as in a cache that rolls
            _, hand = prefill(model, [prompts[i]], [0], WINDOW, True)
        expected = torch.cat([model.step(then[row, t][None], hand) for t in range(70)])
        torch.testing.assert_close(got[row], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["fourier", "rope", "fourier in time"])
@torch.inference_mode()
def test_moved_keys_are_those_of_a_later_place(name):
    model = build(**FORMS[name])
    form, k = model.blocks[1].attend, torch.randn(2, 3, 5, 8, dtype=torch.float64)
    assert isinstance(form, Form)
    at, by = torch.rand(2, 5, dtype=torch.float64) * 30, torch.tensor([[7.25], [1000.5]], dtype=torch.float64)
    moved = form.moved(form.keys(k, form.phase(at, k.dtype)), by)
    torch.testing.assert_close(moved, form.keys(k, form.phase(at + by, k.dtype)), rtol=1e-5, atol=1e-6)


@torch.inference_mode()
def test_what_was_in_the_seed_is_still_heard_after_many_windows():
    model = build(position="relative_fourier", n_frequencies=3)
    then, answers = tokens(200, 5)[None], {}
    for pinned in (False, True):
        for changed in (0, 1):
            seed = tokens(6).clone()
            seed[2] = (seed[2] + changed) % V
            _, state = prefill(model, [seed], [0], WINDOW, True)
            state = Pinned.of_rows(state, [6], model) if pinned else state
            for t in range(200):
                answers[pinned, changed] = model.step(then[:, t], state)
    assert torch.equal(answers[False, 0], answers[False, 1])  # two layers carry nothing over eight windows
    assert not torch.allclose(answers[True, 0], answers[True, 1])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"position": "sinusoidal"}, "seed_pinned=true: position=sinusoidal fixes the position of a key"),
        ({"position": "learned"}, "seed_pinned=true: position=learned fixes"),
        ({"attention": "chunked"}, "seed_pinned=true: attention=chunked needs keys in order; choose one of auto"),
        (
            {"n_seed": 17},
            "seed_pinned=true: the primer has 17 tokens, and may take 16 of a window of 24; give a shorter",
        ),
        ({"n_seed": 14, "cycle": 4}, "seed_pinned=true: the primer has 14 tokens, and may take 13 of a window of 24;"),
    ],
)
def test_what_cannot_keep_a_seed_is_refused(changes, text):
    n_seed = changes.pop("n_seed", 6)
    with pytest.raises(ConfigError, match=text):
        check_pinned(build(**changes), n_seed, WINDOW)


def test_a_recurrent_model_keeps_no_keys():
    model = build_model(model_config("recurrent", {"vocab_size": V, "d_model": 8}))
    with pytest.raises(ConfigError, match="seed_pinned=true: kind=recurrent has no keys to keep"):
        check_pinned(model, 6, WINDOW)
