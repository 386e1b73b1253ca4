"""studies/planted_motif.py: pieces whose motif returns, a rule for rates, and a trial from the command."""

import json
import sys

import numpy as np
import planted_motif
import pytest
import timed
import torch

from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("performance")


def notes(ids):
    """(pitch, length in steps) of each of the notes."""
    on, wait, off = ids.reshape(-1, 3).T
    assert (off - TOK.vocab.id("NOTE_OFF", 0) == on - TOK.vocab.id("NOTE_ON", 0)).all()
    return on - TOK.vocab.id("NOTE_ON", 0), wait - TOK.vocab.id("TIME_SHIFT", 1) + 1


@pytest.mark.parametrize("transposed", [0.0, 1.0])
@pytest.mark.parametrize("length", [33, 255])
def test_the_motif_returns_after_so_many_ids_as_it_was_or_transposed(length, transposed):
    for ids in planted_motif.pieces(8, length, np.random.default_rng(0), transposed):
        first, between, again = ids[2:26], ids[27 : 27 + length], ids[28 + length :]
        assert len(between) == length
        assert ids[1] == ids[27 + length] == TOK.vocab.id("VELOCITY", 28)
        (pitch, wait), (other, same) = notes(first), notes(again)
        assert wait.tolist() == same.tolist()
        (by,) = {*(other - pitch).tolist()}
        assert (1 <= abs(by) <= 5) if transposed else by == 0
        assert len(TOK.decode(ids[1:])) == 16 + length // 3


def test_of_a_stranger_the_return_says_nothing():
    (ids,) = planted_motif.pieces(1, 33, np.random.default_rng(0), 0.0, stranger=True)
    assert ids[2:26].tolist() != ids[61:].tolist()


def test_a_model_that_copies_has_all_pitches_as_they_were_and_none_transposed():
    def copies(ids):
        """Says the id that came as long before the next one as the motif is before its return."""
        logits = torch.zeros(*ids.shape, TOK.vocab.size)
        return logits.scatter(2, ids.roll(33 + 25, 1)[..., None], 1.0)

    assert planted_motif.accuracy(copies, "as it was", 33, 1) == (1, 1)
    assert planted_motif.accuracy(copies, "transposed", 33, 1) == (0, 1)
    pitch, time = planted_motif.accuracy(copies, "chance", 33, 1) or (1, 1)
    assert pitch < 0.15
    assert time == pytest.approx(0.25, abs=0.1)


def test_a_trial_from_the_command(tmp_path, monkeypatch):
    words = ["--out", str(tmp_path / "o"), "--seconds", "0.2"]
    monkeypatch.setattr(planted_motif, "KINDS", {"learned": planted_motif.KINDS["learned"]})
    monkeypatch.setattr(planted_motif, "LENGTHS", (33, 1023))
    monkeypatch.setattr(planted_motif, "LEARNED", (33,))
    monkeypatch.setattr(planted_motif, "SEEDS", (1,))
    monkeypatch.setattr(timed, "bracketed", lambda rates, cost: 1e-3)
    monkeypatch.setattr(sys, "argv", ["planted_motif.py", *words])
    planted_motif.main()
    monkeypatch.setattr(planted_motif, "train", lambda *_: pytest.fail("all is known"))
    planted_motif.main()
    row = json.loads((tmp_path / "o" / "planted-motif.json").read_text())["learned"]
    assert len(row["as it was"]["33"][0]) == 2
    assert row["as it was"]["1023"] == [None]  # too few positions
    assert (tmp_path / "o" / "planted-motif.png").read_bytes()[:4] == b"\x89PNG"
