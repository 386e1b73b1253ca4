"""The recurrent encoder-decoder: causal, the same in steps, deaf to padding, its attention equal to the definition."""

from dataclasses import replace
from functools import partial

import proofs
import pytest
import torch

from musictx.errors import ConfigError
from musictx.model.recurrent_encoder_decoder import (
    RecurrentEncoderDecoder,
    RecurrentEncoderDecoderConfig,
    SourceAttention,
)

PAD = 22
tokens = partial(proofs.tokens, below=PAD)
CONFIG = RecurrentEncoderDecoderConfig(vocab_size=23, d_model=12, n_layers=3, d_attention=5, dropout=0.0, pad=PAD)
cells = pytest.mark.parametrize("cell", ["gru", "lstm"])


def build(cell, **changes) -> RecurrentEncoderDecoder:
    torch.manual_seed(0)
    return RecurrentEncoderDecoder(replace(CONFIG, cell=cell, **changes)).double().eval()


@cells
def test_no_logit_depends_on_a_later_id_and_each_on_all_of_the_source(cell):
    model, source, ids = build(cell), tokens(1, 5), tokens(1, 15, seed=2)
    read = [model.embed(x).detach().requires_grad_() for x in (source, ids)]
    given = iter(read)
    model.embed.register_forward_hook(lambda *_: next(given))
    logits = model(source, ids)
    for t in range(ids.shape[1]):
        heard, before = torch.autograd.grad(logits[0, t].sum(), read, retain_graph=True)
        assert (before[0, t + 1 :] == 0).all()
        assert (before[0, : t + 1] != 0).any(-1).all()
        assert (heard[0] != 0).any(-1).all()


@cells
def test_cached_steps_equal_one_full_pass(cell):
    model, source, ids = build(cell), tokens(3, 7), tokens(3, 40, seed=2)
    source[1, 5:] = PAD
    with torch.inference_mode():
        full = model(source, ids)
        state = model.init_state(source, 40)
        torch.testing.assert_close(model.prefill(ids[:, :35], state), full[:, 34])
        state, ids, full = state.take(torch.tensor([2, 0, 1])), ids[[2, 0, 1]], full[[2, 0, 1]]
        for t in range(35, 40):
            torch.testing.assert_close(model.step(ids[:, t], state), full[:, t])
    assert state.length == 40


@cells
def test_padding_of_a_source_changes_nothing(cell):
    model, source, ids = build(cell), tokens(2, 7), tokens(2, 18, seed=2)
    source[1, 5:] = PAD
    with torch.inference_mode():
        padded = torch.cat([source, torch.full((2, 9), PAD)], 1)
        torch.testing.assert_close(model(padded, ids), model(source, ids), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(model(source, ids)[1:], model(source[1:, :5], ids[1:]), rtol=1e-12, atol=1e-12)


@cells
def test_a_hidden_source_says_nothing_of_what_it_hides_nor_how_long_it_is(cell):
    model, ids = build(cell), tokens(1, 18, seed=2)
    with torch.inference_mode():
        short, long = (model(torch.full((1, s), PAD), ids) for s in (1, 7))
        torch.testing.assert_close(short, long, rtol=1e-12, atol=1e-12)
        beside = tokens(2, 7)
        beside[0] = PAD
        torch.testing.assert_close(model(beside, ids.expand(2, -1))[:1], short, rtol=1e-12, atol=1e-12)
        assert not torch.allclose(model(beside[1:], ids), short)


@pytest.mark.parametrize("t", [1, 31, 32, 33])
def test_attention_equals_the_definition_with_every_gradient(t):
    torch.manual_seed(t)
    attention = SourceAttention(6, 4, 1).double()
    s = torch.randn(2, t, 6, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    masked = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    got = attention.attend(s, attention.rows(h), masked)
    rows = []
    for b, seen in ((0, 5), (1, 3)):
        for q in s[b]:
            keys = [attention.key.weight @ h[b, j] for j in range(seen)]
            scores = torch.stack([attention.score.weight[0] @ torch.tanh(attention.query.weight @ q + k) for k in keys])
            rows.append(torch.tanh(attention.join(torch.cat([scores.softmax(0) @ h[b, :seen], q]))))
    expected = torch.stack(rows).view(got.shape)
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)
    leaves, weigh = [s, h, *attention.parameters()], torch.linspace(-1, 1, got.numel()).double().view(got.shape)
    both = (torch.autograd.grad((x * weigh).sum(), leaves) for x in (got, expected))
    for a, b in zip(*both, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_layers", 1),
        ("d_model", 13),
        ("cell", "rnn"),
        ("dropout", 1.0),
    ],
)
def test_impossible_sizes_are_refused(field, value):
    with pytest.raises(ConfigError, match=f"^{field}={value}: .*give"):
        replace(CONFIG, **{field: value})
