"""musictx attend: what it draws and prints of each kind of model."""

import re
from dataclasses import asdict, replace

import pytest
from conftest import ok
from small_scores import SONG, in_file
from untrained import write_score_model

from musictx.commands.attend import attend, find_note
from musictx.config.app import settings
from musictx.errors import ConfigError, UserError
from musictx.model.bundle import save_bundle
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
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
    pictures = [f"{stem}-{what}.svg" for what in ("attention", "heads", "map", "positions")]
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


def test_a_score_is_read_in_its_bars_and_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_score_model(tmp_path / "score.safetensors")
    in_file(SONG, tmp_path)
    words = ["bundle=score.safetensors", "midi=seed.mid", "out=look"]
    attend(settings("attend", *words, "at=4"))
    assert "note 9 of 11, at 4.00 s; means over " in capsys.readouterr().out  # of three parts
    assert len(list((tmp_path / "look").iterdir())) == 4
    with pytest.raises(ConfigError, match="^drums=true: a score has no drums: leave it out"):
        attend(settings("attend", *words, "drums=true", "overwrite=true"))
    with pytest.raises(UserError, match=r"elise\.mid is a performance, not a score"):
        attend(settings("attend", words[0], "midi=elise", "out=none"))


def save(path, model, kind, header):
    save_bundle(path, model, replace(header, model={"kind": kind, **asdict(model.config)}))


def test_a_model_without_attention_is_refused(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header = read_header(world.bundle)
    model = Recurrent(RecurrentConfig(vocab_size=header.model["vocab_size"], d_model=8, n_layers=2))
    save(tmp_path / "lstm", model, "recurrent", header)
    harmoniser = EncoderDecoder(EncoderDecoderConfig(header.model["vocab_size"], 8, n_heads=2, d_ff=8))
    save(tmp_path / "voices", harmoniser, "encoder_decoder", replace(header, objective={"name": "voices"}))
    for name in ("lstm", "voices"):
        with pytest.raises(ConfigError, match=f"^bundle={name}: it has no attention to draw: give a Transformer or a "):
            attend(settings("attend", f"bundle={name}", f"midi={world.seed}", "out=look"))


def test_a_table_of_few_places_draws_all_pictures(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header = read_header(world.bundle)
    config = TransformerConfig(
        header.model["vocab_size"], 16, n_layers=1, n_heads=2, d_ff=16, position="learned", max_positions=16
    )
    save(tmp_path / "few", Transformer(config), "transformer", header)
    attend(settings("attend", "bundle=few", f"midi={world.seed}", "out=look"))
    assert len([*(tmp_path / "look").iterdir()]) == 4
