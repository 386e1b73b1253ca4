"""What models see of the keyboard: the slow definition, causality, cached steps, and that it can be learned from."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import assert_same, learn

from musictx.model.build import build_model, model_config
from musictx.model.cache import KVCache
from musictx.model.keyboard import KeyboardState, as_product
from musictx.model.recurrent import RecurrentState
from musictx.model.settings import LONG_S
from musictx.model.static_steps import StaticSteps
from musictx.proof.kernels import results
from musictx.tokenizers import build_tokenizer, with_added
from musictx.tokenizers.gap import ADDED
from musictx.training.start import keys_of


def known_keys(tokenizer):
    keys = keys_of(tokenizer)
    assert keys is not None
    return keys


TOK = build_tokenizer("performance")
KEYS = known_keys(TOK)
V = TOK.vocab.size
SIZES = {"vocab_size": V, "d_model": 16, "n_layers": 2, "dropout": 0.0}
ATTENDS = {"n_heads": 2, "d_ff": 16, "max_distance": 8, "max_positions": 64, "trained_length": 16}


def build(kind="transformer", random_seed=0, keys=True, **more) -> Any:
    """A model whose keyboard already has a say."""
    torch.manual_seed(random_seed)
    sizes = SIZES | (ATTENDS if kind == "transformer" else {}) | {"keyboard": "head"} | more
    model = build_model(model_config(kind, sizes), keys=KEYS if keys else None).eval()
    for name, p in model.named_parameters():
        if name.startswith("keyboard."):
            torch.nn.init.normal_(p, std=0.3)
    return model


def stream(n, rows=1, random_seed=1):
    rng = np.random.default_rng(random_seed)
    on, off, wait = (TOK.vocab.offsets[name] for name in ("NOTE_ON", "NOTE_OFF", "TIME_SHIFT"))
    keys = rng.integers(60, 64, (2, rows, n))
    ids = np.stack([keys[0] + on, keys[1] + off, rng.integers(0, 100, (rows, n)) + wait])
    return torch.from_numpy(np.take_along_axis(ids, rng.integers(0, 3, (1, rows, n)), 0)[0])


def read(model, ids):
    """The state after ids (B, T)."""
    state = model.init_state(len(ids), 64)
    model.prefill(ids, state)
    return state


def by_definition(ids):
    """(T, 4, 128) one id after the other."""
    down, struck_s, now_s, out = np.zeros(128), np.full(128, -LONG_S), 0.0, []
    for i in ids:
        what = TOK.vocab.describe(int(i)).split()
        if what[0] == "BOS":
            down, struck_s = np.zeros(128), np.full(128, now_s - LONG_S)
        elif what[0] == "NOTE_ON":
            down[int(what[1])], struck_s[int(what[1])] = 1, now_s
        elif what[0] == "NOTE_OFF":
            down[int(what[1])] = 0
        elif what[0] == "TIME_SHIFT":
            now_s += int(what[1]) / 100
        age_s = now_s - struck_s
        out.append([down.copy(), down * np.exp(-age_s), down * np.log1p(age_s), np.exp(-age_s / 2)])
    return np.array(out)


IDS = st.one_of(
    st.integers(60, 62).map(lambda p: TOK.vocab.id("NOTE_ON", p)),
    st.integers(60, 62).map(lambda p: TOK.vocab.id("NOTE_OFF", p)),
    st.integers(1, 100).map(lambda s: TOK.vocab.id("TIME_SHIFT", s)),
    st.just(TOK.vocab.id("VELOCITY", 16)),
    st.just(TOK.vocab.bos),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(IDS, min_size=1, max_size=24), st.integers(0, 24))
def test_features_are_those_of_the_definition_wherever_the_stream_is_cut(ids, cut):
    keyboard = KeyboardState(V, 8)
    keyboard.learn(KEYS)
    state, found = keyboard.up(1), []
    for part in (ids[:cut], ids[cut:]):
        if part:
            features, state = keyboard.features(torch.tensor([part]), state)
            found.append(features[0].numpy())
    np.testing.assert_allclose(np.concatenate(found), by_definition(ids), atol=1e-5)


def test_after_many_minutes_an_age_is_as_exact():
    """One pass sees what blocks see, each with a clock that begins at 0."""
    state, ids = build().keyboard, stream(9000)
    whole, last = state.features(ids, state.up(1))
    assert state.wait_us[ids].sum() > 1_000e6  # microseconds
    parts, after = [], state.up(1)
    for start in range(0, 9000, 30):
        part, after = state.features(ids[:, start : start + 30], after)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(after, last, rtol=1e-9, atol=1e-9)


def test_the_ids_of_a_gap_let_go_of_all_keys():
    grown = with_added(TOK, ADDED)
    keyboard = KeyboardState(grown.vocab.size, 8)
    keyboard.learn(known_keys(grown))
    ids = [grown.vocab.id("NOTE_ON", 60), grown.vocab.id("BACK_32", 3), grown.vocab.id("NOTE_ON", 61)]
    features, _ = keyboard.features(torch.tensor([ids]), keyboard.up(1))
    assert features[0, :, 0, 60:62].tolist() == [[1, 0], [0, 0], [0, 1]]
    assert features[0, 1, 3, 60] == 0


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_no_logit_depends_on_later_ids_and_the_keys_have_a_say(kind):
    model, ids = build(kind), stream(12)
    other = torch.cat([ids[:, :7], stream(5, random_seed=9)], 1)
    with torch.inference_mode():
        assert torch.equal(model(ids)[:, :7], model(other)[:, :7])
        mute = build(kind, keys=False)  # the same weights, but no id moves a key
        assert not torch.allclose(model(ids), mute(ids))


@pytest.mark.parametrize(
    ("kind", "gained"),
    [("transformer", {"keyboard": "head"}), ("recurrent", {"keyboard": "head"}), ("transformer", {"conv": 4})],
)
def test_a_model_that_gains_a_keyboard_or_a_convolution_begins_as_the_same_model(kind, gained):
    sizes = SIZES | (ATTENDS if kind == "transformer" else {})
    with_it = build_model(model_config(kind, sizes | gained), keys=KEYS).eval()
    plain = build_model(model_config(kind, sizes)).eval()
    own = plain.state_dict().keys()
    plain.load_state_dict({name: x for name, x in with_it.state_dict().items() if name in own})
    with torch.inference_mode():
        assert torch.equal(with_it(stream(9)), plain(stream(9)))


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@torch.inference_mode()
def test_cached_steps_of_joined_rows_equal_the_full_pass_also_in_steps_of_one_shape_and_after_a_reset(kind):
    model, then = build(kind), stream(6, 3, 5)
    prompts = [stream(n, random_seed=n) for n in (3, 7, 5)]
    cache: Any = KVCache if kind == "transformer" else RecurrentState
    mine, theirs = (cache.join([read(model, prompt) for prompt in prompts]) for _ in range(2))
    fixed = StaticSteps(model) if kind == "transformer" else model
    for t in range(6):
        step = model.step(then[:, t], mine)
        torch.testing.assert_close(fixed.step(then[:, t], theirs), step)
        for row, prompt in enumerate(prompts):
            whole = torch.cat([prompt, then[row : row + 1, : t + 1]], 1)
            torch.testing.assert_close(step[row], model(whole)[0, -1], atol=1e-5, rtol=1e-4)
    assert torch.equal(mine.take(torch.tensor([2, 0])).keyboard, mine.keyboard[[2, 0]])
    if kind == "recurrent":
        mine.reset(torch.tensor([True, False, False]))
        assert torch.equal(mine.keyboard[0], model.keyboard.up(1)[0])
        assert mine.keyboard[1, 1].min() < LONG_S


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
@torch.inference_mode()
def test_a_model_of_bfloat16_follows_the_same_keys(kind):
    model, ids = build(kind), stream(40)
    exact = model(ids).log_softmax(-1)
    state = read(model, ids)
    rough = model.bfloat16()
    assert (rough(ids).float().log_softmax(-1) - exact).abs().mean() < 0.05
    assert torch.equal(read(rough, ids).keyboard, state.keyboard)


def test_which_key_is_down_is_learned_at_any_lag():
    """One key goes down, music of no pitch follows, and that key comes up: chance is log 12 = 2.48 nats."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    sizes = SIZES | ATTENDS | {"n_layers": 1, "position": "none", "max_positions": 99}
    model = build_model(model_config("transformer", sizes | {"keyboard": "head"}), keys=KEYS)

    def batch(lag=4):
        keys = torch.from_numpy(rng.integers(0, 12, (32, 1)) * 5 + 40)
        waits = torch.from_numpy(rng.integers(0, 9, (32, lag)) + TOK.vocab.offsets["TIME_SHIFT"])
        ids = torch.cat([keys + TOK.vocab.offsets["NOTE_ON"], waits], 1)
        return model(ids)[:, -1], keys[:, 0] + TOK.vocab.offsets["NOTE_OFF"]

    learn(model, batch, 1e-2, 40)
    with torch.inference_mode():  # ten times farther back than in training
        assert float(F.cross_entropy(*batch(40))) < 0.2 < math.log(12)


def test_which_tokens_move_keys():
    assert keys_of(build_tokenizer("chorale")) is None
    assert int(KEYS.key[TOK.vocab.id("NOTE_ON", 60)]) == int(KEYS.key[TOK.vocab.id("NOTE_OFF", 60)]) == 60


def test_a_gpus_product_with_a_band_is_the_convolution_over_keys():
    torch.manual_seed(0)
    near, f = KeyboardState(V, 8).near.double(), torch.randn(3, 4, 128).double()
    leaves = list(near.parameters())
    assert_same(results(lambda *_: as_product(near, f), leaves), results(lambda *_: near(f).mT, leaves))
