"""What must be true of a model of a source and a target: causal, the same in steps, deaf to padding."""

from functools import partial
from typing import Any

import proofs
import pytest
import small
import torch
from test_encoder_decoder import PAD, build

from musictx.model.position import FORMS

tokens = partial(proofs.tokens, below=PAD)
SHAPES: list[dict[str, Any]] = [{"mlp": "swiglu", "qk_norm": True, "value_residual": True, "cycle": 16}, {}]
# every form of position, in turns with one of both shapes
CASES: list[dict[str, Any]] = [{"position": form, **SHAPES[n % 2]} for n, form in enumerate(FORMS)]
CASES += [{"position": "relative_fourier", **SHAPES[0]}, {"position": "rope"}, {"position": "relative"}]
cases = pytest.mark.parametrize("case", CASES, ids=small.named)


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
    monkeypatch.setattr(type(model), "encode", None)  # never again
    torch.testing.assert_close(model.prefill(ids[:, :prefill], state), full[:, prefill - 1])
    for t in range(prefill, prefill + 9):
        torch.testing.assert_close(model.step(ids[:, t], state), full[:, t])
        if t == prefill + 3:
            rows = torch.tensor([2, 0, 1])
            state, ids, full = state.take(rows), ids[rows], full[rows]
    assert state.length == prefill + 9


@cases
def test_padding_changes_nothing_and_a_hidden_source_gives_away_nothing(case):
    model = build(**case)
    proofs.assert_padding_changes_nothing(model, PAD)
    proofs.assert_a_hidden_source_says_nothing(model, PAD)
