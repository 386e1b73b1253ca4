"""Particles: rows of one piece of music that replace each other are in every part what they replaced."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.draw import continue_primers
from musictx.generate.engine import BatchRow, begin_stream
from musictx.generate.particles import Particles, random_keys, relative_gain
from musictx.generate.primer import make_prompt
from musictx.generate.requests import PLAIN, Continue, Length
from musictx.generate.steering import Steering
from musictx.model.build import build_model, model_config
from musictx.model.static_steps import StaticSteps
from musictx.model.torch_steps import TorchPlayer
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules
from musictx.training.start import keys_of

PIANO, GRID = build_tokenizer("performance"), build_tokenizer("chorale")
ASKED = {
    "performance": Control(chords="C | F#", density=9, polyphony=3, bar_seconds=0.5),
    "chorale": Control(chords="C F | G"),
}


def build(kind, tokenizer):
    torch.manual_seed(0)
    kind = "recurrent" if kind == "lstm" else "transformer"
    sizes: dict[str, Any] = {"d_model": 16, "n_layers": 2, "keyboard": "head" if tokenizer is PIANO else "none"}
    attends = {"n_heads": 2, "d_ff": 32, "conv": 3, "position": "relative_fourier"} if kind == "transformer" else {}
    model = build_model(model_config(kind, sizes | attends, vocab_size=tokenizer.vocab.size), keys=keys_of(tokenizer))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return model.eval()


@pytest.mark.parametrize(
    ("kind", "tokenizer", "guidance"),
    [("transformer", PIANO, 1.0), ("static", PIANO, None), ("lstm", PIANO, None), ("transformer", GRID, 1.0)],
)
def test_rows_that_moved_continue_as_what_they_were(kind, tokenizer, guidance):
    model = build(kind, tokenizer)
    prompts = [make_prompt(None, tokenizer, None)] * 4
    bare = [prompts[0].context] if guidance is not None else []
    grammar, fresh = (build_grammar(tokenizer, Rules(), [p.ids for p in prompts], [0.5] * 4) for _ in range(2))
    steering, led = (Steering(ASKED[tokenizer.name], tokenizer, prompts) for _ in range(2))
    rows = [BatchRow(0, key) for key in random_keys(3, 1, 4)]
    sampling = replace(PLAIN, seed_guidance=guidance)
    player = TorchPlayer(StaticSteps(model) if kind == "static" else model)
    stream = begin_stream(player, [prompts[0].context], rows, sampling, grammar, 64, False, bare, steering)
    ids, log_p = np.zeros((4, 0), np.int64), np.zeros((4, 0))
    for step in range(40):
        if step in (9, 22, 23):
            order = np.array([[2, 0, 0, 3], [1, 1, 1, 0], [3, 2, 1, 0]][step % 3])
            stream.move(order)
            ids, log_p = ids[order], log_p[order]
        each = next(stream)
        ids, log_p = np.column_stack([ids, each.ids]), np.column_stack([log_p, each.log_p])
    heard = np.tile(prompts[0].context, (4, 1))
    with torch.inference_mode():
        logits = model(torch.from_numpy(np.concatenate([heard, ids], 1)))[:, heard.shape[1] - 1 : -1]
        whole = logits.log_softmax(-1).gather(2, torch.from_numpy(ids)[..., None])[..., 0]
    np.testing.assert_allclose(log_p, whole.numpy(), atol=1e-4, rtol=1e-4)
    for step in range(40):
        fresh.update(ids[:, step])
        led.update(ids[:, step])
    np.testing.assert_array_equal(grammar.legal(), fresh.legal())
    some = np.random.default_rng(0).normal(size=(4, tokenizer.vocab.size))
    for mine, new in zip(steering(some), led(some), strict=True):
        np.testing.assert_allclose(mine, new, rtol=1e-12)


def two_worlds():
    """The first note decides: after a low one the model likes C major, after a high one it dislikes all of it."""
    vocab = PIANO.vocab
    on, pitch = vocab.mask("NOTE_ON"), PIANO.pitch
    in_c = 1.0 * (on & np.isin(pitch % 12, [0, 4, 7]))
    return np.where(on, 0.0, -6.0) + 3.0 * vocab.mask("NOTE_OFF"), in_c, on, pitch


class Worlds:
    """Rows that remember which world each is in; and who begins them."""

    window, cycle = 64, 1

    def __init__(self, rows=1):
        self.world = np.zeros(rows)
        self.always, self.in_c, self.on, self.pitch = two_worlds()

    def begin(self, room, rolling=False):
        return Worlds()

    def join(self, parts, of_row):
        return Worlds(len(of_row))  # only BOS is read before: no row is in a world

    def prefill(self, ids):
        for id_ in ids.T:
            begins = (self.world == 0) & self.on[id_]
            self.world = np.where(begins, np.where(self.pitch[id_] < 60, 1.0, -1.0), self.world)
        return self.always + 4 * self.world[:, None] * self.in_c

    def step(self, ids):
        return self.prefill(ids[:, None])

    def move(self, rows):
        self.world = self.world[rows]


def low_first(particles, **more):
    """Which variations are of the world where the model itself likes the chord: their notes are likelier."""
    control = Control(chords="C", strength=8.0, particles=particles)
    rules = Rules(max_polyphony=20)
    asked = Continue(PLAIN, Length(tokens=96), rules=rules, control=control, variations=12, random_seed=2)
    (found,) = continue_primers([None], Worlds(), PIANO, replace(asked, **more))
    return [each.mean_log_p > -7.9 for each in found], found


def test_particles_find_the_music_in_which_the_model_likes_the_chords():
    assert 2 <= sum(low_first(1)[0]) <= 10
    assert sum(low_first(8)[0]) == 12


def test_a_variation_is_the_same_whatever_else_is_drawn():
    _, together = low_first(4, variations=4)
    for more in ({"rows_at_once": 1, "variations": 4}, {"variations": 2}):
        _, found = low_first(4, **more)
        assert [each.score for each in found] == [each.score for each in together[: len(found)]]


def test_a_row_with_many_notes_is_no_worse_than_one_with_few():
    """Notes and waits of the first two rows are equally easy; the third has easier ones."""
    ease = np.array([[0.0, -8.0], [-6.0, -2.0], [0.0, -1.0]])
    drawn = np.array([[0.0, 4.0], [3.0, 1.0], [2.0, 2.0]])
    both, all_three = np.ones(2, dtype=bool), np.ones(3, dtype=bool)
    gained = relative_gain(ease[:2], drawn[:2], 2, both)
    np.testing.assert_allclose(gained, [0.0, 0.0], atol=1e-12)
    assert relative_gain(ease, drawn, 3, all_three).argmax() == 2
    assert relative_gain(ease, drawn, 3, np.array([True, True, False])).tolist() == pytest.approx([0.0, 0.0, 0.0])


def test_one_row_of_each_weight_survives():
    class Still:
        moved = None

        def gains(self):
            notes = np.array([-3.0, -2.7, -3.0, 0.0, 50.0, 0.0])
            return np.stack([np.zeros(6), notes], 1), np.ones((6, 2)), np.array([0.0, 0.0, 0.0, 0.5, 0.5, 0.5])

        def move(self, rows):
            self.moved = rows

    stream: Any = Still()
    particles = Particles(stream, 3, [*random_keys(0, 0, 3), *random_keys(0, 1, 3)])
    assert particles.look().tolist() == stream.moved.tolist() == [0, 1, 2, 4, 4, 4]
    assert particles.look(last=True).tolist() == list(range(6))  # none moves at the end
    particles.worth[:] = -0.1, 0.2, -0.1, 0.0, 0.0, 0.0
    assert particles.best().tolist() == [1, 3]
    assert particles.best(np.array([True, False, True, False, False, True])).tolist() == [0, 5]  # whole ones first


@pytest.mark.parametrize("many", [0, 65])
def test_the_number_is_checked(many):
    with pytest.raises(ConfigError, match=f"^particles={many}: give 1 to 64, or auto"):
        Control(key="C", particles=many)
    with pytest.raises(ConfigError, match="^particles=2: .*key="):
        Control(particles=2)
    assert [Control().rows, Control(key="C").rows, Control(key="C", particles=1).rows] == [1, 4, 1]
    greedy = Continue(replace(PLAIN, temperature=0.0), control=Control(key="C"))
    assert greedy.rows_each == 1, "all would be the same"
    with pytest.raises(ConfigError, match="^particles=many: give 1 to 64, or auto"):
        Control(key="C", particles="many")
