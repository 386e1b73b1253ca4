"""musictx attend, through the real command."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from conftest import ok, refused

from musictx.analysis.seed_gain import log_p_of_last, raised_by_seed
from musictx.commands.attend import find_note, raised_notes
from musictx.errors import ConfigError
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import read_header, save_bundle
from musictx.model.encoder import Encoder, EncoderConfig
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.music.read import read_midi
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


@pytest.mark.parametrize("name", ["tune", "hymn"])
def test_pictures_and_a_table(world, tmp_path, name):
    bundle, midi = (world.bundle, world.seed) if name == "tune" else (world.hymn_bundle, world.hymn)
    args = ["musictx", "attend", f"bundle={bundle}", f"midi={midi}", "out=look"]
    out = ok([*args, "layer=0", "at=3", "format=svg"], tmp_path).stdout
    stem = midi.stem
    assert sorted(p.name for p in (tmp_path / "look").iterdir()) == [f"{stem}-attention.svg", f"{stem}-heads.svg"]
    assert re.search(r"^note \d+ of \d+, at [34]\.\d\d s; means over \d+ notes up to it$", out, re.M)
    rows = re.findall(r"^0 +(\d) +(\d+\.\d\d) +(\d+\.\d)%", out, re.M)
    assert [row[0] for row in rows] == ["0", "1"]
    assert all(0 < float(s) < 4.5 and 0 < float(share) <= 100 for _, s, share in rows)
    assert "what it looks at, layer 0" in out
    text = (tmp_path / "look" / f"{stem}-attention.svg").read_text()
    assert "head 0, heaviest " in text
    assert "head 1, heaviest " in text
    line = refused([*args, "format=svg"], tmp_path)
    assert line.endswith(f"{stem}-attention.svg exists already: give another out= or overwrite=true")
    again = ok([*args, "format=svg", "overwrite=true", "layer=0", "head=1", "at=note9"], tmp_path).stdout
    assert "\nnote 9 of " in again
    tied = "hymn0.mid: of its 41 notes the grid of sixteenths hears 2 as held instead of struck again\n"
    assert (tied in again) == (name == "hymn")
    assert "layer 0 head 1" in again


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        ("layer=1", "layer=1: give 0 to 0"),
        ("head=0", "head=0: it needs a layer"),
        ("at=99", "at=99: give a second up to .* or note1 to note"),
        ("format=bmp", "format=bmp: give one of png, svg, pdf"),
        ("motif_notes=0", "motif_notes=0: "),
    ],
)
def test_mistakes_are_one_line(world, tmp_path, arg, text):
    args = [f"bundle={world.bundle}", f"midi={world.seed}", "out=look", arg]
    assert re.search(text, refused(["musictx", "attend", *args], tmp_path))
    assert not (tmp_path / "look").exists()


def test_what_the_seed_raised_is_drawn_and_said(world, tmp_path):
    args = ["musictx", "attend", f"bundle={world.hymn_bundle}", f"midi={world.hymn}", "out=look", "format=svg"]
    out = ok([*args, "seed_seconds=4.8"], tmp_path).stdout
    name = "look/hymn0-raised.svg"
    said = r"the seed raised this note by [+-]\d\.\d\d nats, new notes by [+-]\d\.\d\d on average"
    assert re.search(f"^{name}: {said}$", out, re.M)
    assert "what it looks at of the seed, mean of all heads" in out
    assert "by which the seed" in (tmp_path / name).read_text()
    for word, text in (
        ("seed_seconds=0.3", "seed_seconds=0.3: 8 of [0-9]+ tokens are the seed: give a time before the end and after"),
        ("seed_seconds=900", "seed_seconds=900.0: ([0-9]+) of \\1 tokens are the seed"),
        ("seed_seconds=-1", "seed_seconds=-1.0: 0 of "),
    ):
        assert re.search(text, refused([*args, "overwrite=true", word], tmp_path))
    line = refused([*args, "overwrite=true", "seed_seconds=4.8", "at=2"], tmp_path)
    assert line.endswith("error: at=2: that note is the seed's own: give a later one, or leave at= out")


@pytest.fixture
def hymn(world):
    model, tokenizer, _ = open_bundle(world.hymn_bundle)
    return model, tokenizer, tokenizer.encode(read_midi(world.hymn, one_tempo=True))


def test_a_notes_gain_is_that_of_all_its_tokens(hymn):
    model, tokenizer, ids = hymn
    traced = tokenizer.trace(ids, 0.6)
    gain, n = raised_notes(model, tokenizer, ids, traced, 4.8, "cpu"), 4 * 32  # sixteenths of 0.15 s
    tokens = raised_by_seed(model, tokenizer, ids, 4.8, 0.6)
    assert np.isnan(tokens[:n]).all()
    alone = log_p_of_last(model, np.concatenate([[tokenizer.vocab.bos], ids]), len(ids) - n, "cpu")
    bare = log_p_of_last(model, ids[n - 17 :], len(ids) - n, "cpu")
    assert tokens[n:] + bare == pytest.approx(alone, abs=1e-5)
    assert np.isnan(gain).tolist() == (traced.score.onset_s < 4.8 - 1e-6).tolist()
    note = int(np.flatnonzero(~np.isnan(gain))[3])
    assert gain[note] == pytest.approx(tokens[traced.note == note].sum())


def test_a_seed_continues_to_the_end_of_a_beat_and_all_notes_in_it_are_its_own(hymn):
    _, tokenizer, ids = hymn
    model = Transformer(TransformerConfig(tokenizer.vocab.size, 8, 1, 2, 16, 0.0, cycle=32))  # eight sixteenths
    traced = tokenizer.trace(ids, 0.6)
    onset_s = traced.score.onset_s
    assert ((onset_s > 4.1) & (onset_s < 4.8 - 1e-6)).any()
    gain = raised_notes(model, tokenizer, ids, traced, 4.1, "cpu")
    assert np.isnan(gain).tolist() == (onset_s < 4.8 - 1e-6).tolist()


def test_a_piece_longer_than_the_models_positions_is_said_so(hymn):
    _, tokenizer, ids = hymn
    config = TransformerConfig(tokenizer.vocab.size, 8, 1, 2, 16, 0.0, position="learned", max_positions=64)
    with pytest.raises(ConfigError, match="its [0-9]+ tokens are more than its 64 positions"):
        raised_notes(Transformer(config), tokenizer, ids, tokenizer.trace(ids, 0.6), 4.8, "cpu")


def test_the_gates_of_an_lstm(world, tmp_path):
    torch.manual_seed(0)
    header = read_header(world.bundle)
    for cell in ("lstm", "rnn"):
        model = Recurrent(RecurrentConfig(vocab_size=header.model["vocab_size"], d_model=8, n_layers=2, cell=cell))
        with torch.no_grad():
            model.cells.get_parameter("bias_ih_l0")[8:16] = 4.0  # of an LSTM, how much its first layer remembers
        save_bundle(
            tmp_path / f"{cell}.safetensors",
            model,
            replace(header, model={"kind": "recurrent", **asdict(model.config)}),
        )
    args = ["musictx", "attend", "bundle=lstm.safetensors", f"midi={world.seed}", "out=look", "format=svg"]
    out = ok(args, tmp_path).stdout
    assert [p.name for p in (tmp_path / "look").iterdir()] == [f"{world.seed.stem}-gates.svg"]
    rows = [[float(x) for x in line.split()] for line in out.splitlines() if re.match(r" *[01] +\d\.", line)]
    assert [row[0] for row in rows] == [0, 1]
    assert all(0 < x < 1 for row in rows for x in row[1:])
    assert min(rows[0][3:5]) > 0.95 > 0.8 > max(rows[1][3:5])  # its forget gate
    text = (tmp_path / "look" / f"{world.seed.stem}-gates.svg").read_text()
    assert all(word in text for word in ("input gate", "forget gate", "output gate", "layer 0", "layer 1"))
    assert refused([*args, "layer=1", "overwrite=true"], tmp_path).startswith("error: layer=1: ")
    assert "gates.svg exists already" in refused(args, tmp_path)
    args[2] = "bundle=rnn.safetensors"
    line = refused([*args, "out=other"], tmp_path)
    assert line.startswith("error: bundle=rnn.safetensors: attend can draw neither attention nor gates of this kind")


def test_an_encoder_looks_both_ways(world, tmp_path):
    header = read_header(world.bundle)
    config = EncoderConfig(header.model["vocab_size"], 16, 2, 2, 32)
    save_bundle(tmp_path / "both", Encoder(config), replace(header, model={"kind": "encoder", **asdict(config)}))
    args = ["musictx", "attend", "bundle=both", f"midi={world.seed}", "out=look", "format=svg", "at=note30"]
    out = ok(args, tmp_path).stdout
    said = re.search(r"^note 30 of .*; (.*)% of .* notes before it, (.*)% on notes after; .* waits$", out, re.M)
    assert said is not None
    before, after = float(said[1]), float(said[2])
    assert min(before, after) > 10  # an untrained one looks everywhere
    assert before + after < 100
    stem = world.seed.stem
    assert sorted(p.name for p in (tmp_path / "look").iterdir()) == [f"{stem}-attention.svg", f"{stem}-heads.svg"]
    for word in ("seed_seconds=2", "motif_notes=5"):
        assert refused([*args, "overwrite=true", word], tmp_path).startswith(f"error: {word.split('=')[0]}=")
