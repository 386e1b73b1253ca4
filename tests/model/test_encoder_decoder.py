"""The encoder-decoder: its attention equals the definition, and its distances are those of steps."""

import math
from functools import partial

import proofs
import pytest
import small
import torch

from musictx.model.position.rope import Rotary
from musictx.model.position.table import TwoSided

PAD = 22
tokens = partial(proofs.tokens, below=PAD)


def build(position="none", **settings):
    return small.build("encoder_decoder", position=position, pad=PAD, **{"target_group": 3} | settings)


def signed(form, distance):
    """e_d of one head by its definition, d below 0 too: (H, D)."""
    if isinstance(form, TwoSided):
        farthest = form.rel.shape[1] // 2
        return form.rel[:, min(max(distance, -farthest), farthest) + farthest]
    angle = distance * form.log_frequency.exp()  # (H, F)
    return torch.einsum("hdf,hf->hd", form.basis, torch.cat([angle.cos(), angle.sin()], -1))


@pytest.mark.parametrize("position", ["relative", "relative_fourier"])
def test_cross_attention_and_encoder_equal_the_definition(position):
    """q_i · (k_j + e_d) / sqrt(D), one pair at a time in float64, d the steps from j to what i is for."""
    model = build(position, n_layers=1, n_encoder_layers=1)
    cross, x, source = model.decoder[0].cross, torch.randn(1, 15, 24).double(), torch.randn(1, 9, 24).double()
    at, source_at = torch.arange(15).double()[None] // 3, torch.arange(9).double()[None]
    masked = torch.zeros(1, 9, dtype=torch.bool)
    masked[0, 7:] = True
    k, v = cross.keys(source, source_at)
    q = cross.queries(x)
    form, d_head, expected = cross.attend, 8, torch.zeros_like(q)
    for i in range(15):
        relative = [signed(form, int(at[0, i] - source_at[0, j])) for j in range(7)]
        for h in range(3):
            logits = [q[0, h, i] @ (k[0, h, j, :d_head] + e[h]) / math.sqrt(d_head) for j, e in enumerate(relative)]
            expected[0, h, i] = torch.stack(logits).softmax(0) @ v[0, h, :7]
    got = form.attend_to(q, k, v, form.phase(at, q.dtype), cross.distance(at, source_at), 0.0, masked)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    added = cross(x, k, v, masked, source_at, at)
    torch.testing.assert_close(added, x + cross.project(expected.transpose(1, 2).flatten(2)), rtol=1e-12, atol=1e-12)


def test_the_encoder_hears_what_is_to_come_and_a_target_asks_for_its_own_step():
    """With `sinusoidal`, whose keys across depend on content alone."""
    model, source, asked = build("sinusoidal", n_encoder_layers=1), tokens(1, 6), []
    other = source.clone()
    other[0, -1] = (other[0, -1] + 1) % PAD
    first = [model.encode(x).v[:, 0, :, 0] for x in (source, other)]
    assert not torch.allclose(*first)
    model.decoder[0].cross.register_forward_pre_hook(lambda _, given: asked.append((given[4], given[5])))
    model(source, tokens(1, 8))
    assert [x.tolist() for x in asked[0]] == [[[0, 1, 2, 3, 4, 5]], [[0, 0, 0, 1, 1, 1, 2, 2]]]


def test_rope_says_distance_by_sign():
    """What is two to the left and two to the right of a query is not the same to it."""
    form = Rotary(8)
    q, k = torch.randn(2, 1, 3, 1, 8, generator=torch.Generator().manual_seed(1)).double()
    at = torch.tensor([[-2.0, 2.0]]).double()
    keys = form.keys(k.expand(-1, -1, 2, -1), form.phase(at, k.dtype))
    logits = form.logits(q, keys, form.phase(torch.zeros(1, 1).double(), q.dtype), -at.long())[0, :, 0]  # (H, 2)
    assert not torch.isclose(*logits.T).any()


def test_the_place_in_a_beat_counts():
    """Of 16 ids a beat, 4 are the source's and 12 the target's."""
    model = build("none", cycle=16)
    assert (model.source.beat.num_embeddings, model.target.beat.num_embeddings) == (4, 12)
    same = torch.full((1, 9), 5)
    out = model.encode(same).v[0, 0, 0]  # (S, D)
    assert torch.allclose(out[0], out[4])
    assert not torch.allclose(out[0], out[1])


def test_the_voices_of_a_source_are_heard_together_and_apart():
    """A chord is one place of the encoder; which voice has which note matters; a place without notes is not seen."""
    model = build("relative_fourier", source_voices=4, target_group=4, cycle=20)
    source, ids = tokens(1, 24), tokens(1, 12)
    heard = model.encode(source)
    assert heard.k.shape[3] == 6
    swapped = source.clone()
    swapped[0, [8, 9]] = source[0, [9, 8]]
    swapped[0, 8] = (swapped[0, 9] + 1) % PAD
    assert not torch.allclose(model(source, ids), model(swapped, ids))
    turned = source.view(1, 6, 4).flip(2).flatten(1)
    assert not torch.allclose(model(source, ids), model(turned, ids))
    longer = torch.cat([source, torch.full((1, 8), PAD)], 1)
    torch.testing.assert_close(model(longer, ids), model(source, ids))
    assert model.encode(longer).masked.tolist() == [[False] * 6 + [True] * 2]
