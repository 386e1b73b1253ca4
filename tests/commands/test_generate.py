"""Continuing from the command line: what is written. tests/generate/test_model.py has the same from Python."""

import re

import numpy as np
import pytest
from conftest import ok, refused, run

from musictx.commands.generate import generate
from musictx.commands.generate_settings import GenerateConfig
from musictx.config.app import settings
from musictx.config.command import find
from musictx.config.train import AttentionConfig
from musictx.errors import ConfigError
from musictx.generate.load import load
from musictx.generate.open_bundle import fast_model, open_bundle
from musictx.model.bundle import add_notes
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.static_steps import StaticSteps
from musictx.music.read import read_bytes, read_midi, read_tracks
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi

AUTO = AttentionConfig("auto")


def command(world, cwd, *args, bundle=None):
    return ok(["musictx", "generate", f"bundle={bundle or world.bundle}", *args], cwd)


@pytest.fixture
def opened(world):
    return open_bundle(world.bundle, "cpu", "auto")


def test_a_bundle_says_its_filters_and_a_person_has_the_last_word(world, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(world.bundle.read_bytes())
    add_notes(own, sampler={"top_p": None, "min_p": 0.9})

    def drawn(bundle, *words):
        args = [f"seed_midi={world.seed}", "seed_seconds=2", "length_tokens=64", "out=o", "overwrite=true", *words]
        printed = command(world, tmp_path, *args, bundle=bundle).stdout
        return (tmp_path / "o" / "tune 0-1.mid").read_bytes(), "as its bundle says" in printed, printed

    suited, said, printed = drawn(own)
    assert said
    assert "\nsampler.top_p=null sampler.min_p=0.9, as its bundle says\n" in printed
    usual, said, _ = drawn(world.bundle)  # an older bundle plays as before
    assert not said
    assert suited != usual
    assert drawn(world.bundle, "sampler.top_p=null", "sampler.min_p=0.9")[:2] == (suited, False)
    (python,) = load(own).continue_midi(world.seed, seed_seconds=2, tokens=64)
    python.write(tmp_path / "python.mid")
    assert (tmp_path / "python.mid").read_bytes() == suited
    assert drawn(own, "sampler.top_p=0.98")[:2] == drawn(world.bundle, "sampler.top_p=0.98")[:2] == (usual, False)


def test_tempo_time_signature_and_program_are_kept_and_bars_count_by_them(world, tmp_path):
    onset = np.arange(12) * 0.4
    waltz = Score(onset, onset + 0.4, np.arange(60, 72), np.full(12, 80), 0.4, np.array(68))
    write_midi(waltz, tmp_path / "waltz.mid", (3, 4))
    args = ["seed_midi=waltz.mid", "out=o", "seed_bars=2", "length_bars=4", "rules.max_silence_s=0.3"]
    printed = command(world, tmp_path, *args).stdout
    assert "new music from 2.40 s on" in printed
    tracks = read_tracks(read_bytes(tmp_path / "o" / "waltz-1.mid"), "it")
    music = tracks.merge()
    assert tracks.meter().signature == (3, 4)
    assert music.quarter_s == pytest.approx(0.4)
    assert set(music.program.tolist()) == {68}
    assert music.clip(0, 2.39).pitch.tolist() == list(range(60, 66))
    assert 5 * 1.2 < music.duration_s <= 6 * 1.2 + 1e-3


def test_a_finished_piece_is_continued_before_its_ending_unless_a_place_is_given(world, tmp_path):
    chords = np.append(np.arange(24) * 0.25, [6.0, 6.0])
    ends = np.append(np.arange(24) * 0.25 + 0.25, [10.0, 10.0])
    write_midi(Score(chords, ends, [*range(60, 84), 48, 50], np.full(26, 80), 0.5), tmp_path / "whole.mid")
    args = ["seed_midi=whole.mid", "length_seconds=6", "sampler.guard=false"]
    printed = command(world, tmp_path, "out=o", *args).stdout
    assert "whole.mid: a finished piece" in printed
    assert "from_s=10.00" in printed
    assert "new music from 6.00 s on" in printed
    music = read_midi(tmp_path / "o" / "whole-1.mid")
    assert {48, 50}.isdisjoint(music.pitch[music.onset_s < 5.99])
    waits_s = np.diff(np.append(np.unique(music.onset_s), 12.0))
    assert waits_s.max() <= 1.011, "the seed waits a quarter of a second, so its model waits one at most"
    printed = command(world, tmp_path, "out=p", *args, "from_s=2.5", "seed_seconds=1").stdout
    assert "new music from 2.50 s on" in printed
    assert "finished" not in printed


TOGETHER = [
    ["seed_midi=elise", "to_s=3"],
    ["seed_midi=null", "from_s=2"],
    ["seed_midi=elise", "length_seconds=3601", "wav=true"],
]


@pytest.mark.parametrize("words", TOGETHER)
def test_what_does_not_go_together_is_refused(world, tmp_path, words):
    said = refused(["musictx", "generate", f"bundle={world.bundle}", *words, "out=q"], tmp_path)
    assert said.startswith(f"error: {words[1]}.0: ")


def test_a_bad_file_in_a_folder_is_named_at_the_end_and_the_others_are_continued(world, tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("a", "c"):
        (tmp_path / f"mine/{name}.mid").write_bytes(world.seed.read_bytes())
    (tmp_path / "mine/b.mid").write_bytes(b"MThd\0\0\0\6")
    write_midi(Score([0.0], [1.0], [40], [80], 0.5, np.array(DRUMS)), tmp_path / "mine/d.mid")
    args = ["seed_midi=mine", f"bundle={world.bundle}", "out=o", "length_seconds=1"]
    done = run(["musictx", "generate", *args], tmp_path)
    assert done.returncode == 2
    assert done.stdout.count("new music from") == 2
    assert re.fullmatch(r"error: 2 of 4 seeds left out: mine/b\.mid: .*; mine/d\.mid: .*\n", done.stderr)
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["a-1.mid", "c-1.mid"]
    for name in ("a", "c"):
        (tmp_path / f"mine/{name}.mid").unlink()
    assert "2 of 2 seeds left out: mine/b.mid: " in refused(["musictx", "generate", *args, "out=p"], tmp_path)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("seeds", "out"),
    [
        ("mine", "mine"),
        ("mine", "mine/new"),
        ("mine", "to/deep"),
        (".", "o"),
        ("mine/*.mid", "mine"),
        ("**/*.mid", "o"),
    ],
)
def test_new_music_is_never_a_seed_of_the_next_run(world, tmp_path, monkeypatch, seeds, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "to").symlink_to("mine")
    (tmp_path / "mine/a.mid").write_bytes(world.seed.read_bytes())
    with pytest.raises(ConfigError, match=f"^out={out}: it is within seed_midi="):
        find("generate").run(settings("generate", f"bundle={world.bundle}", f"seed_midi={seeds}", f"out={out}"))
    assert [path.name for path in tmp_path.rglob("*.mid")] == ["a.mid"]


def test_new_music_may_lie_beside_one_seed_and_outside_of_many(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a.mid").write_bytes(world.seed.read_bytes())
    for seeds, out in (("mine/a.mid", "mine"), ("mine", "mined"), ("mine/*.mid", "mine/new"), ("elise", ".")):
        words = [f"bundle={world.bundle}", f"seed_midi={seeds}", f"out={out}", "length_tokens=8"]
        find("generate").run(settings("generate", *words))


def test_continuations_of_equal_notes_are_told(world, tmp_path):
    words = [f"seed_midi={world.seed}", "seed_seconds=2", "length_tokens=64", "variations=3", "overwrite=true"]
    same, other = (
        re.findall(r"(?m)^.*\.mid: .* new;.*$", command(world, tmp_path, *words, how).stdout)
        for how in ("sampler.top_k=1", "sampler.temperature=1.0")
    )
    assert ["the same as in tune 0-1.mid" in line for line in same] == [False, True, True]
    assert not any("the same as" in line for line in other)


def test_ctrl_c_writes_what_exists_and_says_so(world, tmp_path, monkeypatch, capsys):
    count, step = iter(range(10**6)), OnnxSteps.step

    def stop_later(self, ids):
        if next(count) == 50:
            raise KeyboardInterrupt
        return step(self, ids)

    monkeypatch.setattr(OnnxSteps, "step", stop_later)
    out = str(tmp_path / "o")
    config = GenerateConfig(str(world.bundle), str(world.seed), out, length_seconds=500.0, variations=2, attention=AUTO)
    with pytest.raises(KeyboardInterrupt):
        generate(config)
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["tune 0-1.mid", "tune 0-2.mid"]
    seed = read_midi(world.seed)
    assert len(read_midi(tmp_path / "o" / "tune 0-1.mid")) > len(seed) - 3
    assert "interrupted" in capsys.readouterr().out


def test_a_graph_is_for_models_with_a_cache_of_keys(opened):
    assert isinstance(fast_model(opened.model, graph=True, device="cuda"), StaticSteps)
    recurrent = Recurrent(RecurrentConfig(vocab_size=9, d_model=8, n_layers=1))
    for model, device, why in ((recurrent, "cuda", "recurrent"), (opened.model, "cpu", "CPU")):
        with pytest.raises(ConfigError, match=f"^graph=true: .*{why}"):
            fast_model(model, graph=True, device=device)
