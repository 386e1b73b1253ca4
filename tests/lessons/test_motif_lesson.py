"""A motif that returns: an LSTM finds it at lags that no training had, and only where it came before."""

import numpy as np
import torch

from musictx.lessons import run
from musictx.lessons.motif import KINDS, LAGS, MARK, NOTES, STAGES, TRAINED, held_out, music, score, train
from musictx.model.build import build_model, model_config


def test_a_piece_has_its_motif_twice_so_far_apart():
    for lag in (0, 3, 20):
        ids = music(False).pieces(5, NOTES, lag)
        begins = (ids[0] == MARK).nonzero()[:, 0] + 1
        assert (begins[1] - begins[0]).item() == NOTES + lag + 1
        first, again = (ids[:, begin : begin + NOTES] for begin in begins)
        assert (first == again).all()
        assert ids.shape[1] == begins[1] + NOTES
    assert {held_out(lag) for lag in LAGS} == {True, False}
    assert STAGES[-1] == (NOTES, TRAINED)


def test_an_lstm_finds_it_at_lags_that_it_never_had():
    torch.manual_seed(0)
    kind, sizes, lr = KINDS["LSTM"]
    model = build_model(model_config(kind, sizes))
    assert train(model, music(False), 700, lr) == len(STAGES) - 1
    model.eval()
    assert np.mean([score(model, music(True), lag, 64) for lag in (8, 13, 18, 23)]) > 0.8
    assert score(model, music(True), 8, 64, other=True) < 0.4


def test_all_kinds_have_a_row():
    assert [row[0] for row in run("motif", 0.03).rows] == [*KINDS]
