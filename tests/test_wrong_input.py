"""A person's mistakes, through the real commands: one line, exit status 2, nothing half-written left."""

import json
import re
import sys
from dataclasses import asdict

import numpy as np
import pytest
from conftest import QUICK, TINY, ok, refused, run
from hydra.core.override_parser.overrides_parser import OverridesParser

from musictx import cli
from musictx.commands.demo import check_store
from musictx.config.app import as_text, settings
from musictx.config.command import find
from musictx.data.corpora.chorales import CORPUS
from musictx.data.store import Store
from musictx.errors import StoreError, UserError
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi


def generate(world, cwd, *args, **changes):
    settings = {"bundle": world.bundle, "seed_midi": world.seed, "out": "out"} | changes
    line = refused(["musictx", "generate", *(f"{k}={v}" for k, v in settings.items()), *args], cwd)
    assert not (cwd / "out").exists()
    return line


def train(cwd, *args):
    line = refused(["musictx", "train", "out=out", *TINY, *QUICK, *args], cwd)
    assert not (cwd / "out").exists()
    return line


def test_seeds_without_music(world, tmp_path):
    (tmp_path / "song.mid").write_text("la la la")
    (tmp_path / "empty.mid").touch()
    write_midi(Score([0.0], [1.0], [36], [80], 0.5, np.array(DRUMS)), tmp_path / "drums.mid")
    for said in ("none.mid: ", "song.mid: not a MIDI file", "empty.mid: ", "drums.mid: .*drums=true"):
        assert re.search(said, generate(world, tmp_path, seed_midi=said.partition(":")[0]))


def test_a_store_of_another_tokenizer(world, tmp_path):
    evaluate = ["musictx", "evaluate", f"bundle={world.bundle}", f"data.path={world.hymn_store}"]
    told = train(tmp_path, f"data.path={world.hymn_store}", "tokenizer=performance")
    for line in (told, refused(evaluate, tmp_path)):
        assert re.search("hymn_store .*chorale", line)


@pytest.mark.skipif("__import__('torch').cuda.is_available()", reason="this machine has a CUDA device")
def test_cuda_without_cuda(world, tmp_path):
    line = train(tmp_path, "trainer=gpu", f"data.path={world.store}")
    assert line.startswith("error: trainer.accelerator=cuda: ")
    assert generate(world, tmp_path, "device=cuda").startswith("error: device=cuda: ")


def test_a_folder_that_cannot_be_written(world, tmp_path):
    (tmp_path / "file").write_text("in the way")
    blocked = "out=file/below"  # what a read-only folder is to a person who is not root
    args = ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "length_seconds=1"]
    assert "out=file: a file is in its way" in refused([*args, blocked], tmp_path)
    assert "file/below: " in refused(["musictx", "train", f"data.path={world.store}", *TINY, *QUICK, blocked], tmp_path)
    assert "out=" in refused(["data_prep/folder.py", f"path={world.midi}", blocked], tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_exists_is_not_overwritten_unasked(world, tmp_path):
    before = world.bundle.read_bytes()
    args = ["musictx", "train", f"data.path={world.store}", f"out={world.bundle.parent}", *TINY, *QUICK]
    assert "overwrite=true" in refused(args, tmp_path)
    assert world.bundle.read_bytes() == before


def test_overwrite_never_deletes_a_folder_of_other_things(world, tmp_path):
    (tmp_path / "thesis.txt").write_text("words")
    (tmp_path / "config.yaml").write_text("mine: 1")
    args = ["musictx", "train", f"data.path={world.store}", f"out={tmp_path}", "overwrite=true", *TINY, *QUICK]
    assert "thesis.txt" in refused(args, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "words"


def test_wandb_without_a_key(world, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    line = train(tmp_path, f"data.path={world.store}", "logger=wandb")
    assert re.search(r"^error: logger=wandb: .*logger.mode=offline", line)


def test_scoring_an_empty_split(world, tmp_path):
    ok(["musictx", "prepare", "folder", f"path={world.midi}", "out=store", "test_fraction=0", "workers=1"], tmp_path)
    args = ["musictx", "evaluate", f"bundle={world.bundle}", "data.path=store", "split=test"]
    assert re.search("^error: split=test: .*train, validation", refused(args, tmp_path))


def test_the_demo_looks_at_its_store_before_it_trains(world, tmp_path, monkeypatch):
    manifest = json.loads((world.hymn_store / "manifest.json").read_text())

    def check(**splits):
        text = json.dumps(manifest | {"corpus": asdict(CORPUS), "splits": splits})
        (tmp_path / "manifest.json").write_text(text)
        check_store(Store(tmp_path, "chorale"))

    full = manifest["splits"]["test"]
    check(test=full)
    with pytest.raises(StoreError, match="chorales of music21"):
        check(train=full, test={"tokens": 0, "seconds": 0.0, "pieces": []})
    monkeypatch.setitem(sys.modules, "music21.corpus.chorales", None)  # as if not installed
    with pytest.raises(UserError, match="music21"):
        check(test=full)


def test_a_full_disk(world, tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"  # bytes a file may have
    (tmp_path / "small.py").write_text(f"{limit}\nfrom musictx.cli import main\nmain()\n")
    args = ["prepare", "folder", f"path={world.midi}", "out=store", "workers=1"]
    done = run([tmp_path / "small.py", *args], tmp_path)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert "disk is full" in lines[0]
    assert not (tmp_path / "store").exists()


def test_a_file_name_that_is_no_hydra_grammar(world, tmp_path):
    name = "it's a=b, Étude (1) [x] {y} #1 & 2%.mid"
    (tmp_path / name).write_bytes(world.seed.read_bytes())
    out = name.removesuffix(".mid")
    args = [f"bundle={world.bundle}", f"seed_midi={name}", f"out={out}", "length_seconds=1"]
    ok(["musictx", "generate", *args, "random_seed=9223372036854775807"], tmp_path)
    assert (tmp_path / out / f"{out}-1.mid").is_file()


@pytest.mark.parametrize("name", ["${x}.mid", "b.mid ", " c.mid", "${oc.env:HOME} d", "夜想曲.mid", "\\${x}.mid"])
def test_the_name_of_a_file_is_a_name(world, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(world.seed.read_bytes())
    for midi in (name, tmp_path / name):
        assert settings("inspect", midi=midi).midi == str(midi)
    assert settings("inspect", f"midi={name}").midi == name
    for word in (name, f"midi={name}"):
        monkeypatch.setattr(sys, "argv", ["musictx", "inspect", word])
        cli.main()
        assert capsys.readouterr().out.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("out=a b", "out=a b"),
        ("data.path=null", "data.path=null"),
        ("path=a(1)", "path='a(1)'"),
        ("name=F# minor", "name='F# minor'"),
        ("out='a,b'", "out='a,b'"),
        ("out=${name}/x", "out=${name}/x"),
        ("out=a,b", "out='a,b'"),
        ("out=1e3", "out='1e3'"),
        ("data.path=a(1)", "data.path='a(1)'"),
        ("+out=a(1)", "+out='a(1)'"),
        ("out=a'b", r"out='a\'b'"),
        ("out=a,\\", r"out='a,\\'"),
        ("model.d_model=1,2", "model.d_model=1,2"),
    ],
)
def test_only_text_is_quoted_and_only_where_it_must_be(word, quoted):
    assert as_text(find("train"), word) == quoted
    if word != quoted:
        read = OverridesParser.create().parse_override(quoted).value()
        assert read == word.partition("=")[2]


def test_preparing_nothing(tmp_path):
    (tmp_path / "midi").mkdir()
    args = ["data_prep/folder.py", "path=midi", "out=store"]
    assert ".mid, .midi, .kar, .rmi, .mid.gz" in refused(args, tmp_path)
    (tmp_path / "midi" / "a.mid").write_text("no music")
    done = run(args, tmp_path)
    assert done.returncode == 2
    assert "a.mid: not a MIDI file" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["midi"]


def test_an_unknown_command_and_help_is_one_screenful_with_examples(tmp_path):
    line = refused(["musictx", "compose"], tmp_path)
    assert re.search("compose.* prepare, train, .*generate, accompany, jam, evaluate, compare, inspect,", line)
    texts = {ok(["musictx", *args], tmp_path).stdout for args in ([], ["--help"])}
    assert len(texts) == 1
    text = texts.pop()
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 120
    assert "musictx train experiment=chorales trainer.max_epochs=5 model.d_model=128" in text
