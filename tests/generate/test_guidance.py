"""Seed guidance against its definition, for every kind of model, in any batch."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from stubs import continued
from test_music import LONGER, SEED, build, same

from musictx.errors import ConfigError
from musictx.generate.draw import continue_primers
from musictx.generate.engine import BatchRow, Uniforms, begin_stream
from musictx.generate.filters import CUT, draw, guide, softmax
from musictx.generate.primer import BARE, Primer, bare_prompt, make_prompt
from musictx.generate.requests import PLAIN, Continue, Length, Sampling
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.static_steps import StaticSteps
from musictx.model.torch_steps import TorchPlayer
from musictx.model.weights import for_steps
from musictx.music.score import Meter
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules

PRIMER = Primer(LONGER, 2.7, Meter(0.6))
N = 24  # tokens
HELD_ON = Continue(replace(PLAIN, seed_guidance=2.0), Length(tokens=60), random_seed=7)


def ln(*p):
    return np.log([p])


def test_what_the_seed_makes_likelier_is_raised_among_what_is_likely_at_all():
    with_seed, without = ln(0.6, 0.3, 0.095, 0.005), ln(0.3, 0.6, 0.099, 0.001)
    p = softmax(guide(with_seed, without, 1.0))[0]
    odds = np.array([0.6**2 / 0.3, 0.3**2 / 0.6, 0.095**2 / 0.099, 0.0])  # 0.005 is below a hundredth of 0.6
    np.testing.assert_allclose(p, odds / odds.sum())
    cut_alone = softmax(guide(with_seed, without, 0.0))[0]
    np.testing.assert_allclose(cut_alone, np.array([0.6, 0.3, 0.095, 0.0]) / 0.995)


def lstm(name):
    _, tokenizer = build(name)
    torch.manual_seed(0)
    return Recurrent(RecurrentConfig(tokenizer.vocab.size, d_model=16, n_layers=2, recall=True)).eval(), tokenizer


def told_apart(model):
    """Weights large enough that what is far behind matters."""
    with torch.no_grad():
        for p in model.parameters():
            p *= 3
    return model.double()


def slowly(model, tokenizer, primer, sampling, n, key):
    """The definition: two full passes a token, one over the seed and all that was drawn, one over the seed's end."""
    prompt = make_prompt(primer, tokenizer, None, model.cycle)
    heard, bare = prompt.context, prompt.context[-BARE:]
    grammar = build_grammar(tokenizer, Rules(), [prompt.ids], [prompt.quarter_s])
    chance, ids = Uniforms([key]), np.zeros(0, np.int64)
    with torch.inference_mode(), np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(n):
            legal = grammar.legal()[0]
            logits = (model(torch.from_numpy(np.append(begin, ids))[None])[0, -1].numpy() for begin in (heard, bare))
            p, p_bare = (softmax(np.where(legal, each, -np.inf)[None])[0] for each in logits)
            odds = p * (p / p_bare) ** sampling.seed_guidance
            odds[~legal | (p < CUT * p.max())] = 0
            drawn = draw(np.log(odds)[None], sampling, 1.0, chance.next())
            grammar.update(drawn)
            ids = np.append(ids, drawn)
    return ids.tolist()


def quickly(model, tokenizer, primer, sampling, n, key):
    """The same through the engine."""
    prompt = make_prompt(primer, tokenizer, None, model.cycle)
    bare = bare_prompt(prompt.context, max(model.cycle, tokenizer.group))
    grammar = build_grammar(tokenizer, Rules(), [prompt.ids], [prompt.quarter_s])
    room = len(prompt.context) + n
    stream = begin_stream(
        TorchPlayer(model), [prompt.context], [BatchRow(0, key)], sampling, grammar, room, False, [bare]
    )
    return [int(next(stream).ids[0]) for _ in range(n)]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("performance", form) for form in ("relative", "learned", "lstm")),
        *(("chorale", form) for form in ("relative_fourier", "lstm")),
    ],
)
def test_the_two_streams_draw_what_two_full_passes_draw(name, form):
    model, tokenizer = lstm(name) if form == "lstm" else build(name, form)
    told_apart(model)
    sampling = replace(PLAIN, seed_guidance=1.5, top_p=0.95)
    ids = quickly(model, tokenizer, PRIMER, sampling, N, (3, 1))
    assert ids == slowly(model, tokenizer, PRIMER, sampling, N, (3, 1))
    assert ids != quickly(model, tokenizer, PRIMER, replace(sampling, seed_guidance=0.0), N, (3, 1))


def test_a_row_draws_the_same_whoever_else_is_in_the_batch_and_rolling_too():
    model, tokenizer = build("performance", "relative_fourier")
    player = TorchPlayer(told_apart(model))
    other = Primer(LONGER.transpose(5), 2.7, Meter(0.6))
    primers = [PRIMER, other]
    for window in (None, 24):
        asked = replace(HELD_ON, window=window, variations=2)
        together = continue_primers(primers, player, tokenizer, asked)
        for primer, rows in zip(primers, together, strict=True):
            alone = continue_primers([primer], player, tokenizer, asked)[0]
            assert all(same(one, two) for one, two in zip(rows, alone, strict=True))


def test_steps_of_one_shape_and_packed_weights_are_guided_alike():
    model, tokenizer = build("performance", "relative_fourier")
    told_apart(model).float()
    plain = continue_primers([PRIMER], TorchPlayer(model), tokenizer, HELD_ON)[0][0]
    for other in (StaticSteps(model), for_steps(copy.deepcopy(model))):
        assert same(continue_primers([PRIMER], TorchPlayer(other), tokenizer, HELD_ON)[0][0], plain)
    assert not continue_primers([PRIMER], TorchPlayer(for_steps(model, "int8")), tokenizer, HELD_ON)[0][0].stopped


def drawn(primer, own=None, seed_guidance="auto"):
    model, tokenizer = build("performance")
    asked = Continue(replace(PLAIN, seed_guidance=seed_guidance), Length(tokens=40))
    return continue_primers([primer], TorchPlayer(told_apart(model)), tokenizer, asked, own={"seed_guidance": own})[0][
        0
    ]


def test_a_bundle_says_how_closely_its_model_has_on_and_a_person_has_the_last_word():
    plain, two = (drawn(PRIMER, seed_guidance=strength) for strength in (None, 2.0))
    assert not same(plain, two)
    assert same(drawn(PRIMER, own=2.0), two)
    assert same(drawn(PRIMER), plain)
    assert same(drawn(PRIMER, own=2.0, seed_guidance=None), plain)
    assert same(drawn(PRIMER, own=1.0, seed_guidance=2.0), two)


def test_a_bundle_that_guides_takes_seeds_that_are_nothing_or_too_short():
    assert same(drawn(None, own=2.0), drawn(None))
    short = Primer(SEED, 1.2, Meter(0.6))
    assert same(drawn(short, own=2.0), drawn(short))  # nothing comes before its end
    assert same(drawn(short, seed_guidance=2.0), drawn(short))


def test_guidance_needs_a_seed():
    model, tokenizer = build("performance")
    asked = Continue(Sampling(seed_guidance=1.0))
    with pytest.raises(ConfigError, match=r"^seed_guidance=1\.0: "):
        continued(None, TorchPlayer(model), tokenizer, asked)
