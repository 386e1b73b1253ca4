"""The encoder-decoder: its attention equals the definition, and its distances are those of musical time."""

import math
from functools import partial

import proofs
import pytest
import small
import torch

from musictx.errors import ConfigError
from musictx.model.position.rope import Rotary
from musictx.model.position.table import TwoSided

PAD = 22
tokens = partial(proofs.tokens, below=PAD)
PACE = torch.arange(23.0) % 5 * 0.07  # seconds that each id takes
PACE[PAD] = 0


def build(position="none", **settings):
    return small.build("encoder_decoder", PACE, position=position, pad=PAD, **{"target_group": 3} | settings)


def signed(form, distance):
    """e_d of one head by its definition, d below 0 too: (H, D)."""
    if isinstance(form, TwoSided):
        farthest = form.rel.shape[1] // 2
        return form.rel[:, min(max(distance, -farthest), farthest) + farthest]
    angle = distance * form.log_frequency.exp()  # (H, F)
    return torch.einsum("hdf,hf->hd", form.basis, torch.cat([angle.cos(), angle.sin()], -1))


@pytest.mark.parametrize(
    ("position", "paced", "unit"),
    [("relative", False, 1), ("relative_fourier", False, 1), ("relative", True, 0.1), ("relative_fourier", True, None)],
)
def test_cross_attention_and_encoder_equal_the_definition(position, paced, unit):
    """q_i · (k_j + e_d) / sqrt(D), one pair at a time in float64, d the time from j to what i is for: in sixteenths;
    where ids mark seconds in these, and for a table in whole tenths of them."""
    model = build(position, n_layers=1, n_encoder_layers=1, paced=paced)
    cross, x, source = model.decoder[0].cross, torch.randn(1, 15, 24).double(), torch.randn(1, 9, 24).double()
    at, source_at = torch.arange(15).double()[None] // 3, torch.arange(9).double()[None]
    if paced:
        at, source_at = at * 0.23, source_at * 0.13
    masked = torch.zeros(1, 9, dtype=torch.bool)
    masked[0, 7:] = True
    k, v = cross.keys(source, source_at)
    q = cross.queries(x)
    form, d_head, expected = cross.attend, 8, torch.zeros_like(q)
    for i in range(15):
        exact = [at[0, i] - source_at[0, j] for j in range(7)]
        relative = [signed(form, int((d / unit).round()) if unit else d) for d in exact]
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


def test_where_ids_mark_time_a_target_asks_for_the_moment_it_has_reached():
    """What is before the target takes no time, whichever id it is; each row goes by its own ids."""
    model, asked = build("rope", n_encoder_layers=1, paced=True), []
    model.pace.copy_(torch.tensor([0.0, 1, 2, 4] + [0] * 19))
    model.decoder[0].cross.register_forward_pre_hook(lambda _, given: asked.append((given[4], given[5])))
    model(torch.tensor([[1, 0, 2], [3, PAD, PAD]]), torch.tensor([[3, 0, 1, 2], [0, 2, 2, 3]]))
    assert [x.tolist() for x in asked[0]] == [[[1, 1, 3], [4, 4, 4]], [[0, 0, 1, 3], [0, 2, 4, 8]]]


def test_clocks_of_their_own_change_what_is_found():
    """With clock=time the streams go by seconds in themselves too: a wait of another length is heard there."""
    source, ids = tokens(1, 7), tokens(1, 12)
    for clock, same in (("index", True), ("time", False)):
        model = build("relative_fourier", n_encoder_layers=1, paced=True, clock=clock)
        found: list[torch.Tensor] = []
        model.encoder[0].register_forward_hook(lambda _, given, out, found=found: found.append(out[0]))
        for slower in (1, 2):
            model.pace.copy_(PACE * slower)
            model(source, ids)
        assert torch.equal(*found) is same


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
    with pytest.raises(ConfigError, match="^source_voices=4: "):  # they are for a grid
        build(source_voices=4, paced=True)
