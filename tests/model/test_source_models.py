"""What must be true of every model of a source and a target: causal, the same in steps, deaf to padding."""

from dataclasses import replace
from functools import partial
from typing import Any

import proofs
import pytest
import torch
from test_encoder_decoder import PAD
from test_encoder_decoder import build as build_transformer

from musictx.errors import ConfigError
from musictx.model.position import FORMS
from musictx.model.recurrent_encoder_decoder import (
    RecurrentEncoderDecoder,
    RecurrentEncoderDecoderConfig,
    SourceAttention,
)

tokens = partial(proofs.tokens, below=PAD)
CONFIG = RecurrentEncoderDecoderConfig(vocab_size=23, d_model=12, n_layers=3, d_attention=5, dropout=0.0, pad=PAD)
SHAPES: list[dict[str, Any]] = [
    {},
    {"mlp": "swiglu", "qk_norm": True, "value_residual": True, "cycle": 16},
    {"paced": True},
]
CASES: list[dict[str, Any]] = [{"position": form, **shape} for form in FORMS for shape in SHAPES]
CASES += [{"position": form, "paced": True, "clock": "time"} for form, of in FORMS.items() if of.timed]
CASES += [{"cell": "gru"}, {"cell": "lstm"}, {"cell": "gru", "fixed_context": True}]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))


def build(cell=None, **changes):
    if cell is None:
        return build_transformer(**changes)
    torch.manual_seed(0)
    if changes.get("fixed_context"):
        changes["d_attention"] = RecurrentEncoderDecoderConfig.d_attention
    return RecurrentEncoderDecoder(replace(CONFIG, cell=cell, **changes)).double().eval()


@cases
def test_no_logit_depends_on_a_later_id_and_each_on_all_of_the_source(case):
    proofs.assert_causal_with_a_source(build(**case), PAD)


@cases
@pytest.mark.parametrize("prefill", [1, 7, 35])  # more than a block of queries
@torch.inference_mode()
def test_cached_steps_equal_one_full_pass_and_the_source_is_read_once(case, prefill, monkeypatch):
    model, source, ids = build(**case), tokens(3, 7), tokens(3, prefill + 9, seed=2)
    source[1, 5:] = PAD
    full, state = model(source, ids), model.init_state(source, prefill + 9)
    monkeypatch.setattr(type(model), "encode", None, raising=False)  # never again
    torch.testing.assert_close(model.prefill(ids[:, :prefill], state), full[:, prefill - 1])
    for t in range(prefill, prefill + 9):
        torch.testing.assert_close(model.step(ids[:, t], state), full[:, t])
        if t == prefill + 3 and "cell" not in case:  # their rows are never moved
            rows = torch.tensor([2, 0, 1])
            state, ids, full = state.take(rows), ids[rows], full[rows]
    assert state.length == prefill + 9


def test_a_fixed_context_is_one_vector_however_long_the_source_is():
    model = build("lstm", fixed_context=True)
    assert [model.init_state(tokens(2, n), 1).rows.shape for n in (3, 9)] == [(2, 1, 12)] * 2
    with pytest.raises(ConfigError, match="^d_attention=5: fixed_context=true "):
        replace(CONFIG, fixed_context=True)


@cases
def test_padding_of_a_source_changes_nothing(case):
    proofs.assert_padding_changes_nothing(build(**case), PAD)


@cases
def test_a_hidden_source_gives_away_neither_what_it_hides_nor_how_long_it_is(case):
    proofs.assert_a_hidden_source_says_nothing(build(**case), PAD)


@pytest.mark.parametrize("t", [1, 31, 32, 33])
def test_additive_attention_to_a_source_equals_the_definition_with_every_gradient(t):
    torch.manual_seed(t)
    attention = SourceAttention(6, 4, 1).double()
    s = torch.randn(2, t, 6, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    masked = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])

    def definition(*_):
        rows = []
        for b, seen in ((0, 5), (1, 3)):
            keys = [attention.key.weight @ x for x in h[b, :seen]]
            for q in (attention.query.weight @ x for x in s[b]):
                scores = torch.stack([attention.score.weight[0] @ torch.tanh(q + k) for k in keys])
                rows.append(scores.softmax(0) @ h[b, :seen])
        return torch.tanh(attention.join(torch.cat([torch.stack(rows).view(s.shape), s], -1)))

    leaves = [s, h, *attention.parameters()]
    got = proofs.results(lambda *_: attention.attend(s, attention.rows(h), masked), leaves)
    proofs.assert_same(got, proofs.results(definition, leaves))
