"""A region written again, from the command and from Python; wrong input in one line, and nothing written."""

import re
from typing import Any

import mido
import numpy as np
import pytest
from conftest import ok, refused
from matplotlib.image import imread

import musictx
from musictx.commands.generate import generate
from musictx.commands.generate_settings import GenerateConfig
from musictx.config.train import AttentionConfig
from musictx.errors import BundleError, ConfigError, UserError
from musictx.music.read import read_midi, read_tracks
from musictx.music.score import Filled, Score
from musictx.music.write import write_midi


def outside(score, from_s, to_s):
    """Notes that no border touches, as MIDI has them."""
    kept = score.select((score.offset_s < from_s - 1e-3) | (score.onset_s > to_s + 1e-3))
    columns = (kept.onset_s.round(3), kept.offset_s.round(3), kept.pitch, kept.velocity)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_a_region_is_written_again_and_all_else_is_the_files(world, filling, tmp_path):
    midi = world.hymn
    words = [f"infill={midi}", f"bundle={filling}", "from_s=2.4", "to_s=3.6", "variations=2", "png=true", "out=o"]
    said = ok(["musictx", "generate", *words], tmp_path).stdout
    assert "of them new, from 2.40 to 3.60 s" in said
    assert imread(tmp_path / "o" / "hymn0.png").shape[2] == 4
    file = read_midi(midi)
    pieces = [read_midi(tmp_path / "o" / f"hymn0-{k}.mid") for k in (1, 2)]
    for piece in pieces:
        assert outside(piece, 2.4, 3.6) == outside(file, 2.4, 3.6)
        assert len(outside(file, 2.4, 3.6)) > 10
    assert pieces[0] != pieces[1]
    model = musictx.load(filling)
    same = model.fill(midi, from_s=2.4, to_s=3.6, variations=2)
    for music, piece in zip(same, pieces, strict=True):
        music.write(tmp_path / "it.mid")
        assert read_midi(tmp_path / "it.mid") == piece
        assert music.is_new is not None
        new = music.score.select(music.is_new)
        assert ((new.onset_s >= 2.4 - 1e-6) & (new.onset_s < 3.6)).all()
    again = model.fill(file, from_s=2.4, to_s=3.6, variations=2, random_seed=0)
    assert [music.score.pitch.tolist() for music in again] == [music.score.pitch.tolist() for music in same]
    assert model.fill(midi, from_s=2.4, to_s=3.6, random_seed=1)[0].score != same[0].score


def test_bars_are_counted_from_one_and_the_last_is_part_of_it(world, filling):
    model = musictx.load(filling)
    bar_s = 4 * read_midi(world.hymn).quarter_s
    (by_bars,) = model.fill(world.hymn, from_bar=2, to_bar=2)
    (by_seconds,) = model.fill(world.hymn, from_s=bar_s, to_s=2 * bar_s)
    assert by_bars.score == by_seconds.score
    assert isinstance(by_bars.new, Filled)
    assert by_bars.new[1:] == (by_bars.new_from_s, by_bars.new_to_s) == pytest.approx((bar_s, 2 * bar_s))


def test_what_goes_between_two_files(world, filling, tmp_path):
    a, b = world.hymn, world.hymns / "hymn1.mid"
    words = [f"between={a},{b}", f"bundle={filling}", "length_seconds=1.5", "out=o", "wav=true"]
    said = ok(["musictx", "generate", *words], tmp_path).stdout
    first, second = read_midi(a), read_midi(b)
    end_s = round(first.duration_s, 2)
    assert f"of them new, from {end_s:.2f} to {end_s + 1.5:.2f} s" in said
    piece = read_midi(tmp_path / "o" / "hymn0-to-hymn1-1.mid")
    assert outside(piece, end_s, 1000) == outside(first, end_s, 1000)
    later = piece.select(piece.onset_s > end_s + 1.5 - 1e-3)
    assert later.pitch.tolist() == second.pitch.tolist()
    assert np.allclose(later.onset_s - second.onset_s, end_s + 1.5, atol=2e-3)
    assert (tmp_path / "o" / "hymn0-to-hymn1-1.wav").stat().st_size > 10_000
    (music,) = musictx.load(filling).fill_between(a, b, seconds=1.5)
    assert music.score.pitch.tolist() == piece.pitch.tolist()
    for midi in (a, b):
        with pytest.raises(UserError, match=f"{midi.name} .*seed"):
            music.write(midi)


def test_drums_that_are_not_heard_end_where_the_second_file_begins(world, filling, tmp_path):
    file = mido.MidiFile(world.hymn)
    file.tracks.append(mido.MidiTrack([mido.Message("note_on", channel=9, note=36)]))
    end = mido.second2tick(1000, file.ticks_per_beat, 500_000)
    file.tracks[-1].append(mido.Message("note_off", channel=9, note=36, time=end))
    file.save(a := tmp_path / "a.mid")
    (music,) = musictx.load(filling).fill_between(a, world.hymn, seconds=1.5)
    assert any("1 of its notes, which are not heard, reach into " in each for each in music.remarks)
    music.write(tmp_path / "out.mid")
    drums = next(track for track in read_tracks((tmp_path / "out.mid").read_bytes(), "").tracks if track.is_drums)
    assert drums.score.duration_s == pytest.approx(music.new_to_s, abs=2e-3)


def test_a_name_with_a_comma_in_it_is_one_of_the_two(world, filling, tmp_path):
    one, two = read_midi(world.hymn), read_midi(world.hymns / "hymn1.mid")
    write_midi(one, tmp_path / "slow, sad.mid")
    write_midi(two, tmp_path / "b.mid")
    words = ["between=slow, sad.mid,b.mid", "length_seconds=1"]
    ok(["musictx", "generate", *words, f"bundle={filling}", "out=o"], tmp_path)
    assert (tmp_path / "o" / "slow, sad-to-b-1.mid").is_file()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"infill": "{seed}", "from_bar": 1, "to_bar": 900}, "hymn0.mid: from_bar=1: to_bar=900: "),
        ({"infill": "none.mid", "from_s": 1.0, "to_s": 2.0}, "none.mid: "),
        ({"infill": "{seed}", "from_s": 1.0, "to_s": 2.0, "length_seconds": 3.0}, "length_seconds=3.0: "),
        ({"infill": "{seed}", "between": "{seed},{seed}"}, "between="),
        ({"between": "{seed}"}, "between="),
        ({"between": "{seed},{seed}", "from_s": 1.0}, "from_s=1.0: "),
        ({"between": "{seed},{seed}", "length_seconds": 1000.0}, "a gap of 1000.0 s "),
        ({}, "seed_midi=…: "),
    ],
)
def test_wrong_input_is_said_and_nothing_is_written(world, filling, tmp_path, words, text):
    given: dict[str, Any] = {"bundle": str(filling), "out": str(tmp_path / "o"), "attention": AttentionConfig("auto")}
    given |= {name: word.format(seed=world.hymn) if isinstance(word, str) else word for name, word in words.items()}
    with pytest.raises(UserError, match=re.escape(text)):
        generate(GenerateConfig(**given))
    assert not (tmp_path / "o").exists()


def test_a_model_that_never_learned_it(world, tmp_path):
    words = [f"infill={world.hymn}", "from_s=1", "to_s=2", "out=o", f"bundle={world.hymn_bundle}"]
    said = refused(["musictx", "generate", *words], tmp_path)
    assert said.startswith(f"error: {world.hymn_bundle} ")
    assert not (tmp_path / "o").exists()
    with pytest.raises(BundleError, match="^this model .*objective=infill"):
        musictx.load(world.hymn_bundle).fill(world.hymn, from_s=1, to_s=2)


def test_wrong_input_from_python(world, filling):
    model = musictx.load(filling)
    with pytest.raises(ConfigError) as refused:
        model.fill(world.hymn)
    assert refused.value.field == "from_s"
    with pytest.raises(ConfigError) as refused:
        model.fill_between(read_midi(world.hymn), world.hymn)  # type: ignore[arg-type]
    assert (refused.value.field, refused.value.got) == ("between", "Score")
    with pytest.raises(UserError, match="the score: to_s=2: .* 0"):
        model.fill(Score.empty(), from_s=1, to_s=2)
