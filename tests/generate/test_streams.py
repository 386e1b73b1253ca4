import torch

from musictx.generate.engine import BLOCK, Uniforms
from musictx.generate.requests import MAX_SEED


def numbers(keys, n=BLOCK + 3):
    uniforms = Uniforms(keys, "cpu")
    return torch.cat([uniforms.next() for _ in range(n)], 1)


def test_a_row_depends_on_its_own_key_alone():
    alone, many = numbers([(5, 1)]), numbers([(5, 0), (5, 1), (6, 0)])
    assert torch.equal(alone[0], many[1])
    assert alone.dtype == torch.float64
    assert len({tuple(row.tolist()) for row in many}) == 3


def test_streams_stay_the_same_from_release_to_release():
    assert numbers([(1, 2)], 3).tolist() == [[0.30931491118583454, 0.3569562367935075, 0.036904530468356844]]


def test_no_two_keys_share_a_stream():
    keys = [(0, 0), (0, 1), (1, 0), (MAX_SEED, 0), (MAX_SEED - 1, 1), (MAX_SEED - 1, 0)]
    rows = numbers(keys)
    assert len({tuple(row.tolist()) for row in rows}) == len(keys)
    assert ((rows >= 0) & (rows < 1)).all()
