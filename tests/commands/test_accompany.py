"""`musictx accompany` and `model.accompany`: the melody as it was, four voices, and one line for what cannot be."""

import re

import numpy as np
import pytest
from conftest import ok, refused
from strategies import rows
from untrained import write_harmoniser

import musictx
from musictx.errors import BundleError, ConfigError, TokenError, UserError
from musictx.generate.model import Model
from musictx.generate.open_bundle import open_bundle
from musictx.model.onnx.player import OnnxSourcePlayer
from musictx.model.onnx.steps import OnnxSteps
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.rules import Rules


def tune(*notes, program=73, quarter_s=0.4):
    """Notes of (onset, length, pitch) in quarters."""
    onset, length, pitch = np.array(notes, dtype=float).T
    end = (onset + length) * quarter_s
    return Score(onset * quarter_s, end, pitch, 40 + np.arange(len(pitch)), quarter_s, np.array(program))


# struck again, dotted, a triplet beside the grid, a rest, legato
TUNE = tune((1, 1, 67), (2, 1, 67), (3, 1.5, 72), (4.5, 0.5, 71), (5, 1 / 3, 72), (5 + 1 / 3, 0.4, 74), (8, 2, 76))


@pytest.fixture
def melody(tmp_path):
    write_midi(TUNE, tmp_path / "tune.mid", (3, 4))
    return tmp_path / "tune.mid"


def test_the_melody_is_kept_to_the_bit_and_the_rest_is_new(melody, tmp_path, voices):
    say = ["musictx", "accompany", f"bundle={voices}", "melody=tune.mid", "out=o", "variations=2"]
    said = ok([*say, "png=true", "sampler.temperature=0.9"], tmp_path).stdout
    assert "tune-1.mid: 7 notes of the melody, unchanged" in said
    assert "1 of its 7 notes" in said
    assert {p.name for p in (tmp_path / "o").iterdir()} == {"tune-1.mid", "tune-2.mid", "tune.png"}
    kept = rows(read_midi(melody))
    both = [rows(read_midi(tmp_path / "o" / f"tune-{k}.mid")) for k in (1, 2)]
    for notes in both:
        assert kept < notes
        new = notes - kept
        assert len(new) > 10
        assert min(onset for onset, *_ in new) >= 1 * 0.4 - 1e-6  # no earlier than the melody's first beat
        assert max(end for _, end, *_ in new) <= 10 * 0.4 + 1e-6
        assert {program for *_, program in new} == {73}
    assert both[0] != both[1]
    # the same from Python, to the bit, from the file and from its notes
    model = musictx.load(voices)
    made = model.accompany(melody, variations=2, temperature=0.9)
    for music in made:
        music.write(tmp_path / "it.mid")
        assert (tmp_path / "it.mid").read_bytes() == (tmp_path / "o" / f"{music.name}.mid").read_bytes()
        assert music.given_notes == read_midi(melody)
    assert model.accompany(read_midi(melody), temperature=0.9)[0].score == made[0].score
    assert re.search("tune-1.mid .*out= .*overwrite=true", refused(say, tmp_path))
    with pytest.raises(UserError, match="tune.mid .*seed"):
        made[0].write(melody)


def test_a_melody_of_another_register_is_heard_where_sopranos_sing(tmp_path, voices):
    model = musictx.load(voices)
    low = tune((0, 1, 48), (1, 1, 50), (2, 2, 52))
    with pytest.raises(TokenError, match=r"48, 50, 52 \(3 of 3\), the first at 0.00 s, .* 60 … 81: transpose=12"):
        model.accompany(low, transpose=0)
    (as_sung,) = model.accompany(tune((0, 1, 60), (1, 1, 62), (2, 2, 64)))
    assert not any("semitone" in each for each in as_sung.remarks)
    (moved,), (asked,) = model.accompany(low), model.accompany(low, transpose=12)
    assert moved.given_notes == low
    assert moved.new_notes == asked.new_notes == as_sung.new_notes.transpose(-12)
    assert any("12 semitones higher" in each for each in moved.remarks)
    wide = tune((0, 1, 30), (1, 1, 90))
    with pytest.raises(TokenError, match="60 … 81: (?!transpose)"):
        model.accompany(wide)
    assert len(model.accompany(wide, rules=Rules(voice_ranges=False))[0].new_notes)


def test_the_melody_guides_a_model_that_has_learned_to_go_without(melody, tmp_path):
    able = write_harmoniser(tmp_path / "able.safetensors", hide_source=0.1)
    own = write_harmoniser(tmp_path / "own.safetensors", hide_source=0.1, seed_guidance=2)
    model = musictx.load(able)
    asked, plain = model.accompany(melody, seed_guidance=2)[0].score, model.accompany(melody)[0].score
    assert rows(read_midi(melody)) < rows(asked)
    assert asked != plain
    for nothing in (None, 0):
        assert model.accompany(melody, seed_guidance=nothing)[0].score == plain
    # where no one says anything, the bundle does
    guided = musictx.load(own)
    assert guided.accompany(melody)[0].score == asked
    assert guided.accompany(melody, seed_guidance=None)[0].score == plain
    said = ok(["musictx", "accompany", "melody=tune.mid", f"bundle={own}", "out=own"], tmp_path).stdout
    assert "sampler.seed_guidance=2, as its bundle says" in said
    with pytest.raises(ConfigError, match=r"^seed_guidance=2.*: .*hide_source=0\.1"):
        musictx.load(write_harmoniser(tmp_path / "not.safetensors")).accompany(melody, seed_guidance=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["melody=nowhere.mid"], "nowhere.mid: "),
        (["melody=empty.mid"], "empty.mid: no notes"),
        (["bundle=chorale"], "objective infill"),
        (["melody=elise", "transpose=0"], "elise.mid: notes of pitch 56, 57 (4 of 33)"),
        (["melody=gymnopedie"], "gymnopedie.mid: notes of pitch 38, 43, 57 (4 of 14)"),
        (["transpose=high"], "transpose=high: "),
        (["sampler.seed_guidance=1"], "sampler.seed_guidance=1.0: "),
        (["sampler.guard=true"], "sampler.guard=true: "),
        (["control.density=3"], "control.density=3: "),
        (["control.chords=seed"], "control.chords=seed: "),
        (["rules.lowest=128"], "rules.lowest=128: "),
        (["rules.scale=H minor"], "rules.scale='H minor': "),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_written(melody, tmp_path, voices, words, said):
    write_midi(Score.empty(), tmp_path / "empty.mid")
    before = sorted(tmp_path.iterdir())
    say = ["musictx", "accompany", f"bundle={voices}", "melody=tune.mid", "out=o"]
    line = refused([*[word for word in say if not word.startswith(words[0].split("=")[0] + "=")], *words], tmp_path)
    assert said in line
    assert sorted(tmp_path.iterdir()) == before


def test_each_task_has_its_own_models(world, melody, voices):
    with pytest.raises(BundleError, match="^this model: encoder_decoder "):
        musictx.load(voices).continue_midi(melody)
    with pytest.raises(BundleError, match="objective next_token"):
        musictx.load(world.hymn_bundle).accompany(melody)
    with pytest.raises(UserError, match="^the melody: "):
        musictx.load(voices).accompany(Score.empty())
    with pytest.raises(ConfigError, match="^melody=3: "):
        musictx.load(voices).accompany(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", ["auto", "int8", "float32", "bfloat16"])
def test_on_a_cpu_onnx_runtime_plays_what_it_can(voices, weights):
    played = isinstance(musictx.load(voices, weights=weights).model, OnnxSourcePlayer)
    assert played == (weights != "bfloat16")


def test_pytorch_writes_the_same_voices(melody, voices):
    in_pytorch = Model(*open_bundle(voices, continues=False))
    exact = musictx.load(voices, weights="float32")
    bare = Model(exact.model, exact.tokenizer)  # without a header, the models say what they take
    ours, theirs, again = (model.accompany(melody, variations=2, random_seed=5) for model in (exact, in_pytorch, bare))
    assert [music.score for music in ours] == [music.score for music in theirs] == [music.score for music in again]
    assert ours[1].mean_log_p == pytest.approx(theirs[1].mean_log_p, abs=1e-5)


def test_memory_that_does_not_suffice_is_said(melody, voices, monkeypatch):
    model = musictx.load(voices)

    def too_much(*_):
        raise MemoryError

    monkeypatch.setattr(OnnxSteps, "step", too_much)
    with pytest.raises(UserError, match="4 rows .* rows_at_once=2"):
        model.accompany(melody, variations=4)
    with pytest.raises(UserError, match="shorter melody"):
        model.accompany(melody)
