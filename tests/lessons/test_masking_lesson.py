"""Masks: before the softmax the future has no gradient and training cheats nobody; after it, the future leaks."""

import torch

from musictx.lessons import run
from musictx.lessons.masking import LENGTH, MASKS, NextNote, attend, gradients
from musictx.model.attention.plain import causal_attention

NONE, AFTER, BEFORE = MASKS


def test_without_a_mask_training_reads_its_answers():
    found = {mask: [float(cell) for cell in cells] for mask, *cells in run("masking", 0.1).rows}
    assert found[BEFORE][0] == 0.0
    assert min(found[NONE][0], found[AFTER][0]) > 0.01
    assert found[NONE][1] < 1 < found[BEFORE][1]
    assert found[NONE][2] > found[BEFORE][2] + 0.5
    assert abs(found[BEFORE][1] - found[BEFORE][2]) < 0.4


def test_the_gradient_to_the_future_is_exactly_zero_only_before_the_softmax():
    torch.manual_seed(0)
    line = torch.arange(60, 60 + LENGTH)
    for mask in MASKS:
        maps = gradients(NextNote(mask), line)
        assert bool((maps.triu(1) == 0).all()) == (mask == BEFORE)
        assert (maps.tril() > 0).sum() == LENGTH * (LENGTH + 1) / 2


def test_the_mask_is_the_toolkit_s_and_padding_has_no_weight():
    q, k, v = torch.randn(3, 2, 5, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        attend(q, k, v, BEFORE), causal_attention(q[:, None], k[:, None], v[:, None], 0.0, 8**-0.5)[:, 0]
    )
    padding = torch.tensor([[False] * 3 + [True] * 2]).expand(2, 5)
    torch.testing.assert_close(attend(q, k, v, NONE, padding)[:, :3], attend(q[:, :3], k[:, :3], v[:, :3], NONE))
