"""Relative attention: three ways, the same numbers; memory by T² D, T², and none that grows."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from musictx.lessons import run
from musictx.lessons.relative import BLOCK, WAYS, WIDTH, skewed
from musictx.model.attention import relative_attention


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_all_ways_are_the_toolkit_s_attention(seed, blocks):
    length = blocks * BLOCK
    q, k, v, e = torch.randn(4, length, WIDTH, generator=torch.Generator().manual_seed(seed))
    toolkit = relative_attention(q[None, None], k[None, None], v[None, None], e[None], "reference")[0, 0]
    for attend in WAYS.values():
        torch.testing.assert_close(attend(q, k, v, e), toolkit, atol=1e-4, rtol=1e-3)


def test_skewing_lines_distances_up_with_places():
    by_distance = torch.tensor([2, 1, 0]).expand(3, 3)  # what each row has for these distances
    assert skewed(by_distance).tril().tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0]]


def test_twice_the_length_takes_four_times_the_memory_and_in_blocks_less():
    rows = [[float(cell) for cell in row[:4]] for row in run("relative", 0.1).rows]
    for (length, *short), (double, *long) in pairwise(rows):
        assert double == 2 * length
        assert long[0] / short[0] == pytest.approx(4, rel=0.05)
        assert long[1] / short[1] == pytest.approx(4, rel=0.05)
        assert long[2] == pytest.approx(short[2], rel=0.05)
    assert rows[0][1] == WIDTH * rows[0][0] ** 2 * 4 / 2**20
