from dataclasses import replace

import numpy as np
import pytest
import torch
from stubs import Said

from musictx.generate.engine import BLOCK, BatchRow, Uniforms, begin_stream
from musictx.generate.filters import NanError
from musictx.generate.requests import MAX_SEED, PLAIN
from musictx.model.position import FORMS
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.torch_steps import TorchPlayer
from musictx.model.transformer import Transformer, TransformerConfig

V = 11
PROMPT = np.array([9, 1, 2, 3])
ROW = BatchRow(0, (5, 0))


class Below:
    """A grammar: ids below `n` are music, at any time."""

    def __init__(self, n):
        self.n = n

    def legal(self):
        return (np.arange(V) < self.n)[None]

    def update(self, ids):
        pass

    def move(self, rows):
        pass


def build(position="relative", **changes) -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "max_distance": 8, "n_frequencies": 2}
    net = Transformer(TransformerConfig(V, position=position, **(sizes | changes))).eval()
    torch.nn.init.normal_(net.embed.weight, std=0.2)
    return net


@pytest.fixture(scope="module")
def model():
    return build()


def run(model, n=20, prompts=(PROMPT,), rows=(ROW,), room=60, rolling=False, **settings):
    """The ids (B, n) that rows draw."""
    stream = begin_stream(TorchPlayer(model), prompts, rows, replace(PLAIN, **settings), Below(8), room, rolling)
    return np.stack([next(stream).ids for _ in range(n)], 1)


@pytest.mark.parametrize(
    ("kind", "rolling"),
    [
        *((kind, True) for kind in ("relative", "relative_fourier", "rope", "cells", "recall")),
        *((kind, False) for kind in ("relative", "sinusoidal", "none")),
    ],
)
def test_every_row_of_a_ragged_batch_equals_its_solo_run(kind, rolling):
    torch.manual_seed(0)
    cells = RecurrentConfig(V, d_model=16, n_layers=2, recall=kind != "cells", d_attention=8, window=6)
    model = (build(kind) if kind in FORMS else Recurrent(cells).eval()).double()
    prompts = [np.arange(n) % 8 for n in (3, 17, 1)]
    how = {"room": 8, "rolling": True} if rolling else {}
    rows = [BatchRow(2, (5, 0)), BatchRow(0, (5, 0)), BatchRow(1, (5, 1)), BatchRow(0, (5, 2))]
    together = run(model, 25, prompts, rows, **how)
    for row, drawn in zip(rows, together, strict=True):
        alone = run(model, 25, [prompts[row.prompt]], [BatchRow(0, row.key)], **how)
        assert drawn.tolist() == alone[0].tolist()


@pytest.mark.parametrize(("length", "blocks"), [(1, [1]), (13, [5, 5, 3])])
def test_a_long_prompt_is_read_in_blocks_to_the_same_effect(model, monkeypatch, length, blocks):
    prompt, seen, logits = np.arange(length) % 8, [], []

    def prefill(ids, state):
        seen.append(ids.shape[1])
        logits.append(Transformer.prefill(model, ids, state))
        return logits[-1]

    monkeypatch.setattr(model, "prefill", prefill)
    drawn = {}
    for size in (512, 5):
        seen.clear()
        monkeypatch.setattr("musictx.model.torch_steps.PREFILL_BLOCK", size)
        drawn[size] = run(model, prompts=[prompt])
        torch.testing.assert_close(logits[-1], model(torch.from_numpy(prompt)[None])[:, -1])
    assert seen == blocks
    assert drawn[5].tolist() == drawn[512].tolist()


def test_log_probabilities_are_the_models_own(model):
    hot = replace(PLAIN, temperature=3.0, top_k=2)
    stream = begin_stream(TorchPlayer(model), [PROMPT], [ROW], hot, Below(8), 30, False)
    drawn = [next(stream) for _ in range(6)]
    ids = np.concatenate([PROMPT, *(d.ids for d in drawn)])
    with torch.inference_mode():
        log_p = model(torch.from_numpy(ids)[None])[0].log_softmax(-1).numpy()
    for i, d in enumerate(drawn):
        assert d.log_p[0] == pytest.approx(log_p[3 + i, d.ids[0]], rel=1e-5)


def test_music_continues_for_ever_in_the_same_memory(model):
    stream = begin_stream(TorchPlayer(model), [PROMPT], [ROW], PLAIN, Below(8), 8, True)
    state = stream.steps.state  # type: ignore[attr-defined] # of TorchSteps
    memory = state.k.data_ptr(), state.k.shape
    for _ in range(80):  # ten windows
        next(stream)
    assert (state.k.data_ptr(), state.k.shape) == memory
    assert state.length == 83


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_noticed_in_any_row(wrong):
    def say(length, rows):
        logits = np.zeros((rows, V))
        if length > 6:
            logits[1, 3] = wrong
        return logits

    stream = begin_stream(Said(say), [PROMPT], [BatchRow(0, (5, k)) for k in range(2)], PLAIN, Below(8), 30, False)
    for _ in range(3):
        next(stream)
    with pytest.raises(NanError):
        next(stream)


def numbers(*keys, n=BLOCK + 3):
    uniforms = Uniforms(keys)
    return np.concatenate([uniforms.next() for _ in range(n)], 1)


def test_random_numbers_depend_on_a_rows_own_key_alone_and_stay_from_release_to_release():
    keys = [(0, 0), (0, 1), (1, 0), (MAX_SEED, 0), (MAX_SEED - 1, 1), (MAX_SEED - 1, 0)]
    rows = numbers(*keys)
    assert numbers(keys[1])[0].tolist() == rows[1].tolist()
    assert len({tuple(row.tolist()) for row in rows}) == len(keys)
    assert ((rows >= 0) & (rows < 1)).all()
    assert numbers((1, 2), n=3).tolist() == [[0.30931491118583454, 0.3569562367935075, 0.036904530468356844]]
