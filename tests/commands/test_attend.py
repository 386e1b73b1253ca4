"""musictx attend: what it draws and prints of each kind of model."""

import re
from dataclasses import asdict, replace

import pytest
import torch
from conftest import ok

from musictx.commands.attend import attend, find_note
from musictx.config.app import settings
from musictx.errors import ConfigError, UserError
from musictx.model.bundle import save_bundle
from musictx.model.encoder import Encoder, EncoderConfig
from musictx.model.header import read_header
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.music.score import Score

SCORE = Score([0.0, 1.0, 1.0, 2.5], [1.0, 2.0, 2.0, 3.0], [60, 62, 64, 65], [80] * 4)


@pytest.mark.parametrize(
    ("at", "note"), [(None, 3), ("0", 0), ("0.5", 1), ("1.0", 1), ("1", 1), ("2.5", 3), ("note1", 0), ("note3", 2)]
)
def test_a_note_is_named_by_its_second_or_its_number(at, note):
    assert find_note(SCORE, at) == note


@pytest.mark.parametrize("at", ["2.6", "-1", "note0", "note5", "note1.5", "soon", "", "nan", "inf"])
def test_a_note_that_is_not_there(at):
    with pytest.raises(ConfigError, match=f"^at={at}: give a second up to 2.50, .* or note1 to note4"):
        find_note(SCORE, at)


def test_pictures_and_a_table(world, tmp_path):
    args = ["musictx", "attend", f"bundle={world.bundle}", f"midi={world.seed}", "out=look", "format=svg"]
    out = ok([*args, "layer=0", "at=3"], tmp_path).stdout
    stem = world.seed.stem
    pictures = [f"{stem}-{what}.svg" for what in ("attention", "heads", "map")]
    assert sorted(p.name for p in (tmp_path / "look").iterdir()) == pictures
    assert re.search(r"^note \d+ of \d+, at [34]\.\d\d s; means over \d+ notes up to it$", out, re.M)
    rows = re.findall(r"^0 +(\d) +(\d+\.\d\d) +(\d+\.\d)%", out, re.M)
    assert [row[0] for row in rows] == ["0", "1"]
    assert all(0 < float(s) < 4.5 and 0 < float(share) <= 100 for _, s, share in rows)
    text = (tmp_path / "look" / f"{stem}-attention.svg").read_text()
    assert all(f"head {head}, heaviest " in text for head in (0, 1))


def test_mistakes_are_one_line(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / f"{world.seed.stem}-heads.png").touch()
    for word, line in (
        ("layer=1", "^layer=1: give 0 to 0"),
        ("head=0", "^head=0: it needs a layer"),
        ("at=99", "^at=99: give a second up to"),
        ("format=bmp", "^format=bmp: give one of png, svg, pdf"),
        ("voice=A", "^voice=A: "),
        ("out=there", "-heads.png exists already"),
    ):
        with pytest.raises(UserError, match=line):
            attend(settings("attend", f"bundle={world.bundle}", f"midi={world.seed}", "out=look", word))
    assert not (tmp_path / "look").exists()


def save(path, model, kind, header):
    save_bundle(path, model, replace(header, model={"kind": kind, **asdict(model.config)}))


def test_the_gates_of_an_lstm(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    header = read_header(world.bundle)
    for cell in ("lstm", "rnn"):
        model = Recurrent(RecurrentConfig(vocab_size=header.model["vocab_size"], d_model=8, n_layers=2, cell=cell))
        with torch.no_grad():
            model.cells.get_parameter("bias_ih_l0")[8:16] = 4.0  # of an LSTM, how much its first layer remembers
        save(tmp_path / cell, model, "recurrent", header)
    args = [f"midi={world.seed}", "out=look", "format=svg"]
    attend(settings("attend", "bundle=lstm", *args))
    out = capsys.readouterr().out
    rows = [[float(x) for x in line.split()] for line in out.splitlines() if re.match(r" *[01] +\d\.", line)]
    assert [row[0] for row in rows] == [0, 1]
    assert all(0 < x < 1 for row in rows for x in row[1:])
    assert min(rows[0][3:5]) > 0.95 > 0.8 > max(rows[1][3:5])  # its forget gate
    text = (tmp_path / "look" / f"{world.seed.stem}-gates.svg").read_text()
    assert all(word in text for word in ("input gate", "forget gate", "output gate", "layer 0", "layer 1"))
    for words, line in ((["bundle=lstm", "layer=1"], "^layer=1: "), (["bundle=rnn"], "^bundle=rnn: .*no gates")):
        with pytest.raises(UserError, match=line):
            attend(settings("attend", *args, *words))


def test_an_encoder_looks_both_ways(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    header = read_header(world.bundle)
    save(tmp_path / "both", Encoder(EncoderConfig(header.model["vocab_size"], 16, 2, 2, 32)), "encoder", header)
    attend(settings("attend", "bundle=both", f"midi={world.seed}", "out=look", "at=note30"))
    out = capsys.readouterr().out
    said = re.search(r"^note 30 of .*; (.*)% of .* notes before it, (.*)% on notes after; .* waits$", out, re.M)
    assert said is not None
    before, after = float(said[1]), float(said[2])
    assert min(before, after) > 10  # an untrained one looks everywhere
    assert before + after < 100


def test_a_table_of_few_places_draws_all_pictures(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header = read_header(world.bundle)
    config = TransformerConfig(
        header.model["vocab_size"], 16, n_layers=1, n_heads=2, d_ff=16, position="learned", max_positions=16
    )
    save(tmp_path / "few", Transformer(config), "transformer", header)
    attend(settings("attend", "bundle=few", f"midi={world.seed}", "out=look"))
    assert len([*(tmp_path / "look").iterdir()]) == 3
