"""Continuing from Python: the same music as the command's, and files of it by their suffix."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile
from conftest import ok
from matplotlib.image import imread

import musictx
from musictx.errors import BundleError, ConfigError, MidiError, TokenError, UserError
from musictx.generate.model import Player
from musictx.generate.requests import Sampling
from musictx.generate.result import Music
from musictx.generate.seeds import read_seed
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi


@pytest.fixture(scope="module")
def player(world):
    return musictx.load(world.bundle)


def written(music, folder):
    music.write(folder / "it.mid")
    return (folder / "it.mid").read_bytes()


def test_the_same_seed_gives_the_bytes_that_the_command_writes(world, tmp_path, player):
    args = [
        "seed_seconds=2",
        "seed_from=end",
        "length_bars=2",
        "variations=2",
        "sampler.temperature=0.9",
        "random_seed=5",
    ]
    ok(
        ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "out=o", "wav=true", *args],
        tmp_path,
    )
    how = {"seed_seconds": 2, "seed_from": "end", "length_bars": 2, "variations": 2, "random_seed": 5}
    pieces = player.continue_midi(world.seed, sampler={"temperature": 0.9}, **how)
    assert [music.name for music in pieces] == ["tune 0-1", "tune 0-2"]
    for music in pieces:
        assert written(music, tmp_path) == (tmp_path / "o" / f"{music.name}.mid").read_bytes()
    pieces[1].write(tmp_path / "it.wav")
    assert (tmp_path / "it.wav").read_bytes() == (tmp_path / "o" / "tune 0-2.wav").read_bytes()
    same = player.continue_midi(str(world.seed), sampler=Sampling(temperature=0.9), **how)
    assert [music.score for music in same] == [music.score for music in pieces]
    greedy = player.continue_midi(world.seed, sampler="greedy", **how)
    assert [music.score for music in greedy] != [music.score for music in pieces]


@pytest.mark.parametrize("kind", ["performance", "chorale"])
def test_with_no_settings_at_all_it_is_the_command_without_any(world, tmp_path, kind):
    """Both doors: a file, and the notes that are in it."""
    bundle, seed = (world.bundle, world.seed) if kind == "performance" else (world.hymn_bundle, world.hymn)
    ok(["musictx", "generate", f"bundle={bundle}", f"seed_midi={seed}", "out=o"], tmp_path)
    model = musictx.load(bundle)
    (by_file,) = model.continue_midi(seed)
    (by_score,) = model.continue_score(read_seed(seed, model.tokenizer, drums=False, out_of_range="refuse").score)
    assert written(by_file, tmp_path) == (tmp_path / "o" / f"{seed.stem}-1.mid").read_bytes()
    assert by_score.score == by_file.score
    assert (by_file.name, by_score.name) == (f"{seed.stem}-1", "seed-1")
    assert by_file.new_from_s == by_score.new_from_s > 0
    assert by_file.score.duration_s == pytest.approx(by_file.new_from_s + 20, abs=5)


def test_music_from_nothing_and_of_a_folder(world, player):
    (nothing,) = player.continue_midi(None, length_seconds=1)
    assert (nothing.name, nothing.new_from_s, nothing.seed) == ("new-1", 0.0, None)
    assert player.continue_score(None, length_seconds=1)[0].score == nothing.score
    many = player.continue_midi(world.midi / "sub0", length_seconds=0.5, variations=2)
    assert [m.name for m in many] == [f"tune {i}-{k}" for i in (0, 2, 4, 6) for k in (1, 2)]


def test_a_model_is_a_name_a_file_a_run_or_ones_own(world, tmp_path, player):
    assert musictx.load("chorale").origin.startswith("trained on JSB chorales, 16th grid")
    by_run = musictx.load(world.bundle.parent)
    assert by_run.origin == player.origin == "trained on midi, licence not stated"
    ours = Player(by_run.model, by_run.tokenizer)
    assert ours.origin == "unknown"
    music = [each.continue_midi(None, length_seconds=1)[0].score for each in (by_run, ours, player)]
    assert music[0] == music[1] == music[2]
    packed = musictx.load(world.bundle, weights="bfloat16")
    assert packed.continue_midi(world.seed, length_seconds=1)[0].stopped == ""


def test_every_suffix(tmp_path, world, player):
    (music,) = player.continue_midi(world.seed, seed_seconds=1, length_seconds=1)
    there = tmp_path / "new" / "folder"
    for name in ("a.mid", "a.midi", "a.png", "a.SVG", "a.pdf", "a.gif", "a.wav", "a.flac"):
        music.write(there / name)
    assert len(list(there.iterdir())) == 8
    assert read_midi(there / "a.mid").pitch.tolist() == music.score.pitch.tolist()
    assert imread(there / "a.png").shape[1] > 1000
    assert "<svg" in (there / "a.SVG").read_text()
    sound, rate = soundfile.read(there / "a.flac")
    assert len(sound) / rate > music.score.duration_s - 0.1
    music.write(str(there / "a.mid"))  # once more: what is there is replaced
    known = ".mid, .midi, .png, .svg, .pdf, .gif, .mp4, .wav, .flac"
    for wrong in ("a.mp3", "a", "a.mid.txt"):
        with pytest.raises(ConfigError, match=f"{wrong}: give a name that ends in one of {known}$"):
            music.write(tmp_path / wrong)
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_a_seed_is_never_overwritten(world, tmp_path, player, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_midi(read_midi(world.seed), tmp_path / "my.mid")
    before = (tmp_path / "my.mid").read_bytes()
    (music,) = player.continue_midi("my.mid", length_seconds=0.5)
    for same in ("my.mid", tmp_path / "x" / ".." / "my.mid"):
        with pytest.raises(ConfigError, match="my.mid is the seed and would be overwritten: give another name"):
            music.write(same)
    assert (tmp_path / "my.mid").read_bytes() == before


def test_a_ranking_of_ones_own(world, player):
    def most_notes(primer, continuation):
        return len(continuation.score)

    settings = {"seed_seconds": 1.0, "length_seconds": 1.0}
    every = player.continue_midi(world.seed, variations=6, **settings)
    kept = player.continue_midi(world.seed, draws=6, variations=2, ranking=most_notes, **settings)
    assert [len(m.score) for m in kept] == sorted((len(m.score) for m in every), reverse=True)[:2]


def test_ctrl_c_is_no_music(world, player, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(player.model), "step", stop)
    with pytest.raises(KeyboardInterrupt):
        player.continue_midi(world.seed, length_seconds=1)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"length_second": 3}, "length_second is not a setting: did you mean length_seconds"),
        ({"variations": "many"}, "variations: Value 'many'.*Integer"),
        ({"variations": 0}, "variations=0: give more than 0"),
        ({"sampler": {"temprature": 1}}, "sampler.temprature is not a setting: did you mean temperature"),
        ({"sampler": {"temperature": -1}}, "^temperature=-1.0: give 0"),
        ({"sampler": "hot"}, "sampler=hot: choose one of auto, beam, greedy, min_p, nucleus, plain, typical"),
        ({"length_seconds": 1, "length_bars": 1}, "length_seconds=1.0, length_bars=1.0: give one of them"),
        ({"weights": "int8"}, "weights=…: give it to musictx.load, when the model is loaded"),
        ({"bundle": "piano"}, "bundle=…: give it to musictx.load, when the model is loaded"),
        ({"attention.impl": "skew"}, "attention.impl=…: give it to musictx.load"),
        ({"sampler.temperature": -1}, "^temperature=-1.0: give 0"),
        ({"sampler.temprature": 1}, "sampler.temprature is not a setting: did you mean temperature"),
        ({"sampler": None}, "sampler"),
        ({"out": "o"}, r"out=…: nothing is written yet; write each piece with music.write\(path\)"),
        ({"seed_midi": "a.mid"}, "seed_midi=…: give the seed first, without its name"),
    ],
)
def test_mistakes_are_the_commands_own_as_exceptions(player, values, text):
    with pytest.raises(ConfigError, match=text) as caught:
        player.continue_midi(None, **values)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_continued_or_loaded(world, tmp_path, player):
    with pytest.raises(MidiError, match="nowhere.mid"):
        player.continue_midi("nowhere.mid")
    with pytest.raises(ConfigError, match="continue_score takes a Score, not 'my.mid': give a file to continue_midi"):
        player.continue_score("my.mid")
    with pytest.raises(ConfigError, match="continue_midi takes a file: give a Score to continue_score"):
        player.continue_midi(read_midi(world.seed))
    with pytest.raises(UserError, match="the seed has no notes: give one with music in it"):
        player.continue_score(Score.empty())
    odd = Score([0.0], [1.0], [5], [80])
    hymns = musictx.load(world.hymn_bundle)
    with pytest.raises(TokenError, match=r"the seed: notes of pitch 5 \(1 of 1\) lie outside the model's range"):
        hymns.continue_score(odd)
    five = Score(np.zeros(5), np.ones(5), np.arange(60, 65), np.full(5, 80), 0.5)
    with pytest.raises(TokenError, match="the seed: 1 of its 5 notes are more than the model's 4 voices"):
        hymns.continue_score(five)
    assert len(hymns.continue_score(five, out_of_range="drop", length_seconds=1)[0].score)
    for asked, text in (
        ({"device": "tpu"}, "device=tpu: choose cpu or cuda"),
        ({"weights": "int4"}, "weights=int4: choose one of auto, float32, bfloat16, int8"),
        ({"graph": True}, "graph=true is for device=cuda"),
        ({"attention": "flash"}, "^^attention=flash: choose one of auto"),
    ):
        with pytest.raises(ConfigError, match=text):
            musictx.load("chorale", **asked)
    with pytest.raises(BundleError, match="nowhere: no such bundle; give piano, chorale or harmoniser"):
        musictx.load("nowhere")
    with pytest.raises(BundleError, match="is a folder without model.safetensors"):
        musictx.load(tmp_path)


def test_memory_that_does_not_suffice_is_told_from_python_too(player, monkeypatch):
    def too_much(*_):
        raise MemoryError

    monkeypatch.setattr(type(player.model), "step", too_much)
    with pytest.raises(UserError, match="out of memory with 4 rows drawn together: give rows_at_once=2"):
        player.continue_midi(None, variations=4, length_seconds=1)


def test_music_is_a_plain_value(world, player):
    (music,) = player.continue_midi(world.seed, length_seconds=0.5)
    assert isinstance(music, Music)
    assert replace(music, name="mine").name == "mine"
    assert (music.stopped, music.seed) == ("", world.seed)
