"""Continuing from Python: the same music as the command's, and files of it by their suffix."""

import inspect
from dataclasses import fields, replace

import numpy as np
import pytest
from conftest import ok

import musictx
from musictx.commands.accompany import AccompanyConfig
from musictx.commands.generate_settings import GenerateConfig
from musictx.errors import BundleError, ConfigError, MidiError, UserError
from musictx.generate.model import Model
from musictx.generate.seeds import read_seed
from musictx.model.bundle import write_header
from musictx.model.header import read_header
from musictx.model.onnx.steps import OnnxSteps
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi


@pytest.fixture(scope="module")
def model(world):
    return musictx.load(world.bundle)


@pytest.mark.parametrize(
    ("method", "given", "schema"),
    [
        (Model.continue_midi, ["seed"], GenerateConfig),
        (Model.fill, ["midi"], GenerateConfig),
        (Model.fill_between, ["a", "b"], GenerateConfig),
        (Model.accompany, ["melody"], AccompanyConfig),
    ],
)
def test_settings_are_typed_keywords_with_the_commands_defaults(method, given, schema):
    command = schema()
    defaults = {field.name.removeprefix("length_"): getattr(command, field.name) for field in fields(schema)}
    defaults |= {**vars(command.sampler), "rules": None, "control": None}  # None: those of the request
    settings = list(inspect.signature(method).parameters.values())[1:]
    assert [each.name for each in settings if each.kind is not each.KEYWORD_ONLY] == given
    for each in settings[len(given) :]:
        assert each.kind is each.KEYWORD_ONLY  # an unknown one is Python's error
        assert each.annotation is not each.empty
        assert each.default == defaults[each.name], each.name


def written(music, folder):
    music.write(folder / "it.mid")
    return (folder / "it.mid").read_bytes()


def test_the_same_seed_gives_the_bytes_that_the_command_writes(world, tmp_path, model):
    words = [f"bundle={world.bundle}", f"seed_midi={world.seed}", "out=o", "wav=true", "variations=2", "random_seed=5"]
    words += ["seed_seconds=2", "seed_from=end", "start=end", "length_bars=2", "sampler.temperature=0.9"]
    ok(["musictx", "generate", *words], tmp_path)
    how = {"seed_seconds": 2, "seed_from": "end", "start": "end", "bars": 2, "variations": 2, "random_seed": 5}
    pieces = model.continue_midi(world.seed, temperature=0.9, **how)
    assert [music.name for music in pieces] == ["tune 0-1", "tune 0-2"]
    for music in pieces:
        assert written(music, tmp_path) == (tmp_path / "o" / f"{music.name}.mid").read_bytes()
    pieces[1].write(tmp_path / "it.wav")
    assert (tmp_path / "it.wav").read_bytes() == (tmp_path / "o" / "tune 0-2.wav").read_bytes()
    seed = read_seed(world.seed, model.tokenizer).score
    for given, name in ((str(world.seed), "tune 0-1"), (seed, "seed-1")):
        same = model.continue_midi(given, temperature=0.9, **how)
        assert [music.score for music in same] == [music.score for music in pieces]
        assert (same[0].name, same[0].new_from_s) == (name, pieces[0].new_from_s)


def test_music_from_nothing_and_of_a_folder(world, model):
    (nothing,) = model.continue_midi(None, seconds=1)
    assert (nothing.name, nothing.new_from_s, nothing.seed) == ("new-1", 0.0, None)
    many = model.continue_midi(world.midi / "sub0", seconds=0.5, variations=2)
    assert [m.name for m in many] == [f"tune {i}-{k}" for i in (0, 2, 4, 6) for k in (1, 2)]


def test_a_model_is_a_name_a_file_a_run_or_ones_own(world, tmp_path, model):
    assert musictx.load("chorale").origin.startswith("trained on JSB chorales, 16th grid")
    by_run = musictx.load(world.bundle.parent)
    assert by_run.origin == model.origin == "trained on midi, licence not stated"
    ours = Model(by_run.model, by_run.tokenizer)
    assert ours.origin == "unknown"
    music = [each.continue_midi(None, seconds=1)[0].score for each in (by_run, ours, model)]
    assert music[0] == music[1] == music[2]
    packed = musictx.load(world.bundle, weights="bfloat16")
    assert packed.continue_midi(world.seed, seconds=1)[0].stopped == ""


def test_a_chorale_ends_with_a_sixteenth_wherever_its_seconds_end():
    (music,) = musictx.load("chorale").continue_midi("chorale", seconds=3.14)
    sixteenths = music.score.offset_s / 0.15
    assert np.allclose(sixteenths, np.rint(sixteenths), atol=1e-3)
    assert 4.8 + 3.14 - 0.16 < music.score.duration_s <= 4.8 + 3.14


def test_every_suffix(tmp_path, world, model):
    (music,) = model.continue_midi(world.seed, seed_seconds=1, seconds=1)
    there = tmp_path / "new" / "folder"
    for name in ("a.mid", "a.midi", "a.png", "a.SVG", "a.pdf", "a.wav", "a.flac"):
        music.write(there / name)
    assert len(list(there.iterdir())) == 7
    assert read_midi(there / "a.mid").pitch.tolist() == music.score.pitch.tolist()
    assert "<svg" in (there / "a.SVG").read_text()
    music.write(str(there / "a.mid"))  # once more: what is there is replaced
    known = ".mid, .midi, .png, .svg, .pdf, .gif, .mp4, .wav, .flac, .musicxml, .mxl"
    for wrong in ("a.mp3", "a", "a.mid.txt"):
        with pytest.raises(UserError, match=f"{wrong}: .* {known}$"):
            music.write(tmp_path / wrong)
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_a_seed_is_never_overwritten(world, tmp_path, model):
    write_midi(read_midi(world.seed), tmp_path / "my.mid")
    (music,) = model.continue_midi(tmp_path / "my.mid", seconds=0.5)
    with pytest.raises(UserError, match="my.mid .*seed"):
        music.write(tmp_path / "x" / ".." / "my.mid")


def test_what_a_command_prints_of_the_seed_and_the_drawing_is_data_in_python(world, tmp_path, model, capsys):
    quick = {"tokens": 4, "seed_guidance": 1.0, "variations": 2}
    write_midi(Score([0, 0.5], [0.5, 1.0], [60, 64], [80, 80], program=[0, 40]), tmp_path / "short.mid")
    long, short = model.continue_midi(world.seed, **quick), model.continue_midi(tmp_path / "short.mid", **quick)
    assert capsys.readouterr().out == ""
    assert long[0].remarks[0] == f"{world.seed}: its 2 tracks are heard as one piano"
    assert short[0].remarks[-1] == "short: too short for seed guidance, which does nothing here"
    assert not any("guidance" in remark for remark in long[0].remarks)
    words = [f"bundle={world.bundle}", "length_tokens=4", "sampler.seed_guidance=1", "variations=2"]
    for seed, pieces in ((world.seed, long), (tmp_path / "short.mid", short)):
        said = ok(["musictx", "generate", *words, f"seed_midi={seed}", f"out={seed.stem}"], tmp_path).stdout
        assert pieces[0].remarks == pieces[1].remarks
        assert [said.count(f"{remark}\n") for remark in pieces[0].remarks] == [1] * len(pieces[0].remarks)


def test_ctrl_c_is_no_music(world, model, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(OnnxSteps, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        model.continue_midi(world.seed, seconds=1)


@pytest.mark.parametrize(
    ("values", "said"), [({"seconds": 1, "bars": 1}, "seconds=1: bars=1"), ({"from_s": 2.0}, "from_s=2.0")]
)
def test_impossible_values_have_pythons_names(model, values, said):
    with pytest.raises(ConfigError, match=f"^{said}[: ]"):
        model.continue_midi(None, **values)


def test_what_cannot_be_continued(world, model):
    with pytest.raises(MidiError, match="nowhere.mid"):
        model.continue_midi("nowhere.mid")
    for wrong, field in ((3, "seed_midi"), ("", "seed_midi")):
        with pytest.raises(ConfigError) as refused:
            model.continue_midi(wrong)
        assert (refused.value.field, refused.value.got) == (field, wrong)
    with pytest.raises(UserError, match="no notes"):
        model.continue_midi(Score.empty())
    hymns = musictx.load(world.hymn_bundle)
    with pytest.raises(UserError, match="the seed: no note lies within the model's range, "):
        hymns.continue_midi(Score([0.0], [1.0], [5], [80]))
    five = Score(np.zeros(5), np.ones(5), np.arange(60, 65), np.full(5, 80), 0.5)
    assert len(hymns.continue_midi(five, seconds=1)[0].score)


@pytest.mark.parametrize("gone", ["masked", "classify", "wings"])
def test_a_model_of_an_objective_that_is_not_here_is_refused_unless_another_is_named(world, tmp_path, gone):
    path = tmp_path / "old.safetensors"
    path.write_bytes(world.bundle.read_bytes())
    write_header(path, replace(read_header(path), objective={"name": gone, "settings": {}, "added": []}))
    with pytest.raises(BundleError, match=f"was trained for objective {gone}, which this musictx does not have"):
        musictx.load(path)
    with pytest.raises(BundleError, match=f"was trained for objective {gone}, which this musictx does not have"):
        musictx.evaluate(bundle=path, data={"path": world.store})
    assert musictx.evaluate(bundle=path, data={"path": world.store}, objective="next_token").tokens


@pytest.mark.parametrize(
    ("field", "value"), [("device", "tpu"), ("weights", "int4"), ("graph", True), ("attention", "flash")]
)
def test_how_a_model_cannot_be_loaded(field, value):
    with pytest.raises(ConfigError) as refused:
        musictx.load("chorale", **{field: value})
    assert (refused.value.field.split(".")[-1], refused.value.got) == (field, value)
