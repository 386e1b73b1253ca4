"""A hostile hour in half a minute: hundreds of commands in one process, each answered in a line or done."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace

import mido
import pytest
import torch
from conftest import ok, refused, run
from safetensors.torch import save_file

from musictx.cli import main
from musictx.commands.accompany import accompany
from musictx.commands.generate import generate
from musictx.commands.inspect import inspect
from musictx.commands.render import render
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.model.bundle import load_bundle
from musictx.model.packaged import seed_path


def strange_music(folder, rng):
    """MIDI files of strangers: cut, flipped, of other kinds, under names that steer a terminal."""
    whole = seed_path("elise").read_bytes()
    files = {"cut": whole[:200], "head": whole[:20], "empty": b"", "text": b"Dear diary", "riff": b"RIFF" + whole}
    files |= {f"cut{k}": whole[: rng.randrange(14, len(whole))] for k in range(12)}
    for k in range(12):
        flipped = bytearray(whole)
        for _ in range(4):
            flipped[rng.randrange(len(flipped))] = rng.randrange(256)
        files[f"flip{k}"] = bytes(flipped)
    files |= {"zeros": bytes(5000), "long": whole[:18] + b"\xff" * 4 + whole[22:], "\x1b[31mred\a": whole[:100]}
    for name, data in files.items():
        (folder / f"{name}.mid").write_bytes(data)
    (folder / "folder.mid").mkdir()
    (folder / "gone.mid").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.mid")
    return [folder / f"{name}.mid" for name in (*files, "folder", "gone", "pipe", "none")] + ["/dev/zero", "/", "."]


def strange_bundles(folder, bundle):
    """Bundles of strangers: headers of other types, claims of any size, damaged."""
    tensors = load_bundle(bundle).model.state_dict()
    header = load_bundle(bundle).header
    raw = json.loads(header.to_json())
    claims = [{"n_layers": 10**5}, {"d_model": 4 * 10**6}, {"d_ff": 10**12}, {"n_heads": 0}, {"position": 3}, {"x": 1}]
    heads = [raw | {"model": raw["model"] | claim} for claim in claims]
    odd_values: list[object] = [[], "\x1b[2J"]  # tests/model/test_bundle.py has more
    heads += [raw | {name: value} for name in raw for value in odd_values]
    heads += [[], 3, "x", None, {}, {"format": 99}]
    texts = [json.dumps(head) for head in heads] + ["[" * 10**5, '{"a":' * 10**5, "", "\x00"]
    paths = []
    for k, text in enumerate(texts):
        paths.append(folder / f"{k}.safetensors")
        save_file(tensors, paths[-1], {"musictx": text})
    whole = bundle.read_bytes()
    for k, data in enumerate((whole[:100], whole[:-9], b"", b"\xff" * 64, b"PK\x03\x04", whole[:8] + b"[" + whole[9:])):
        paths.append(folder / f"damaged{k}.safetensors")
        paths[-1].write_bytes(data)
    for k, content in enumerate(
        ([1], {"state_dict": [1]}, {"musictx": header.to_json(), "state_dict": {1: torch.ones(1)}})
    ):
        paths.append(folder / f"odd{k}.ckpt")
        torch.save(content, paths[-1])
    return [*paths, folder / "none.safetensors", "/dev/null", "/", "pianO"]


WRONG = """
from_s=-1 from_s=nan from_s=x seed_seconds=0 seed_seconds=nan seed_bars=0 seed_from=left
length_seconds=0 length_seconds=nan length_bars=-1 length_tokens=x length_tokens=0
variations=0 variations=100000000000 window=1
random_seed=-1 device=tpu weights=int3 graph=true sampler=none sampler.temperature=nan
sampler.temperature=-1 sampler.top_p=2 sampler.top_k=-1 sampler.top_k=many sampler.min_p=x sampler.seed_guidance=-1
rules.max_still_s=0 rules.max_note_s=x rules.max_silence_s=nan rules.lowest=200 rules.highest=300 rules.scale=H
rules.max_polyphony=0 out= nothing=1 attention.impl=x include_seed=x
"""
ODD = """
from_s=1e999 from_s= to_s=3 from_bar=0 seed_bars=1.5 variations=1e9 rows_at_once=0 rules.lowest=-1
rules.voice_order=true infill= between=a,b infill=a.mid [] {} a=b=c = =3 ${oc.env:HOME}
"""
OTHERS = [
    *("", "nothing", "help me", "bench", "bench nothing", "prepare nothing", "prepare folder path=", "runs folder="),
    *("prepare folder path=/dev/zero out=o", "prepare folder path=. out=o workers=10000", "inspect store=/"),
    *("prepare folder path=. out=o filters.min_seconds=nan", "prepare folder path=. out=o filters.min_notes=-1"),
    *("prepare folder path=none out=o", "inspect", "inspect midi=a.mid store=b", "inspect store="),
    *(
        "evaluate bundle=none data.path=none",
        "compare runs=[] store=none out=o",
        "runs folder=none",
        "runs folder=/dev",
    ),
    *("train data.path=none out=o", "train data.path=/ out=o", "train resume=none", "train resume=/", "train out="),
    *("train data.path=STORE out=o model.d_model=1000000", "train data.path=STORE out=o model.n_layers=1e9"),
    *("train data.path=STORE out=o model.dropout=nan", "train data.path=STORE out=o model.keyboard=x"),
    *("train data.path=STORE out=o trainer.lr=nan", "train data.path=STORE out=o init_from=none"),
    *("render midi=none.mid out=a.png", "render midi=elise out=a.x", "attend midi=none.mid", "listen runs=[] out=o"),
    *("jam input=none.mid", "serve port=0", "serve host=example.org", "serve bundle=none", "check device=tpu"),
]


@pytest.fixture
def knock(capfd):
    """Runs a command in this process; returns what was wrong with how it was answered, or nothing. A refusal of a
    setting begins with its key."""

    def run(command, key=""):
        status: object = 0
        try:
            command()
        except SystemExit as error:
            status = error.code
        except BaseException as error:  # a traceback, for a person
            capfd.readouterr()
            return f"{type(error).__name__}: {error}"[:200]
        out, err = capfd.readouterr()
        lines = [line for line in err.splitlines() if line.startswith("error:")]
        if "Traceback" in out + err or any(ord(c) < 32 and c not in "\n\t\r" for c in out):
            return "a traceback, or control characters"
        if status not in (0, None) and (status != 2 or len(lines) != 1):
            return f"status {status}: {err[-200:]}"
        if key and not (lines and lines[0].startswith(f"error: {key}=")):
            return f"not about {key}: {lines}"
        return None

    return run


def typed_words(monkeypatch, words):
    """A command as it is typed."""

    def run():
        monkeypatch.setattr(sys, "argv", ["musictx", *words])
        main()

    return run


def composed(task, command, words):
    """A command whose words are composed once, for much less time than a typed one takes."""
    return in_one_line(command)(lambda: task(settings(command, *words)))


def given(task, command, config, **values):
    """A command with other values, which come from a stranger."""
    return in_one_line(command)(lambda: task(replace(config, **values)))


def test_every_door_is_answered_in_a_line(world, tmp_path, monkeypatch, knock, capfd):
    for name in ("music", "bundles"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    seeded = [f"bundle={world.bundle}", f"seed_midi={world.seed}", "out=made", "overwrite=true"]
    quick = [*seeded, "length_tokens=4"]
    doors = {f"{words}": typed_words(monkeypatch, words.replace("STORE", str(world.store)).split()) for words in OTHERS}
    doors |= {f"generate {word}": composed(generate, "generate", [*quick, word]) for word in ODD.split()}
    doors |= {f"generate {word}": composed(generate, "generate", [*seeded, word]) for word in WRONG.split()}
    asked = settings("generate", *quick, "seed_midi=null")
    look, draw = settings("inspect", "midi=x"), settings("render", "midi=x", "out=a.png")
    voices = settings("accompany", "melody=x", "out=a", "bundle=none")
    for path in map(str, strange_music(tmp_path / "music", random.Random(0))):
        doors[f"inspect {path}"] = given(inspect, "inspect", look, midi=path)
        doors[f"generate {path}"] = given(generate, "generate", asked, seed_midi=path)
        doors[f"fill {path}"] = given(generate, "generate", asked, seed_midi="", infill=path, from_s=1.0, to_s=2.0)
        doors[f"render {path}"] = given(render, "render", draw, midi=path, out="a.x")
        doors[f"accompany {path}"] = given(accompany, "accompany", voices, melody=path)
    for path in map(str, strange_bundles(tmp_path / "bundles", world.bundle)):
        doors[f"inspect {path}"] = given(inspect, "inspect", look, midi=None, bundle=path)
        doors[f"generate {path}"] = given(generate, "generate", asked, bundle=path)
    keys = {f"generate {word}": word.partition("=")[0] for word in WRONG.split()}
    badly = {name: wrong for name, command in doors.items() if (wrong := knock(command, keys.get(name, "")))}
    with capfd.disabled():
        print(f"doors tried: {len(doors)}, handled badly: {len(badly)}", end=" ")
    assert not badly, badly


@pytest.mark.parametrize("word", ["--version", "generate"])
def test_ctrl_c_while_something_is_imported_is_a_word(word):
    script = "import os, signal, sys; from musictx import cli\n"
    script += "cli.import_module = lambda name: os.kill(os.getpid(), signal.SIGINT)\n"
    script += f"sys.argv = ['musictx', '{word}']; cli.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_jobs_of_a_sweep_write_to_places_of_their_own(world, tmp_path):
    args = [world.seed, f"bundle={world.bundle}", "-m", "length_tokens=4", "out=o", "random_seed=1,2"]
    ok(["musictx", "generate", *args], tmp_path)
    assert [sorted(p.name for p in (tmp_path / f"o-{k}").iterdir()) for k in (0, 1)] == [["tune 0-1.mid"]] * 2


def test_a_refused_preparation_leaves_no_folder(world, tmp_path):
    args = [f"path={world.midi}", "out=deep/er/store", "filters.min_notes=9999", "workers=1"]
    done = run(["musictx", "prepare", "folder", *args], tmp_path)
    assert done.returncode == 2
    assert "too few notes" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_notes_without_length_are_no_melody(tmp_path):
    midi = mido.MidiFile()
    track = midi.add_track()
    for pitch in range(60, 64):
        track += [mido.Message("note_on", note=pitch, time=480), mido.Message("note_off", note=pitch, time=0)]
    midi.save(tmp_path / "a.mid")
    words = ["musictx", "accompany", "melody=a.mid", "bundle=harmoniser", "out=o"]
    assert "a.mid: none of its 4 notes" in refused(words, tmp_path)
