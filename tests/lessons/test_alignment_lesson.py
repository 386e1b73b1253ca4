"""Scores of attention: each finds the note of the same beat by itself, and is what its formula says."""

import pytest
import torch
import torch.nn.functional as F

from musictx.lessons import run
from musictx.lessons.alignment import Score


def test_the_weight_goes_to_the_same_beat_and_stays_softer_under_the_scale():
    rows = run("alignment", 0.1).rows
    same, near = ({row[0]: float(row[n]) for row in rows} for n in (2, 3))
    for name in ("dot", "general"):
        assert same[name] > 0.22  # even weights: 1 / 8
        assert near[name] > 0.5  # even weights: 22 / 64
    assert same["scaled"] < same["dot"] - 0.05


def test_each_score_is_its_formula():
    s, h = torch.rand(2, 3, 64) * 2 - 1, torch.rand(2, 5, 64) * 2 - 1
    dot = Score("dot")(s, h)
    assert dot.shape == (2, 3, 5)
    assert float(dot[1, 2, 4]) == pytest.approx(float((s[1, 2] * h[1, 4]).sum()), abs=1e-4)
    found = Score("scaled")(s, h).softmax(-1) @ h
    torch.testing.assert_close(found, F.scaled_dot_product_attention(s, h, h))
    general, additive = Score("general"), Score("additive")
    with torch.no_grad():
        general.w.weight.copy_(torch.eye(64))
        torch.testing.assert_close(general(s, h), dot)
        one = additive.v.weight @ torch.tanh(additive.w.weight @ s[1, 2] + additive.u.weight @ h[1, 4])
        torch.testing.assert_close(additive(s, h)[1, 2, 4], one[0])
