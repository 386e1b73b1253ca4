"""What is measured of a model of scores: excerpts, nats of the right ids, leaps, dissonance, rows that are kept."""

import json

import numpy as np
import pytest
import score_bundle
import score_drawn
import score_measures
import score_nats
import score_tables
import score_tunes
import score_works
import torch
from score_works import SCORE, Work
from strategies import split_of
from trials import trial

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.errors import StoreError
from musictx.model.build import build_model, model_config
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE

SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32, "dropout": 0.0}
BARS = 18


def song(name, up=0, bars=BARS, tune=True):
    """Bars of 4/4: a tune of four quarters, chords above a bass."""
    lines = {
        TUNE: [Note(96 * n + 24 * k, 24, 72 + up + (5 * n * k + n) % 11) for n in range(bars) for k in range(4)],
        RIGHT: [Note(96 * n, 96, 60 + up + k + n % 3) for n in range(bars) for k in (0, 4)],
        LEFT: [Note(96 * n + 48 * k, 48, 40 + up + (n + 7 * k) % 12) for n in range(bars) for k in range(2)],
    }
    slots = [slot for slot in lines if tune or slot != TUNE]
    parts = tuple(Part(("tune", "piano", "piano")[slot], 0, tuple(lines[slot])) for slot in slots)
    notation = Notation(parts, tuple(Bar(96 * n, 4, 4) for n in range(bars)), 96 * bars, (Key(0, 0), Key(480, 2)))
    return Work(name, SCORE.encode_notation(notation), notation, tuple(slots))


SONG = song("lieder/one.mxl")


def model():
    torch.manual_seed(0)
    return build_model(model_config("transformer", SMALL, vocab_size=SCORE.vocab.size)).eval()


def store_of(path, *works, train=()):
    pieces = {"validation": works, "train": train, "test": works[:1]}
    splits = {name: [Piece(w.name, w.ids, 1.0) for w in some] for name, some in pieces.items()}
    write_store(path, SCORE, Corpus("some", "CC0", "who wrote it"), splits, [])
    return Store(path)


def test_some_bars_are_a_work_whose_notes_end_with_it():
    long = Part("x", 0, (Note(0, 500, 60), Note(96, 24, 62), Note(192, 24, 64)))
    work = SONG._replace(notation=Notation((long,), SONG.notation.bars, SONG.notation.end, SONG.notation.keys))
    assert work.cut(0, 2).notation.parts[0].notes == (Note(0, 192, 60), Note(96, 24, 62))
    part = work.cut(1, 3).notation
    assert (part.parts[0].notes, part.end) == ((Note(0, 24, 62), Note(96, 24, 64)), 192)
    assert (part.bars, part.keys) == ((Bar(0, 4, 4), Bar(96, 4, 4)), (Key(0, 0),))
    assert work.cut(6, 8).notation.keys == (Key(0, 2),)


def test_works_are_taken_evenly_from_the_corpora():
    works = [song(f"{corpus}/{n}.mxl") for corpus, count in (("a", 9), ("b", 2), ("c", 9)) for n in range(count)]
    found = score_works.choose(works, 8, lambda work: work.name != "a/0.mxl")
    assert [work.name for work in found] == [
        f"{x}.mxl" for x in ("a/1", "a/5", "a/8", "b/0", "b/1", "c/0", "c/4", "c/8")
    ]


def test_a_held_out_piece_that_was_learned_is_refused(tmp_path):
    other = song("lieder/other.mxl", bars=9, tune=False)
    assert score_works.check_apart(store_of(tmp_path / "apart", SONG, train=[other]), "validation") < 0.4
    again = song("lieder/again.mxl", up=3)  # in another key
    with pytest.raises(StoreError, match=r"one\.mxl of the validation split is like lieder/again\.mxl"):
        score_works.check_apart(store_of(tmp_path / "same", SONG, train=[other, again]), "validation")


@pytest.mark.parametrize("window", [1024, 64])
def test_nats_are_those_of_the_likelihood_of_the_package(window, monkeypatch):
    monkeypatch.setattr(score_nats, "WINDOW", window)
    monkeypatch.setattr(score_nats, "STRIDE", window // 2)
    net = model()
    found = score_nats.nats_of(net, SONG.ids)
    true = negative_log_likelihood(net, split_of(SONG.ids), SCORE, window, stride=window // 2)
    assert len(found) == true.tokens
    assert found.sum() == pytest.approx(true.nats[0], rel=1e-5)


def test_the_first_notes_after_a_gap_are_those_of_the_bar_and_of_nothing_later(monkeypatch):
    monkeypatch.setattr(score_nats, "nats_of", lambda _, ids: np.ones(len(ids)))
    found = score_nats.after_gap(None, SONG.notation, SONG.slots, 9)
    assert found == {"nats": 9.0, "notes": 3}  # AT, LENGTH and PITCH of each part


def test_the_same_ids_of_the_hands_are_scored_with_and_without_a_tune():
    found = score_tunes.accompaniment(model(), SONG)
    assert found is not None
    assert (found["notes"], found["bars"]) == (4 * BARS, BARS)
    assert len({found[name] for name in ("tune", "no melody", "other bars' tune")}) == 3
    moved = score_tunes.elsewhere(SONG)
    assert moved.only(RIGHT, LEFT) == SONG.only(RIGHT, LEFT)
    assert moved.notes(TUNE)[:4] == [n._replace(onset=n.onset - 96 * 9) for n in SONG.notes(TUNE)[36:40]]
    late = SONG._replace(notation=Notation(SONG.notation.parts, (Bar(0, 4, 4), Bar(96, 3, 4)), 168))
    assert score_tunes.accompaniment(model(), late) is None  # bars differ


def test_leaps_are_those_at_both_borders_or_across_silence():
    tune = Part("tune", 0, (Note(0, 24, 60), Note(96, 24, 65), Note(120, 24, 90), Note(144, 24, 67), Note(192, 24, 70)))
    left = Part("piano", 0, (Note(0, 24, 50), Note(0, 24, 40), Note(192, 24, 45), Note(192, 24, 57)))
    notation = Notation((tune, left), tuple(Bar(96 * n, 4, 4) for n in range(3)), 288)
    assert score_drawn.leaps(notation, (TUNE, LEFT), 96, 192) == {"semitones": 5 + 3 + 5, "leaps": 3, "silent parts": 1}


@pytest.mark.parametrize(("pitch", "dissonant"), [(40, 0), (43, 0), (45, 0), (50, 24), (51, 24), (41, 24), (46, 24)])
def test_the_tune_is_dissonant_with_the_lowest_hand_alone(pitch, dissonant):
    tune, hands = [Note(0, 48, pitch + 12)], [Note(0, 24, 40), Note(0, 24, pitch + 11)]
    found = score_tunes.dissonance(tune, hands, 96)
    assert found == {"tune": 48, "both": 24, "dissonant": dissonant}


def test_hands_of_another_song_come_in_the_key_of_the_tune():
    one, other = (score_tunes.Song.of(song(f"lieder/{up}.mxl", up)) for up in (0, 3))
    assert (other.tonic - one.tonic) % 12 == 3
    assert one.fits(other)
    assert not one.fits(one)
    assert not one.fits(other._replace(mode="another"))


def test_a_bar_that_comes_again_at_once_is_counted_where_it_has_notes():
    bars = tuple(Bar(96 * n, 4, 4) for n in range(3))
    notation = Notation((Part("x", 0, (Note(0, 24, 60), Note(96, 24, 60), Note(192, 12, 60))),), bars, 288)
    first, second, third = (score_drawn.notes_of(notation, n) for n in range(3))
    assert first == second
    assert second != third


def test_tables_say_intervals_and_what_is_missing():
    nats = score_tables.ratio([2.0, 4.0], [1, 1])
    table: score_tables.Table = ("corpus", {"all": {"works": 1200, "nats": nats}, "b": {"nats": None}})
    head, _, first, second = score_tables.markdown(table).split("\n")
    assert (head, second) == ("| corpus | works | nats |", "| b | – | – |")
    assert first == "| all | 1,200 | 3.000 (2.000 to 4.000) |"
    assert score_tables.ratio([1.0], [0]) is None


@pytest.mark.usefixtures("no_curves")
def test_one_command_measures_all_and_makes_no_row_again(tmp_path, monkeypatch):
    """A store of two songs and a tune, and a bundle that has learned nothing."""
    monkeypatch.chdir(tmp_path)
    alone = song("openewld/x.mxl", 1).only(TUNE)
    alone = alone._replace(ids=SCORE.encode_notation(alone.notation))
    store_of(tmp_path / "store", SONG, song("POP909/b.mid", 5), alone, train=[song("a", bars=9, tune=False)])
    small = [f"model.{name}={value}" for name, value in SMALL.items()]
    words = [*small, "data.length=64", "data.segment=64", "trainer.max_steps=2", "data.workers=0"]
    trial(score_bundle, "--store", "store", "--out", "made", *words)
    asked = ["--store", "store", "--bundle", "made/score.safetensors", "--seeds", "3", "--files", "1", "--out", "out"]
    trial(score_measures, *asked)
    page, facts = (tmp_path / "out/measures.md").read_text(), json.loads((tmp_path / "out/measures.json").read_text())
    assert {*score_measures.PARTS} <= {*facts}
    assert all(f"## {part}\n" in page for part in score_measures.PARTS)
    (score,) = (row for row in page.split("\n") if row.startswith("| on twenty-fourths") and row.count("|") == 7)
    assert "| 1.000 (1.000 to 1.000) | 1.000 (1.000 to 1.000) |" in score
    rows = json.loads((tmp_path / "out/hands.json").read_text()).values()
    assert [sorted(row["found"]) for row in rows].count(["another song's", "composers", "drawn"]) == 2
    assert not (tmp_path / "out/likelihood-test.json").exists()
    monkeypatch.setattr(score_drawn.ScoreModel, "draw", lambda *_: pytest.fail("it drew again"))
    monkeypatch.setattr(score_nats, "nats_of", lambda *_: pytest.fail("it scored again"))
    trial(score_measures, *asked)
    assert (tmp_path / "out/measures.md").read_text() == page
