import json
import re
import shutil

import numpy as np
import pytest
from conftest import ok
from strategies import forget_pedal

from musictx.analysis.facts import round_trip
from musictx.commands.inspect import inspect
from musictx.config.app import settings
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer


@pytest.fixture
def song(tmp_path):
    melody = Score([0, 0.5], [0.5, 1], [72, 74], [80, 90], program=np.array(73))
    drums = Score([0, 0.25], [0.1, 0.35], [36, 38], [100, 100], program=np.array(DRUMS))
    write_midi(Score.merge([melody, drums]), tmp_path / "song.mid")
    return tmp_path / "song.mid"


def inspected(capsys, *words):
    """What it prints."""
    inspect(settings("inspect", *words))
    return capsys.readouterr().out


def test_a_midi_file_in_a_few_lines(song, tmp_path):
    out = ok(["musictx", "inspect", f"midi={song}"], tmp_path).stdout
    assert "song.mid: 1.00 s, 120 quarters a minute" in out
    assert re.search(r" 73 +2 +72 … 74 +0$", out, re.M)
    assert re.search(r" drums +2 +36 … 38 +0$", out, re.M)
    assert "8 performance tokens: VELOCITY 19, NOTE_ON 72, TIME_SHIFT 50, NOTE_OFF 72, VELOCITY 22, NOTE_ON 74," in out
    assert "2 of 2 notes, onsets within 0.0 ms, velocity off by 1.00" in out


def test_a_pedal_that_the_file_forgets_is_said_for_its_track(song, capsys):
    out = inspected(capsys, f"midi={forget_pedal(song)}")
    assert sorted(re.findall(r"(?:72 … 74|36 … 38) +(.*)", out)) == ["0", "1, 1 not heard"]


def test_a_midi_file_as_json(song, capsys):
    facts = json.loads(inspected(capsys, f"midi={song}", "json=true", "tokenizer.name=miditok-tsd"))
    assert [(t["program"], t["notes"]) for t in facts["tracks"]] == [(73, 2), ("drums", 2)]
    assert facts["first_tokens"][:3] == ["Program_73", "Pitch_72", "Velocity_79"]
    assert facts["round_trip"]["notes_back"] == 2


def test_what_a_vocabulary_cannot_hold_is_said(tmp_path, capsys):
    write_midi(Score([0] * 5, [1] * 5, [60, 62, 64, 65, 67], [80] * 5), tmp_path / "five.mid")
    out = inspected(capsys, f"midi={tmp_path}/five.mid", "tokenizer=chorale")
    assert "step 0 (quarter 0) has 5 notes" in out


def test_what_is_wrong_in_a_file_is_said_and_is_data(song, tmp_path, capsys):
    assert json.loads(inspected(capsys, f"midi={song}", "json=true"))["discarded"] == {}
    (cut := tmp_path / "cut.mid").write_bytes(song.read_bytes()[:-20])
    assert "it is cut short: what is there to its last whole event is read" in inspected(capsys, f"midi={cut}")
    assert json.loads(inspected(capsys, f"midi={cut}", "json=true"))["discarded"]["cut_short"] == 1


def test_scores_show_their_own_bars_and_parts(tmp_path, capsys):
    notes = tuple(Note(24 * n, 24, 60 + n) for n in range(4))
    waltz = Notation((Part("Voice", 73, notes),), (Bar(0, 3, 4), Bar(24, 3, 4)), 96, (Key(0, -3),))
    (tmp_path / "waltz.mid").write_bytes(to_midi(waltz))
    out = inspected(capsys, f"midi={tmp_path}/waltz.mid", "tokenizer=score")
    assert "METER_4 3, SPAN, AT 24, KEY 4, PART 0, AT 0, LENGTH 24, PITCH 60, BAR, METER_4 3" in out
    assert "and back: 4 of 4 notes" in out


@pytest.mark.parametrize("letters", [40, 41, 300])
def test_a_long_name_is_short_in_the_table_and_whole_as_json(letters, tmp_path, capsys):
    path = tmp_path / "long.mid"
    path.write_bytes(to_midi(Notation((Part("Q" * letters, 0, (Note(0, 24, 60),)),), (Bar(0, 4, 4),), 96)))
    shown = re.findall("Q+…?", inspected(capsys, f"midi={path}"))
    assert shown == ["Q" * 40 if letters == 40 else "Q" * 39 + "…"]
    assert json.loads(inspected(capsys, f"midi={path}", "json=true"))["tracks"][0]["name"] == "Q" * letters


def test_round_trip_counts_what_is_lost():
    twice = Score([0.0, 0.004, 1.0], [0.5, 0.5, 2.0], [60, 60, 60], [80, 80, 81])
    assert round_trip(twice, build_tokenizer("performance").normalise(twice)) == {
        "notes": 3,
        "notes_back": 2,
        "largest_onset_error_s": 0.004,
        "mean_velocity_error": pytest.approx((2 + 2 + 1) / 3, abs=1e-3),
    }


def test_a_store_as_a_table_and_a_picture(world, tmp_path, capsys):
    out = inspected(capsys, f"store={world.store}", f"out={tmp_path}/deep/h.png")
    assert "8 files in, 8 kept, 0 left out" in out
    assert f"train: 6 pieces, {len(Store(world.store).split('train').ids):,} ids" in out
    assert f"{world.store} is sound" in out
    assert (tmp_path / "deep" / "h.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def no_picture(monkeypatch):
    monkeypatch.setattr("musictx.analysis.facts.plot_histograms", lambda *_: None)


def test_a_store_as_json(world, capsys, no_picture):
    facts = json.loads(inspected(capsys, f"store={world.store}", "json=true"))
    assert facts["tokenizer"] == "performance"
    store = Store(world.store)
    notes = sum(len(store.tokenizer.decode(ids)) for name in store.manifest.splits for ids in store.split(name))
    assert sum(facts["histograms"]["pitch"]["counts"]) == notes
    assert sum(facts["histograms"]["tokens in a piece"]["counts"]) == 8


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "got nothing:"),
        (["midi=elise", "bundle=piano"], "got midi= and bundle=:"),
        (["midi=elise", "out=a.png"], "out=a.png: "),
        (["store=s", "out=a.svg"], "out=a.svg: "),
        (["bundle=chorale", "rules=true"], "rules=true: "),
        (["midi=chorale", "beside=s"], "beside=s: "),
        (["midi=chorale", "rules=true", "tokenizer=chorale"], "tokenizer=chorale: "),
        (["midi=elise", "tokenizer.bpe_vocab=9"], "bpe_vocab=9: "),
        (["bundle=nowhere"], "nowhere: "),
    ],
)
def test_what_inspect_is_not_asked_for(words, line):
    with pytest.raises(UserError, match=f"^{re.escape(line)}"):
        inspect(settings("inspect", *words))


def test_a_bundle_in_a_few_lines_and_as_json(world, capsys):
    out = inspected(capsys, "bundle=chorale").splitlines()
    assert "JSB chorales, 16th grid, licence public domain" in out[0]
    assert out[1].startswith("model: 5 layers, attention: relative_fourier, 3,999,900 parameters")
    assert out[2] == "tokens: chorale 4df3aa7daff334a8; trained for infill"
    assert out[3] == "validation: 0.3249 nats a token"
    assert "seed_guidance: 1.25" in out
    facts = json.loads(inspected(capsys, f"bundle={world.bundle.parent}", "json=true"))
    assert (facts["file"], facts["model"]["d_model"]) == (str(world.bundle), 16)
    assert facts["objective"] == {"name": "next_token"}
    assert "tokenizer_state" not in facts


def test_a_word_is_shown_as_what_it_is(world, tmp_path, capsys, no_picture):
    shutil.copy(world.bundle, tmp_path / "mine.safetensors")
    (tmp_path / "stopped" / "checkpoints").mkdir(parents=True)
    shutil.copy(world.bundle, tmp_path / "stopped" / "checkpoints" / "best.ckpt")
    for word, said in (
        ("harmoniser", "JSB chorales"),
        (world.bundle.parent, "tokens: performance"),
        (tmp_path / "mine.safetensors", "tokens: performance"),
        (tmp_path / "stopped" / "checkpoints" / "best.ckpt", "tokens: performance"),
        (world.store, f"{world.store} is sound"),
        ("chorale", "chorale.mid: "),  # a seed has this name too
    ):
        assert said in inspected(capsys, f"midi={word}")
    with pytest.raises(UserError, match="stopped has no model.safetensors, its run is unfinished"):
        inspect(settings("inspect", f"midi={tmp_path / 'stopped'}"))
    with pytest.raises(UserError, match="^rules=true: it goes with midi="):
        inspect(settings("inspect", "midi=harmoniser", "rules=true"))


def test_a_store_without_pieces_or_counts_is_said(world, tmp_path, no_picture):
    shutil.copytree(world.store, tmp_path / "store")
    manifest = json.loads((tmp_path / "store" / "manifest.json").read_text())
    (tmp_path / "store" / "manifest.json").write_text(json.dumps(manifest | {"extra": {}}))
    inspect(settings("inspect", store=tmp_path / "store"))
    (tmp_path / "store" / "manifest.json").write_text(json.dumps(manifest | {"splits": {}}))
    with pytest.raises(UserError, match="no pieces"):
        inspect(settings("inspect", store=tmp_path / "store"))


def test_a_damaged_store_is_found(world, tmp_path):
    shutil.copytree(world.store, tmp_path / "store")
    file, manifest = tmp_path / "store" / "train.ids.bin", tmp_path / "store" / "manifest.json"
    ids = np.fromfile(file, "<u2")
    ids[3] = 390  # EOS
    ids.tofile(file)
    with pytest.raises(UserError, match="train split .*changed"):
        inspect(settings("inspect", store=tmp_path / "store"))
    facts = json.loads(manifest.read_text())
    facts["splits"]["train"]["sha256"] = ""  # of a store without checksums
    manifest.write_text(json.dumps(facts))
    with pytest.raises(UserError, match="id 390 in sub"):
        inspect(settings("inspect", store=tmp_path / "store"))
    offsets = np.load(tmp_path / "store" / "train.offsets.npy")
    offsets[[1, 2]] = offsets[[2, 1]]
    np.save(tmp_path / "store" / "train.offsets.npy", offsets)
    with pytest.raises(UserError, match="train split .*offsets"):
        inspect(settings("inspect", store=tmp_path / "store"))
    assert not (tmp_path / "store-histograms.png").exists()
