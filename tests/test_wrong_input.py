"""A person's mistakes, through the real commands: one line, exit status 2, nothing half-written left."""

import json
import re
import resource
import subprocess
import sys
import tomllib
from dataclasses import asdict

import numpy as np
import pytest
from conftest import QUICK, ROOT, TINY, ok, refused, run
from hydra.core.override_parser.overrides_parser import OverridesParser
from safetensors import safe_open
from safetensors.torch import save_file

from musictx.commands.demo import check_store
from musictx.config.app import quote_path
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


def test_a_missing_seed(world, tmp_path):
    assert "nothing.mid: no such file: give an existing MIDI file" in generate(world, tmp_path, seed_midi="nothing.mid")


def test_a_text_file_named_mid(world, tmp_path):
    (tmp_path / "song.mid").write_text("la la la")
    line = generate(world, tmp_path, seed_midi="song.mid")
    assert "song.mid: not a MIDI file: it begins with b'la l', MIDI files begin with b'MThd'" in line


def test_an_empty_file(world, tmp_path):
    (tmp_path / "empty.mid").touch()
    assert "empty.mid: the file is empty" in generate(world, tmp_path, seed_midi="empty.mid")


def test_a_seed_without_notes(world, tmp_path):
    write_midi(Score.empty(), tmp_path / "silence.mid")
    assert "silence.mid: the seed has no notes" in generate(world, tmp_path, seed_midi="silence.mid")


def test_drums_alone(world, tmp_path):
    write_midi(Score([0.0], [1.0], [36], [80], 0.5, np.array(DRUMS)), tmp_path / "drums.mid")
    line = generate(world, tmp_path, seed_midi="drums.mid")
    assert "drums.mid: the seed has only drums: drums=true takes them" in line


def test_notes_out_of_the_models_range(world, tmp_path):
    write_midi(Score([0, 0], [1, 1], [10, 60], [80, 80]), tmp_path / "low.mid")
    line = generate(world, tmp_path, seed_midi="low.mid", bundle=world.hymn_bundle)
    assert "low.mid: notes of pitch 10 (1 of 2) lie outside the model's range 21 … 108: out_of_range=drop" in line


def test_two_amounts_where_one_is_meant(world, tmp_path):
    line = generate(world, tmp_path, "length_seconds=1", "length_bars=2")
    assert "length_seconds=1.0, length_bars=2.0: give one of them" in line
    line = generate(world, tmp_path, "seed_seconds=1", "seed_notes=2")
    assert "seed_seconds=1.0, seed_notes=2: give one of them" in line


def test_seeds_whose_continuations_would_collide(world, tmp_path):
    for name in ("a/x.mid", "b/x.mid"):
        write_midi(Score([0.0], [1.0], [60], [80]), tmp_path / name)
    assert "a/x.mid and b/x.mid would get the same names: rename one" in re.sub(
        r"\S*/(?=[ab]/)", "", generate(world, tmp_path, seed_midi=tmp_path)
    )
    assert "no .mid, .midi, .kar, .rmi file there" in generate(world, tmp_path, seed_midi="*.midi")


def test_a_model_that_gives_no_numbers(world, tmp_path):
    with safe_open(world.bundle, "pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors["blocks.0.up.weight"][0, 0] = float("nan")
    save_file(tensors, tmp_path / "nan.safetensors", metadata)
    line = generate(world, tmp_path, bundle="nan.safetensors")
    assert "logits are not finite numbers (NaN); blocks.0.up is the first layer to give them" in line


def test_ten_voices_for_the_chorale_model(world, tmp_path):
    write_midi(Score(np.zeros(10), np.ones(10), np.arange(50, 60), np.full(10, 80)), tmp_path / "ten.mid")
    line = generate(world, tmp_path, seed_midi="ten.mid", bundle=world.hymn_bundle)
    assert "ten.mid: 6 of its 10 notes are more than the model's 4 voices: out_of_range=drop keeps the outer" in line


def test_a_store_of_another_tokenizer(world, tmp_path):
    line = train(tmp_path, f"data.path={world.hymn_store}")
    assert "was made by tokenizer chorale" in line
    assert "choose tokenizer=chorale or prepare the data again" in line
    line = refused(["musictx", "evaluate", f"bundle={world.bundle}", f"data.path={world.hymn_store}"], tmp_path)
    assert "was made by tokenizer chorale" in line


def test_no_store(tmp_path):
    assert "nowhere is not a token store (no manifest.json): make one with musictx prepare" in train(
        tmp_path, "data.path=nowhere"
    )


def test_a_truncated_bundle(world, tmp_path):
    (tmp_path / "cut.safetensors").write_bytes(world.bundle.read_bytes()[:5000])
    assert "cut.safetensors is damaged or not a bundle" in generate(world, tmp_path, bundle="cut.safetensors")


def test_a_missing_bundle_and_none_at_all(world, tmp_path):
    assert "no.safetensors: no such bundle" in generate(world, tmp_path, bundle="no.safetensors")
    line = refused(["musictx", "evaluate", f"data.path={world.store}"], tmp_path)
    assert line == "error: bundle=… is required and was not given; see --help"


@pytest.mark.skipif("__import__('torch').cuda.is_available()", reason="this machine has a CUDA device")
def test_cuda_without_cuda(world, tmp_path):
    line = train(tmp_path, "trainer=gpu", f"data.path={world.store}")
    assert "trainer.accelerator=cuda, but this machine has no CUDA device: use trainer=cpu" in line
    assert "device=cuda, but this machine has no CUDA device" in generate(world, tmp_path, "device=cuda")


def test_a_folder_that_cannot_be_written(world, tmp_path):
    (tmp_path / "file").write_text("in the way")
    blocked = "out=file/below"  # what a read-only folder is to a person who is not root
    for args in (
        ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "length_seconds=1"],
        ["musictx", "train", f"data.path={world.store}", *TINY, *QUICK],
    ):
        assert "give a path that can be read and written" in refused([*args, blocked], tmp_path)
    line = refused(["data_prep/folder.py", f"path={world.midi}", blocked], tmp_path)
    assert "is not a folder that can be written to; give another out=" in line
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_exists_is_not_overwritten_unasked(world, tmp_path):
    args = ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "length_seconds=1", "out=o"]
    assert run(args, tmp_path).returncode == 0
    assert "tune 0-1.mid exists already: give another out= or overwrite=true" in refused(args, tmp_path)
    assert run([*args, "overwrite=true"], tmp_path).returncode == 0
    before = world.bundle.read_bytes()
    args = ["musictx", "train", f"data.path={world.store}", f"out={world.bundle.parent}", *TINY, *QUICK]
    assert "exists already: give another out= or overwrite=true" in refused(args, tmp_path)
    assert world.bundle.read_bytes() == before


def test_overwrite_never_deletes_a_folder_of_other_things(world, tmp_path):
    (tmp_path / "thesis.txt").write_text("words")
    (tmp_path / "config.yaml").write_text("mine: 1")
    args = ["musictx", "train", f"data.path={world.store}", f"out={tmp_path}", "overwrite=true", *TINY, *QUICK]
    assert "is not the folder of a run (it has thesis.txt): give another out=" in refused(args, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "words"


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        ("length_seconds=0", "length_seconds=0.0: give more than 0"),
        ("length_seconds=nan", "length_seconds=nan: give more than 0"),
        ("variations=0", "variations=0: give more than 0"),
        ("variations=100000000000", "variations=100000000000: give more than 0 and at most 1000"),
        ("max_tokens=2000000", "max_tokens=2000000: give more than 0 and at most 1000000"),
        ("length_bars=-1", "length_bars=-1.0: give more than 0"),
        ("length_notes=0", "length_notes=0: give more than 0"),
        ("seed_bars=0", "seed_bars=0: give more than 0"),
        ("seed_from=middle", "seed_from=middle: choose one of start, end"),
        ("window=1", "window=1: give 8 tokens or more"),
        ("out_of_range=clamp", "out_of_range=clamp: choose one of refuse, drop"),
        ("rules.lowest=200", "rules.lowest=200, rules.highest=127: give pitches 0 to 127"),
        ("sampler=beam", "sampler.beams=4: beams are compared at one length; give length_tokens="),
        ("random_seed=-1", "random_seed=-1: give 0 to 9223372036854775807"),
        ("seed_seconds=nan", "seed_seconds=nan: give more than 0"),
        ("seed_seconds=-1", "seed_seconds=-1.0: give more than 0"),
        ("sampler.temperature=-1", r"sampler.temperature=-1.0: give 0 \(greedy\) or 0.001 to 1000"),
        ("sampler.top_k=many", "sampler.top_k: .*Integer"),
        ("attention.impl=flash", "attention.impl=flash: choose one of auto, reference, skew"),
        ("device=tpu", "device=tpu: choose cpu or cuda"),
    ],
)
def test_impossible_generate_settings(world, tmp_path, arg, text):
    assert re.search(text, generate(world, tmp_path, arg))


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        ("trainer.lr=nan", "trainer.lr=nan: give a number above 0"),
        ("trainer.precision=fp8", "trainer.precision=fp8: choose one of 32-true, bf16-mixed, bf16-true, 16-mixed"),
        ("model.n_heads=3", "model.d_model=16 cannot be shared by model.n_heads=3"),
        ("data.windows_per_epoch=3", "data.windows_per_epoch=3 is less than one batch: give trainer.batch_size=4 or"),
        ("logger.name=paper", "logger.name=paper: choose csv or wandb"),
        ("data.stretch=[]", r"data.stretch=\[\]: give factors from 0.75 to 1.33, \[1.0\] for none"),
        ("data.stretch=[1.0,3.0]", r"data.stretch=\[1.0, 3.0\]: give factors from 0.75 to 1.33"),
        ("+model.wings=2", "model.wings is not a setting: model has kind, d_model"),
        ("logger=wandb", "logger=wandb has no API key: run `wandb login`, or set logger.mode=offline"),
    ],
)
def test_impossible_train_settings(world, tmp_path, arg, text, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))  # no wandb key of whoever runs the tests
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert re.search(text, train(tmp_path, f"data.path={world.store}", arg))


def test_a_malformed_key_and_a_wrong_mode_of_wandb(world, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("WANDB_API_KEY", "short")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    line = train(tmp_path, f"data.path={world.store}", "logger=wandb")
    assert re.search(r"logger=wandb cannot be used \(.*API key.*\): .* or set logger.mode=offline", line)
    monkeypatch.setenv("WANDB_MODE", "dryrun")
    line = train(tmp_path, f"data.path={world.store}", "logger=wandb")
    assert "the environment variable WANDB_MODE=dryrun: choose one of online, offline, disabled" in line


def test_scoring_an_empty_split_or_segments_of_nothing(world, tmp_path):
    ok(["data_prep/folder.py", f"path={world.midi}", "out=store", "test_fraction=0", "workers=1"], tmp_path)
    args = ["musictx", "evaluate", f"bundle={world.bundle}", "data.path=store"]
    line = refused([*args, "split=test"], tmp_path)
    assert "store: its test split is empty; choose split= one of train, validation" in line
    for setting in ("data.segment=0", "data.score_batch_tokens=0"):
        assert f"{setting}: give 1 or more" in refused([*args, setting], tmp_path)


def test_the_demo_on_another_store(world, tmp_path):
    done = run(["musictx", "demo", f"store={world.hymn_store}", "out=out"], tmp_path)
    assert done.returncode == 2
    assert "holds no chorales of music21 in a test split: give another store=" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_demo_looks_at_its_store_before_it_trains(world, tmp_path, monkeypatch):
    manifest = json.loads((world.hymn_store / "manifest.json").read_text())

    def check(**splits):
        text = json.dumps(manifest | {"corpus": asdict(CORPUS), "splits": splits})
        (tmp_path / "manifest.json").write_text(text)
        check_store(Store(tmp_path, "chorale"))

    full, empty = manifest["splits"]["test"], {"tokens": 0, "seconds": 0.0, "pieces": []}
    check(test=full)
    for splits in ({"train": full}, {"train": full, "test": empty}):
        with pytest.raises(StoreError, match="holds no chorales of music21 in a test split: give another store="):
            check(**splits)
    monkeypatch.setitem(sys.modules, "music21", None)  # as if not installed
    monkeypatch.setitem(sys.modules, "music21.corpus.chorales", None)
    with pytest.raises(UserError, match="which is not installed: pip install music21"):
        check(test=full)


def test_the_demo_without_music21(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['music21'] = None")  # as if not installed
    line = refused(["musictx", "demo", "out=out", "store=store"], tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert "which is not installed: pip install music21" in line


def test_a_full_disk(world, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "data_prep" / "folder.py", f"path={world.midi}", "out=store", "workers=1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),  # bytes a file may have
    )
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("reading")]  # the progress bar
    assert len(lines) == 1, done.stderr
    assert re.search(r"the disk is full \(.+\): free some space, then give the same command again", lines[0])
    assert not (tmp_path / "store").exists()
    again = ok(["data_prep/folder.py", f"path={world.midi}", "out=store", "workers=1"], tmp_path)
    assert "8 kept" in again.stdout


@pytest.mark.parametrize("name", ["Chopin, Op. 10 (1).mid", "it's a=b.mid", "Étude [x] {y} #1 & 2%.mid", "1e3.mid"])
def test_file_names_that_are_no_hydra_grammar(world, tmp_path, name):
    (tmp_path / name).write_bytes(world.seed.read_bytes())
    out = name.removesuffix(".mid")
    args = [
        f"bundle={world.bundle}",
        f"seed_midi={name}",
        f"out={out}",
        "length_seconds=1",
        "random_seed=9223372036854775807",
    ]
    ok(["musictx", "generate", *args], tmp_path)
    assert (tmp_path / out / f"{out}-1.mid").is_file()


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("out=a b", "out=a b"),
        ("path=null", "path=null"),
        ("out='a,b'", "out='a,b'"),
        ("out=${name}/x", "out=${name}/x"),
        ("out=a,b", "out='a,b'"),
        ("init_from=a,b/c", "init_from='a,b/c'"),
        ("resume=a,b", "resume='a,b'"),
        ("out=1e3", "out='1e3'"),
        ("data.path=a(1)", "data.path='a(1)'"),
        ("+out=a(1)", "+out='a(1)'"),
        ("out=a'b", r"out='a\'b'"),
        ("out=a,\\", r"out='a,\\'"),
        ("model.d_model=1,2", "model.d_model=1,2"),
        ("about=(1)", "about=(1)"),
        ("data.grow_from=128,256", "data.grow_from=128,256"),
        ("--help", "--help"),
    ],
)
def test_only_paths_are_quoted_and_only_where_they_must_be(word, quoted):
    assert quote_path(word) == quoted
    if word != quoted:
        read = OverridesParser.create().parse_override(quoted).value()
        assert read == word.partition("=")[2]


def test_preparing_nothing(tmp_path):
    (tmp_path / "midi").mkdir()
    args = ["data_prep/folder.py", "path=midi", "out=store"]
    assert "no .mid, .midi, .kar, .rmi file in midi or below it" in refused(args, tmp_path)
    assert "path=none does not exist: give a folder or zip" in refused(
        ["data_prep/folder.py", "path=none", "out=store"], tmp_path
    )
    assert "path=… is required" in refused(["data_prep/folder.py", "out=store"], tmp_path)
    (tmp_path / "midi" / "a.mid").write_text("no music")
    done = run(args, tmp_path)
    assert done.returncode == 2
    assert "error: none of the 1 files could be used; a.mid: not a MIDI file" in done.stderr
    assert not (tmp_path / "store").exists()


def test_maestro_that_is_not_maestro(tmp_path):
    (tmp_path / "x.zip").write_text("no zip")
    args = ["data_prep/maestro.py", "out=store"]
    assert "path=x.zip is neither a folder nor a zip archive" in refused([*args, "path=x.zip"], tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "other.csv").write_text("a,b")
    assert "no maestro-v*.csv in d" in refused([*args, "path=d"], tmp_path)
    (tmp_path / "d" / "maestro-v3.0.0.csv").write_text("split,midi_filename\ntrain,2004/a.midi\n")
    assert "names 1 files that are missing: 2004/a.midi; get the archive again" in refused([*args, "path=d"], tmp_path)


def test_an_unknown_command(tmp_path):
    line = refused(["musictx", "bench"], tmp_path)
    assert line.startswith("error: musictx bench needs one more word: bench tokens, bench prepare, bench attention")
    line = refused(["musictx", "compose"], tmp_path)
    assert "'compose' is not a command: choose one of prepare, train, " in line
    assert "generate, accompany, jam, evaluate, compare, inspect," in line


def test_the_version_is_that_of_the_package(tmp_path):
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert ok(["musictx", "--version"], tmp_path).stdout == f"musictx {tomllib.load(file)['project']['version']}\n"


def test_help_is_one_screenful_with_examples(tmp_path):
    texts = {run(["musictx", *args], tmp_path).stdout for args in ([], ["--help"], ["-h"])}
    assert len(texts) == 1
    text = texts.pop()
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 120
    assert "musictx train experiment=chorales trainer.max_epochs=5 model.d_model=128" in text
    done = run(["musictx", "train", "--help"], tmp_path)
    assert done.returncode == 0
    assert "max_distance" in done.stdout
