"""Continuing from the command line: what is written. tests/generate/test_model.py has the same from Python."""

import numpy as np
import pytest
from conftest import ok, refused

from musictx.commands.generate import GenerateConfig, generate
from musictx.config.train import AttentionConfig
from musictx.errors import ConfigError
from musictx.generate.model import load
from musictx.generate.open_bundle import faster, open_bundle
from musictx.model.bundle import add_notes
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.static_steps import StaticSteps
from musictx.music.read import read_bytes, read_midi, read_tracks
from musictx.music.score import Score
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


def test_ctrl_c_writes_what_exists_and_says_so(world, tmp_path, opened, monkeypatch, capsys):
    model, count = opened.model, iter(range(10**6))
    step = type(model).step

    def stop_later(self, ids, state):
        if next(count) == 50:
            raise KeyboardInterrupt
        return step(self, ids, state)

    monkeypatch.setattr(type(model), "step", stop_later)
    out = str(tmp_path / "o")
    config = GenerateConfig(str(world.bundle), str(world.seed), out, length_seconds=500.0, variations=2, attention=AUTO)
    with pytest.raises(KeyboardInterrupt):
        generate(config)
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["tune 0-1.mid", "tune 0-2.mid"]
    seed = read_midi(world.seed)
    assert len(read_midi(tmp_path / "o" / "tune 0-1.mid")) > len(seed) - 3
    assert "interrupted" in capsys.readouterr().out


def test_a_graph_is_for_models_with_a_cache_of_keys(opened):
    assert isinstance(faster(opened.model, graph=True, device="cuda"), StaticSteps)
    recurrent = Recurrent(RecurrentConfig(vocab_size=9, d_model=8, n_layers=1))
    for model, device, why in ((recurrent, "cuda", "recurrent"), (opened.model, "cpu", "CPU")):
        with pytest.raises(ConfigError, match=f"^graph=true: .*{why}"):
            faster(model, graph=True, device=device)
