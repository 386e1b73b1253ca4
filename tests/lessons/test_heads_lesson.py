"""Heads: several of as many weights beat one, because each looks elsewhere."""

import torch

from musictx.lessons import run
from musictx.lessons.heads import BACK, Chorale, apart, by_distance, split, weights
from musictx.model.attention import relative_attention


def test_several_heads_know_more_than_one_and_differ():
    rows = {int(heads): (float(nats), differ) for heads, _, nats, _, differ in run("heads", 0.1).rows}
    assert rows[8][0] < rows[1][0] - 0.05
    assert float(rows[8][1]) > 0.1
    assert len({sum(p.numel() for p in Chorale(n).parameters()) for n in rows}) == 1  # as many weights


def test_attention_of_heads_is_the_toolkit_s():
    q, k, v = (split(x, 4) for x in torch.randn(3, 2, 9, 32, generator=torch.Generator().manual_seed(0)))
    e = torch.randn(4, 9, 8, generator=torch.Generator().manual_seed(1))
    theirs = relative_attention(q, k, v, e, "reference")
    torch.testing.assert_close(weights(q, k, e) @ v, theirs, atol=1e-5, rtol=1e-4)


def test_a_map_says_who_looks_where():
    looks = torch.zeros(1, 2, 31, 31)
    for i in range(3, 31):
        looks[0, 0, i, i - 3] = 1  # note i + 1 is asked, and looks at its own voice, a beat ago
        looks[0, 1, i, i if (i + 1) % 4 == 2 else i - 3] = 1  # a tenor at the alto above it
    maps = by_distance(looks)
    assert maps.shape == (2, 4, BACK)
    assert (maps[0, :, 3] == 1).all()
    assert maps[1].argmax(-1).tolist() == [3, 3, 0, 3]
    assert apart(maps) == 0.25
