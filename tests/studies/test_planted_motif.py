"""studies/planted_motif.py: pieces whose motif returns, a curriculum, kinds that can learn it, and a trial from the
command."""

import json
import sys

import numpy as np
import planted_motif
import pytest
import step_costs
import timed
import torch

from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("performance")


def notes(ids):
    """(pitch, length in steps) of each of the notes."""
    on, wait, off = ids.reshape(-1, 3).T
    assert (off - TOK.vocab.id("NOTE_OFF", 0) == on - TOK.vocab.id("NOTE_ON", 0)).all()
    return on - TOK.vocab.id("NOTE_ON", 0), wait - TOK.vocab.id("TIME_SHIFT", 1) + 1


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("length", "offset", "n"), [(33, 0, 8), (255, 30, 8), (0, 9, 2)])
def test_the_motif_begins_after_so_many_ids_and_returns_after_so_many(length, offset, n, transposed):
    for ids in planted_motif.pieces(8, length, offset, np.random.default_rng(0), transposed, n):
        before, rest = ids[1 : 1 + offset], ids[1 + offset :]
        first, between, again = rest[1 : 1 + 3 * n], rest[2 + 3 * n : 2 + 3 * n + length], rest[3 + 3 * n + length :]
        assert len(notes(before)[0]) == offset // 3
        assert len(notes(between)[0]) == length // 3
        assert rest[0] == rest[2 + 3 * n + length] == TOK.vocab.id("VELOCITY", 28)
        (pitch, wait), (other, same) = notes(first), notes(again)
        assert wait.tolist() == same.tolist()
        (by,) = {*(other - pitch).tolist()}
        assert (1 <= abs(by) <= 5) if transposed else by == 0
        assert len(TOK.decode(ids[1:])) == 2 * n + (length + offset) // 3


def test_training_draws_every_place_but_those_held_out():
    rng = np.random.default_rng(0)
    seen = {planted_motif.drawn(447, rng) for _ in range(5000)}
    assert seen == {n for n in range(0, 448, 3) if n // 3 % 10 != 7}
    assert seen >= {*planted_motif.TRAINED}
    assert not seen & {*planted_motif.UNSEEN}
    kept = [ids.shape[1] for _ in range(200) for ids in [planted_motif.Curriculum(None, "as it was", 0).drawn(12)[0]]]
    assert max(kept) <= 1 + 90 + 2 + 447 + 1 + 48


def copier(period):
    """Says the id that came as long before the next one as the motif is before its return."""

    def copies(ids):
        logits = torch.zeros(*ids.shape, TOK.vocab.size)
        return logits.scatter(2, ids.roll(period, 1)[..., None], 1.0)

    return copies


def test_a_model_that_copies_has_all_pitches_as_they_were_and_none_transposed():
    copies = copier(33 + 25)
    for offset in (0, 51, None):
        assert planted_motif.accuracy(copies, "as it was", 33, offset, 1) == (1, 1)
        assert planted_motif.accuracy(copies, "transposed", 33, offset, 1) == (0, 1)
    pitch, time = planted_motif.accuracy(copies, "as it was", 33, None, 1, stranger=True) or (1, 1)
    assert pitch < 0.15
    assert time == pytest.approx(0.25, abs=0.1)


def test_a_stage_ends_when_three_of_four_pitches_are_right():
    at = {"knows": 0}
    curriculum = planted_motif.Curriculum(None, "as it was", 0)
    curriculum.model = lambda ids: copier(at["knows"])(ids)
    for stage, n in enumerate((2, 4, 6, 8)):
        at["knows"] = 0  # wrong
        for _ in range(2 * planted_motif.LOOK):
            curriculum.loss()
        assert curriculum.stage == stage
        at["knows"] = 3 * n + 1
        while curriculum.stage == stage:
            curriculum.loss()
            assert curriculum.steps < 1000
    assert len(curriculum.passed) == 4


@pytest.mark.parametrize("optimizers", [(0.9, 0.2), (0.2, 0.9)])
def test_optimizer_and_rate_are_those_with_the_most_right_pitches(monkeypatch, optimizers):
    best = dict(zip(step_costs.OPTIMIZERS, optimizers, strict=True))

    def run_of(optimizer, rate, seed):
        assert seed == 0
        share = best[optimizer] - abs(np.log2(rate / 8e-3)) / 100  # 8e-3 is beyond the rates that are tried first
        return {"length": {str(n): (share, 1.0) for n in planted_motif.TRAINED}}

    assert planted_motif.chosen(run_of) == (max(best, key=lambda name: best[name]), 8e-3)


def test_time_is_counted_by_the_ids_of_each_step():
    curriculum, over = planted_motif.Curriculum(None, "as it was", 0), []
    for share in curriculum.shares(lambda length: 0.1 * length, 10.0):
        over.append(share)
        curriculum.length = len(over)
    assert over == pytest.approx([n * (n + 1) / 200 for n in range(14)])  # of steps with 1, 2, 3 … ids


def test_a_trial_from_the_command(tmp_path, monkeypatch):
    words = ["--out", str(tmp_path / "o"), "--seconds", "0.2"]
    monkeypatch.setattr(planted_motif, "KINDS", {name: planted_motif.KINDS[name] for name in ("learned", "LSTM")})
    for name, few in {"TRAINED": (9,), "UNSEEN": (21,), "FAR": (600, 1023), "OFFSETS": (0,), "SEEDS": (1,)}.items():
        monkeypatch.setattr(planted_motif, name, few)
    monkeypatch.setattr(planted_motif, "SCORED", {"near": 4, "far": 4})
    monkeypatch.setattr(step_costs, "TURNS", 1)
    monkeypatch.setattr(timed, "bracketed", lambda rates, cost: (cost(1e-3), 1e-3)[1])
    for kinds in (["--kinds", "LSTM"], []):  # in two parts
        monkeypatch.setattr(sys, "argv", ["planted_motif.py", *words, *kinds])
        planted_motif.main()
    monkeypatch.setattr(planted_motif, "train", lambda *_: pytest.fail("all is known"))
    planted_motif.main()
    table = json.loads((tmp_path / "o" / "motif.json").read_text())
    row = table["learned"]["as it was"]
    assert len(row["length"]["9"][0]) == 2
    assert row["length"]["600"] == [None]  # too few positions
    assert row["longer"]["steps"] > row["steps"][0]  # it learned nothing in that time
    assert list(table["LSTM"]["transposed"]["length"]) == ["9", "21", "600"]  # and no further
    assert (tmp_path / "o" / "motif.png").read_bytes()[:4] == b"\x89PNG"
