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
    proofs.assert_causal_with_a_source(build(cell), PAD)


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
    proofs.assert_padding_changes_nothing(build(cell), PAD)


@cells
def test_a_hidden_source_says_nothing_of_what_it_hides_nor_how_long_it_is(cell):
    proofs.assert_a_hidden_source_says_nothing(build(cell), PAD)


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
