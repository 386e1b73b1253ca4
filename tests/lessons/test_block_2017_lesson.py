"""The block of 2017 is that of the toolkit; pre-norm learns at once where post-norm does not."""

import numpy as np
import pytest
import torch

from musictx.lessons import run
from musictx.lessons.block_2017 import Block, Stack, difference


@pytest.mark.parametrize("post", [True, False])
def test_the_block_is_that_of_the_toolkit(post):
    assert difference(post) < 1e-5


def test_post_norm_gives_normed_rows_and_pre_norm_adds_to_what_it_was_given():
    x = 5 + 3 * torch.randn(2, 7, 48)
    assert Block(post=True)(x).mean(-1).abs().max() < 1e-4
    block = Block(post=False)
    for layer in (block.project, block.down):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    assert torch.equal(block(x), x)


def test_no_block_sees_the_future():
    pitches = torch.randint(40, 80, (1, 12))
    other = torch.cat((pitches[:, :6], pitches[:, 6:] + 1), 1)
    model = Stack(post=True)
    torch.testing.assert_close(model(pitches)[:, :6], model(other)[:, :6])


def test_post_norm_without_warm_up_learns_less_than_pre_norm():
    finding = run("block_2017", 0.1)
    chance, post, _, _, pre, pre_warm = (float(row[-1]) for row in finding.rows)
    assert pre < chance - 0.3
    assert post > chance - 0.3
    assert pre_warm < post - 0.5
    post_norm, pre_norm = (np.asarray(line.get_ydata(), float) for line in finding.figure.axes[0].lines)
    assert post_norm[-1] > 2 * pre_norm[-1]  # of the deepest stack
