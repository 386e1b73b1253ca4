"""Scoring that is fair to both kinds: windows that move on by a stride, a state carried through whole pieces."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import split_of

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.errors import ConfigError
from musictx.model.build import build_model, model_config
from musictx.objectives import build_objective
from musictx.tokenizers import build_tokenizer
from musictx.training.start import keys_of

TOK = build_tokenizer("performance")
SIZES: dict[str, Any] = {"vocab_size": TOK.vocab.size, "d_model": 12, "n_layers": 2, "dropout": 0.0}
ATTENDS = {"n_heads": 2, "d_ff": 16, "max_distance": 8, "position": "sinusoidal"}
CARRIES: dict[str, dict[str, Any]] = {
    "lstm": {},
    "recall": {"recall": True, "d_attention": 4, "window": 7},
    "keyboard": {"keyboard": "head"},
    "residual": {"residual": True, "keyboard": "head", "recall": True, "d_attention": 4, "window": 7},
}


def build(kind, **more) -> Any:
    """In float64, with weights far from their start: what came before counts."""
    torch.manual_seed(0)
    model = build_model(model_config(kind, SIZES | more), keys=keys_of(TOK)).double().eval()
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.5)
    return model


TRANSFORMER = build("transformer", **ATTENDS)
lengths = st.lists(st.integers(1, 30), min_size=1, max_size=4)
windows = st.integers(1, 16).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))
budgets = st.integers(1, 200)


def split_by(lengths):
    rng = np.random.default_rng(0)
    return split_of(*(rng.integers(0, TOK.vocab.n_events, length) for length in lengths))


@torch.inference_mode()
def one_by_one(model, piece, segment, stride):
    """Nats of a piece: for each token one forward pass over a window of its own."""
    ids, nats = torch.tensor([TOK.vocab.bos, *piece.tolist()]), 0.0
    for at in range(len(piece)):
        start = 0
        while at >= start + segment:
            start += stride
        nats -= float(model(ids[None, start : at + 1])[0, -1].log_softmax(-1)[ids[at + 1]])
    return nats


@settings(deadline=None)
@given(lengths, windows, budgets)
def test_windows_are_one_forward_pass_a_token_whatever_is_in_a_batch(lengths, window, budget):
    (segment, stride), split = window, split_by(lengths)
    found = negative_log_likelihood(TRANSFORMER, split, TOK, segment, budget, stride=stride)
    assert found.tokens_of.tolist() == lengths
    slow = [one_by_one(TRANSFORMER, piece, segment, stride) for piece in split]
    np.testing.assert_allclose(found.nats, slow, rtol=1e-6)


@given(lengths, st.integers(1, 16), budgets)
def test_a_stride_as_long_as_the_segment_gives_the_figures_of_blocks(lengths, segment, budget):
    split = split_by(lengths)
    blocks, same = (
        negative_log_likelihood(TRANSFORMER, split, TOK, segment, budget, stride=s) for s in (None, segment)
    )
    assert same.nats.tolist() == blocks.nats.tolist()


def test_more_context_changes_the_figure():
    split = split_by([40])
    blocks, moving = (negative_log_likelihood(TRANSFORMER, split, TOK, 8, stride=s).nll for s in (None, 2))
    assert blocks != pytest.approx(moving, rel=1e-3)


@pytest.mark.parametrize("kind", CARRIES)
@settings(deadline=None)
@given(lengths=lengths, window=windows, budget=budgets)
def test_a_carried_state_hears_whole_pieces(kind, lengths, window, budget):
    model, split = build("recurrent", **CARRIES[kind]), split_by(lengths)
    found = negative_log_likelihood(model, split, TOK, window[0], budget, stride=window[1])
    whole = negative_log_likelihood(model, split, TOK, None, budget)
    assert found.tokens_of.tolist() == lengths
    np.testing.assert_allclose(found.nats, whole.nats, rtol=1e-6)


@pytest.mark.parametrize("kind", CARRIES)
def test_without_a_stride_blocks_cut_the_memory(kind):
    model, split = build("recurrent", **CARRIES[kind]), split_by([40])
    assert negative_log_likelihood(model, split, TOK, 4).nll != negative_log_likelihood(model, split, TOK, None).nll


def test_impossible_strides_are_refused_for_both_kinds():
    infill = build_objective("infill", None, TOK)
    for model in (TRANSFORMER, build("recurrent")):
        for segment, stride, said in (
            (4, 5, "^stride=5: give 1 to segment=4, or null$"),
            (4, 0, "^stride=0: give 1 to segment=4, or null$"),
            (None, 3, "^stride=3: segment=null scores whole pieces: give segment= too, or leave it out$"),
        ):
            with pytest.raises(ConfigError, match=said):
                negative_log_likelihood(model, split_by([9]), TOK, segment, stride=stride)
        with pytest.raises(ConfigError, match="^stride=2: examples of this objective .*give null"):
            negative_log_likelihood(model, split_by([9]), TOK, 4, objective=infill, stride=2)
