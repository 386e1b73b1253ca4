"""The studies of scores: works on one side, works that are left out, orders that keep all notes, a bundle that fits."""

import json
import zipfile

import numpy as np
import pytest
import score_bundle
import score_music
import score_orders
import torch
from hypothesis import given
from strategies import notations, split_of
from trials import trial

from musictx.config.app import settings
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.files import write_json
from musictx.model.build import build_model, model_config
from musictx.model.header import read_header
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.tokenizers import with_added
from musictx.tokenizers.gap import ADDED
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import RIGHT
from musictx.training.fit import build_model_config

SCORE = ScoreTokenizer()
MAESTRO = """canonical_composer,canonical_title,split
Frédéric Chopin,"Etudes Op. 10 Nos. 9",test
Frédéric Chopin,"Scherzo No. 1 in B Minor, Op. 20",validation
Frédéric Chopin,"Nocturne in B Major, Op. 9, No. 3",test
Frédéric Chopin,Nocturne in Db,test
Frédéric Chopin,"Waltz, Op. 42",train
Robert Schumann,"Carnaval, Op. 9",test
"""
TWO_HANDS = Notation(
    (
        Part("Piano", 0, tuple(Note(24 * n, 24, 70 + k) for n in range(8) for k in (0, 4))),
        Part("Piano", 0, tuple(Note(24 * n, 24, 45 + k) for n in range(8) for k in (0, 7))),
    ),
    (Bar(0, 4, 4), Bar(96, 4, 4)),
    192,
)


@pytest.fixture
def opuses(tmp_path):
    with zipfile.ZipFile(tmp_path / "maestro.zip", "w") as archive:
        archive.writestr("maestro/maestro.csv", MAESTRO)
    return score_music.held_out_opuses(tmp_path / "maestro.zip")


@pytest.mark.parametrize(
    ("name", "held_out"),
    [
        ("chopin/kern/010_7-12-1-KI-009.krn", True),
        ("chopin/kern/010_7-12-1-KI-010.krn", False),
        ("chopin/kern/020-1-BH.krn", True),
        ("chopin/kern/009-1-KI-003.krn", True),
        ("chopin/kern/027-1-BH-002.krn", True),
        ("chopin/kern/027-1-BH-001.krn", False),
        ("chopin/kern/042-1-BH.krn", False),
        ("chopin/kern/WaltzEm-1b-SCH.krn", False),
        ("lieder/scores/Schubert,_Franz/_/Gretchen_am_Spinnrade,_D.118/lc7111114.mxl", True),
        ("lieder/scores/Schubert,_Franz/_/Der_Erlkönig,_D.328/lc29062370.mxl", True),
        ("lieder/scores/Schumann,_Clara/_/Ständchen/lc1.mxl", False),
    ],
)
def test_works_that_maestro_holds_out_are_left_out(opuses, name, held_out):
    assert opuses == {(10, 9), (20, 0), (9, 3), (27, 2)}
    assert score_music.is_held_out(name, opuses) == held_out


def test_editions_of_a_work_and_copies_share_a_side():
    names = [f"open-hymnal/{n}.abc" for n in range(40)]
    names += ["lieder/scores/A/_/Song/1.mxl", "lieder/scores/A/_/Song/2.mxl", "chopin/kern/017-1-BH-001.krn"]
    names += ["chopin/kern/017-1-BH-002.krn", "polish-keyboard/a.krn", "polish-keyboard/b.krn", "POP909/001/001.mid"]
    pieces = [Piece(name, np.zeros(3, np.uint16), 1.0) for name in names]
    keys = [f"{n}" for n in range(len(names) - 1)] + ["3"]  # the last one sounds like the hymn 3
    titles = dict.fromkeys(names[-3:-1], "somebody polonaise")
    side = dict(zip(names, score_music.assign(pieces, keys, titles), strict=True))
    assert {*side.values()} == {"train", "validation", "test"}
    for one, other in zip(names[40:46:2], names[41:46:2], strict=True):
        assert side[one] == side[other]
    assert side["POP909/001/001.mid"] == side["open-hymnal/3.abc"]
    few = score_music.assign(pieces[:20], keys[:20], titles)  # works stay where they are without the others
    assert few == [side[name] for name in names[:20]]


def test_hymns_of_one_tune_and_their_lead_sheets_share_a_side():
    jesus, redeemer = "open-hymnal/a/Jesus_Shall_Reign-Duke_Street.abc", "open-hymnal/b/I_Know-Duke_Street-Hatton.abc"
    angels, sheet = "open-hymnal/c/Angels_We_Have-Gloria.abc", "openewld/d/Angels_We_Have/Angels,_We_Have!.mxl"
    works = [score_music.works_of(name, {}) for name in (jesus, redeemer, angels, sheet)]
    assert works[0] & works[1] == {"duke street"}
    assert works[2] & works[3] == {"angels we have"}
    assert not (works[0] | works[1]) & (works[2] | works[3])
    assert score_music.works_of("open-hymnal/e/Peace-untitled.abc", {}) == {"peace"}


def test_two_hands_are_learned_with_either_order(tmp_path):
    ids = SCORE.encode_notation(TWO_HANDS)
    splits = {name: [Piece(name, ids, 1.0)] for name in ("train", "validation")}
    write_store(tmp_path / "works", SCORE, Corpus("some", "CC0"), splits, [])
    store = score_music.with_right_hand_ahead(Store(tmp_path / "works"), tmp_path / "store")
    assert store.split("train").names == ["train", f"train{score_music.AHEAD}"]
    assert store.split("validation").names == ["validation"]
    assert SCORE.ahead0 + RIGHT in store.split("train")[1]
    assert SCORE.decode_notation(store.split("train")[1]) == SCORE.decode_notation(ids)


def test_kinds_of_model_beside_each_other_have_as_many_parameters():
    sizes = {
        name: sum(
            p.numel()
            for p in build_model(model_config(each.kind, each.settings, vocab_size=SCORE.vocab.size)).parameters()
        )
        for name, each in score_orders.CONTESTANTS.items()
    }
    assert max(sizes.values()) < 1.1 * min(sizes.values()), sizes


@pytest.mark.parametrize("order", score_orders.ORDERS)
@given(notation=notations())
def test_an_order_keeps_all_notes_bars_and_meters(order, notation):
    ids = SCORE.encode_notation(notation)
    found = np.array(score_orders.ORDERS[order](ids))
    for kind in (SCORE.pitch >= 0, np.arange(SCORE.vocab.size) < SCORE.span):
        assert sorted(found[kind[found]]) == sorted(ids[kind[ids]])
    assert (found < SCORE.span).sum() == len(notation.bars)
    split, notes = score_orders.written(split_of(ids), order)
    assert notes.tolist() == [len({(n, note) for n, part in enumerate(notation.parts) for note in part.notes})]
    assert np.array_equal(split[0], found)


def test_every_order_and_kind_has_as_many_seconds_and_no_run_is_made_again(tmp_path, monkeypatch):
    small = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 16, "dropout": 0.0}
    cells = {"d_model": 16, "n_layers": 1, "dropout": 0.0}
    contestants = {
        name: each._replace(settings=cells if name == "LSTM" else small | {"position": each.settings["position"]})
        for name, each in score_orders.CONTESTANTS.items()
    }
    monkeypatch.setattr(score_orders, "CONTESTANTS", contestants)
    monkeypatch.setattr(score_orders, "WINDOW", 64)
    monkeypatch.setattr("timed.bracketed", lambda rates, cost: min(rates, key=cost))
    monkeypatch.chdir(tmp_path)
    ids = SCORE.encode_notation(TWO_HANDS)
    splits = {name: [Piece(f"{name}{n}", ids, 1.0) for n in range(4)] for name in ("train", "validation", "test")}
    write_store(tmp_path / "store", SCORE, Corpus("some", "CC0", "who wrote it"), splits, [])
    steps_s = {score_orders.AHEAD: 0.003, "table": 0.004, "LSTM": 0.001}
    each = {name: {"gradients": {"64": step_s - 0.0005}, "muon": 0.0005} for name, step_s in steps_s.items()}
    write_json(tmp_path / "made/costs.json", {"processor": "one", "seconds": each})
    (tmp_path / "made/made-by.txt").write_text("score_orders.py")
    command = "--store", "store", "--out", "made", "--seconds", "0.012"
    trial(score_orders, *command)
    rows = json.loads((tmp_path / "made/orders.json").read_text())
    assert {name: row["steps"] for name, row in rows.items()} == {
        name: [{"table": 3, "LSTM": 12}.get(name, 4)] * len(score_orders.SEEDS) for name in contestants
    }
    ahead = rows.pop(score_orders.AHEAD)["nats a note"][0]
    for row in rows.values():
        assert row["more than ahead"][0] == pytest.approx(row["nats a note"][0] - ahead)
    monkeypatch.setattr(score_orders, "train", lambda *_: pytest.fail("a run is made again"))
    trial(score_orders, *command, "--contestants", "LSTM", "by part")
    assert json.loads((tmp_path / "made/orders.json").read_text()).items() > rows.items()


def test_the_model_fits_its_bundle():
    for stage in score_bundle.STAGES:
        config = settings("train", f"experiment={stage}", "data.path=x", "out=y", "init_from=null")
        assert (config.objective, config.data.length) == ("infill", score_bundle.SEGMENT)
        with torch.device("meta"):  # the shapes alone
            model = build_model(build_model_config(config, with_added(SCORE, ADDED).vocab.size))
        assert sum(p.numel() for p in model.parameters()) * 2 < 16e6  # bytes as float16


@pytest.mark.usefixtures("no_curves")
def test_one_command_makes_a_scored_bundle(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = SCORE.encode_notation(TWO_HANDS)
    splits = {name: [Piece(name, ids, 1.0)] for name in ("train", "validation", "test")}
    write_store(tmp_path / "store", SCORE, Corpus("some", "CC0", "who wrote it"), splits, [])
    small = [f"model.{each}" for each in ("d_model=16", "n_layers=1", "n_heads=2", "d_ff=32")]
    words = [*small, "data.length=64", "data.segment=64", "trainer.max_steps=2", "data.workers=0"]
    trial(score_bundle, "--store", "store", "--out", "made", *words)
    header = read_header(tmp_path / "made/score.safetensors")
    assert (header.tokenizer, header.licence, header.notes["citation"]) == ("score", "CC0", "who wrote it")
    assert header.val_nll is not None
    assert not (tmp_path / "made/score-test.json").exists()
