import math

import numpy as np
import pytest
import torch

from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("chorale")
PAD, BOS = TOK.vocab.pad, TOK.vocab.bos
ASKED = NextToken(TOK)
RNG = np.random.default_rng(0)


def test_every_id_is_asked_for_but_the_first_and_read_but_the_last():
    (ids,), targets = ASKED.example(torch.tensor([BOS, 3, 4, 5, PAD]), RNG)
    assert (ids.tolist(), targets.tolist()) == ([BOS, 3, 4, 5], [3, 4, 5, PAD])
    windows = torch.arange(12).view(2, 6)
    (ids,), targets = ASKED.example(windows, RNG)
    assert torch.equal(ids, windows[:, :-1])
    assert torch.equal(targets, windows[:, 1:])


def test_the_loss_is_a_sum_and_how_many_it_is_of():
    p = torch.tensor([0.5, 0.25, 0.125])  # of the true id, in three places; a fourth does not count
    logits = torch.full((1, 4, TOK.vocab.size), -torch.inf)
    logits[0, range(3), [7, 8, 9]] = p.log()
    logits[0, range(3), 0] = (1 - p).log()
    logits[0, 3] = 0.0
    example = Example((torch.zeros(1, 4, dtype=torch.long),), torch.tensor([[7, 8, 9, PAD]]))
    total, count = ASKED.loss(lambda ids: logits, example)
    assert float(total) == pytest.approx(6 * math.log(2))
    assert int(count) == 3
    two = Example((example.inputs[0].repeat(2, 1),), torch.tensor([[7, 8, 9, PAD], [7, PAD, PAD, PAD]]))
    rows, counts = ASKED.loss(lambda ids: logits.repeat(2, 1, 1), two, by_row=True)
    assert rows.tolist() == pytest.approx([6 * math.log(2), math.log(2)])
    assert rows.dtype == torch.float64
    assert counts.tolist() == [3, 1]
