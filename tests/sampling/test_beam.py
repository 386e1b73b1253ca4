from itertools import product

import pytest
import torch
from test_engine import EOS, PROMPT, Below, build

from musictx.sampling.beam import Beams


@pytest.fixture(scope="module")
def model():
    return build().double()


def all_by_likelihood(model, n):
    rows = torch.tensor(list(product(range(4), repeat=n)))
    with torch.inference_mode():
        log_p = model(torch.cat([PROMPT.expand(len(rows), -1), rows], 1)).log_softmax(-1)[:, len(PROMPT) - 1 : -1]
    each = log_p.gather(2, rows[..., None])[..., 0]
    order = each.sum(1).argsort(descending=True)
    return rows[order], each[order]


def beam_search(model, n_tokens, beams, room) -> Beams:
    found = Beams(model, PROMPT, n_tokens, beams, Below(4), EOS, room, False)
    assert [len(drawn.ids) for drawn in found][-1] <= beams
    return found


def test_wide_enough_beams_find_the_likeliest_rows_of_all(model):
    rows, log_p = all_by_likelihood(model, 4)
    found = beam_search(model, 4, 256, 8)
    assert found.ids[:5].tolist() == rows[:5].tolist()
    torch.testing.assert_close(found.log_p[:5].double(), log_p[:5], atol=1e-5, rtol=1e-5)


def test_one_beam_is_greedy(model):
    found = beam_search(model, 12, 1, 16)
    ids = PROMPT
    with torch.inference_mode():
        for _ in range(12):
            ids = torch.cat([ids, model(ids[None])[0, -1, :4].argmax()[None]])
    assert found.ids[0].tolist() == ids[len(PROMPT) :].tolist()


def test_more_beams_find_no_less_likely_music(model):
    totals = [float(beam_search(model, 8, k, 12).log_p[0].sum()) for k in (1, 16)]
    assert totals[1] >= totals[0] - 1e-6
    assert EOS not in beam_search(model, 8, 4, 12).ids
