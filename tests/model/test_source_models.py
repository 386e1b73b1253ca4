"""What must be true of every model of a source and a target: causal, the same in steps, deaf to padding."""

from functools import partial
from typing import Any

import proofs
import pytest
import small
import torch
from test_encoder_decoder import PAD
from test_encoder_decoder import build as build_transformer

from musictx.errors import ConfigError
from musictx.model.position import FORMS, timed_forms
from musictx.model.recurrent_encoder_decoder import SourceAttention

tokens = partial(proofs.tokens, below=PAD)
SHAPES: list[dict[str, Any]] = [
    {"mlp": "swiglu", "qk_norm": True, "value_residual": True, "cycle": 16},
    {"paced": True},
]
# every form of position, in turns with one of both shapes
CASES: list[dict[str, Any]] = [{"position": form, **SHAPES[n % 2]} for n, form in enumerate(FORMS)]
CASES += [{"position": form, "paced": True, "clock": "time"} for form in timed_forms()] + [{"position": "relative"}]
CASES += [{"cell": "gru"}, {"cell": "lstm", "fixed_context": True}]
cases = pytest.mark.parametrize("case", CASES, ids=small.named)


def build(cell=None, fixed_context=False, **settings):
    if cell is None:
        return build_transformer(**settings)
    attends: dict[str, Any] = {} if fixed_context else {"d_attention": 5}
    sizes = {"cell": cell, "fixed_context": fixed_context, "n_layers": 3, "pad": PAD}
    return small.build("recurrent_encoder_decoder", **sizes, **attends, **settings)


@cases
def test_no_logit_depends_on_a_later_id_and_each_on_all_of_the_source(case):
    proofs.assert_causal_with_a_source(build(**case), PAD)


@cases
@pytest.mark.parametrize("prefill", [1, 35])  # more than a block of queries
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
    assert [model.init_state(tokens(2, n), 1).rows.shape for n in (3, 9)] == [(2, 1, 24)] * 2
    with pytest.raises(ConfigError, match="^d_attention=5: fixed_context=true "):
        build("lstm", fixed_context=True, d_attention=5)


@cases
def test_padding_changes_nothing_and_a_hidden_source_gives_away_nothing(case):
    model = build(**case)
    proofs.assert_padding_changes_nothing(model, PAD)
    proofs.assert_a_hidden_source_says_nothing(model, PAD)


@pytest.mark.parametrize("t", [1, 33])
def test_additive_attention_to_a_source_equals_the_definition_with_every_gradient(t):
    torch.manual_seed(t)
    attention = SourceAttention(6, 4, 1).double()
    s = torch.randn(2, t, 6, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    masked = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])

    def definition(*_):
        return small.additive_by_definition(attention, s, h, lambda b, t: range((5, 3)[b]))

    leaves = [s, h, *attention.parameters()]
    got = proofs.results(lambda *_: attention.attend(s, attention.rows(h), masked), leaves)
    proofs.assert_same(got, proofs.results(definition, leaves))
