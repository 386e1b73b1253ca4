"""The weights that are read are those that the real path uses: values of one-hot rows show the latter."""

from typing import Any

import pytest
import torch
from proofs import OTHER_BLOCK, tokens
from small import FORMS_AND_CLOCKS, build, named

from musictx.model.position.absolute import NoPosition
from musictx.model.readout import read_attention, weights

PATHS: list[dict[str, Any]] = [{"attention": impl} for impl in ("reference", "skew", "chunked", "auto")]
PATHS += [{"position": form, "clock": clock} for form, clock in FORMS_AND_CLOCKS if form != "relative"]
PATHS += [{"position": form, **OTHER_BLOCK} for form in ("relative", "relative_fourier")]


def read(model, ids, queries) -> torch.Tensor:
    """(layers, B, H, Q, T)"""
    layers = []
    read_attention(model, ids, torch.as_tensor(queries), lambda layer, rows: layers.append((layer, rows)))
    assert [layer for layer, _ in layers] == [0, 1]
    return torch.stack([rows for _, rows in layers])


def through_the_real_path(model, ids):
    """(layers, B, H, T, T): each attention is called again with one-hot values, as wide as a head at a time."""
    out = []

    def read(attend, given):
        q, k, v, phase, *more = given
        b, h, t, d = v.shape
        eye = torch.nn.functional.pad(torch.eye(t, dtype=v.dtype), (0, -t % d))
        parts = [attend.forward(q, k, part.expand(b, h, t, d), phase, *more) for part in eye.split(d, 1)]
        out.append(torch.cat(parts, -1)[..., :t])

    hooks = [block.attend.register_forward_pre_hook(read) for block in model.blocks]
    with torch.inference_mode():
        model(ids)
    for hook in hooks:
        hook.remove()
    return torch.stack(out)


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_the_rows_are_those_of_the_real_path(path):
    model = build(**path)
    for t in (1, 19):
        ids = tokens(2, t)
        rows = read(model, ids, range(t))
        torch.testing.assert_close(rows, through_the_real_path(model, ids), rtol=0, atol=1e-12)
        torch.testing.assert_close(rows.sum(-1), torch.ones(2, 2, 3, t, dtype=torch.float64), rtol=0, atol=1e-12)
        assert (rows.triu(1) == 0).all()
        some = [t - 1, 0, t // 2]  # queries in any order
        torch.testing.assert_close(read(model, ids, some), rows[:, :, :, some], rtol=0, atol=1e-12)
    assert rows.max(-1).values[..., 1:].min() < 0.9 < rows.max()  # some look closely, some do not


def test_reading_leaves_the_model_as_it_was():
    model, ids = build(), tokens(1, 9)

    def stumble(layer, rows):
        raise ZeroDivisionError

    before = model(ids)
    read(model, ids, [8])
    with pytest.raises(ZeroDivisionError):
        read_attention(model, ids, torch.tensor([0]), stumble)
    assert torch.equal(model(ids), before)
    assert not any(part._forward_pre_hooks for part in model.modules())


def test_a_head_built_by_hand():
    q = torch.full((1, 1, 3, 4), 2.0, dtype=torch.float64)
    k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).log().view(1, 1, 3, 1) / 4 * torch.ones(4)
    rows = weights(NoPosition(4), q, k, None, torch.tensor([2, 1]))
    expected = [[1 / 6, 2 / 6, 3 / 6], [1 / 3, 2 / 3, 0.0]]  # 4 · 2 · log(n) / 4 / sqrt(4) = log(n)
    torch.testing.assert_close(rows, torch.tensor([[expected]], dtype=torch.float64))
