"""The vectors of distances and places that `attend` draws are those that attention and embeddings use."""

from typing import Any

import numpy as np
import pytest
import torch

from musictx.analysis.heads import position_vectors
from musictx.model.transformer import Transformer, TransformerConfig

SIZES: dict[str, Any] = {"vocab_size": 20, "d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 16, "max_distance": 8}


def model_of(position, **more):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**SIZES, position=position, max_positions=12, **more)).double().eval()
    blocks: Any = model.blocks
    for block in blocks:
        for parameter in block.attend.parameters():
            torch.nn.init.normal_(parameter)
    return model


def vectors_of(model, layer, n):
    known = position_vectors(model, layer, n)
    assert known is not None
    return known


@pytest.mark.parametrize("clock", ["index", "time"])
@pytest.mark.parametrize("position", ["relative", "relative_fourier"])
def test_a_query_meets_the_vector_of_each_distance(position, clock):
    if (position, clock) == ("relative", "time"):
        pytest.skip("a table counts tokens")
    model = model_of(position, clock=clock)
    vectors, last, counted = vectors_of(model, 1, n=12)
    unit = 1.0 if clock == "index" else 0.1
    assert vectors.shape == (2, 12, 8)
    assert last == pytest.approx(11 * unit)
    assert counted.startswith("distance, tokens" if clock == "index" else "distance, quarters")
    form: Any = model.blocks[1].attend
    at = unit * torch.arange(12, dtype=torch.float64)[None]
    phase = form.phase(at, torch.float64)
    q = torch.randn(1, 2, 1, 8, dtype=torch.float64)
    keys = form.keys(torch.zeros(1, 2, 12, 8, dtype=torch.float64), phase)  # without content
    newest = None if phase is None else tuple(part[..., -1:, :] for part in phase)
    logits = form.logits(q, keys, newest, torch.arange(11, -1, -1)[None])[0, :, 0]  # (H, 12), the oldest first
    expected = np.einsum("hd,hnd->hn", q[0, :, 0].numpy(), vectors) / np.sqrt(8)
    assert np.allclose(logits.flip(-1).detach().numpy(), expected)


def test_a_rotation_keeps_its_cosine_of_a_pair_of_numbers():
    model = model_of("rope")
    vectors, _, _ = vectors_of(model, 0, n=6)
    form: Any = model.blocks[0].attend
    at = torch.arange(6, dtype=torch.float64)[None]
    for pair in range(4):
        k = torch.zeros(1, 1, 6, 8, dtype=torch.float64)
        k[..., pair] = 1
        turned = form.keys(k, form.phase(at, torch.float64))
        assert np.allclose(turned[0, 0, :, pair].numpy(), vectors[0, :, pair], atol=1e-6)


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_places_are_what_joins_the_embedding(position):
    model = model_of(position)
    vectors, last, counted = vectors_of(model, 0, n=10)
    assert (last, counted) == (9.0, "place, tokens from the beginning")
    nothing = torch.zeros(1, 10, 16, dtype=torch.float64)
    added = model.places(nothing, torch.arange(10, dtype=torch.float64)[None])
    assert np.allclose(added.detach().numpy(), vectors, atol=1e-6)


def test_without_a_position_there_is_none():
    assert position_vectors(model_of("none"), 0) is None
