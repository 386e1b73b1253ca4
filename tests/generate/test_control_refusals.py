"""A wish that no new music can meet is refused in a line, by its name."""

import copy
import re
from typing import Any

import pytest
from conftest import ok, refused
from test_control import chordal

import musictx
from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.requests import Fill
from musictx.generate.steering import Steering, check_encoding
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.rules import Rules

PIANO, GRID = build_tokenizer("performance"), ChoraleTokenizer()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"density": 0.0}, "density=0.0: give 1 to 30 notes a second, or a curve"),
        ({"density": "0 3, 10 90"}, "density='0 3, 10 90': give 1 to 30"),
        ({"register": "C4"}, "register=C4: give 21 to 108 as a pitch"),
        ({"key": "C", "strength": 0.0}, "strength=0.0: give more than 0"),
        ({"strength": -1.0}, "strength=-1.0: give more than 0 and at most 20, or 0 alone"),
        ({"strength": 3.0}, "strength=3.0: nothing is asked for: give"),
        ({"bar_seconds": 2.0}, "bar_seconds=2.0: it is for bars: give"),
        ({"key": "H minor"}, "key='H minor': give a key such as"),
        ({"chords": "C | X"}, "chords=X: this chord is not known: give a root"),
        ({"chords": "C | E7", "key": "C"}, "chords=E7: Ab is outside key=C: change one of them"),
    ],
)
def test_impossible_wishes_are_refused(given, said):
    with pytest.raises(ConfigError) as caught:
        Control(**given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("control", "rules", "said"),
    [
        ({"chords": "C | Am"}, {"scale": "C minor"}, "chords=C: E is outside scale=C minor"),
        ({"chords": "C | Am"}, {"lowest": 62, "highest": 63}, "chords=C: the rules leave none of its notes: give"),
        ({"key": "C"}, {"lowest": 61, "highest": 61}, "key=C: the rules leave none of its notes: give"),
    ],
)
def test_rules_that_exclude_a_wish_are_refused(control, rules, said):
    with pytest.raises(ConfigError) as caught:
        Fill(control=Control(**control), rules=Rules(**rules))
    assert str(caught.value).startswith(said)


def test_an_encoding_refuses_what_it_cannot_take():
    for name in ("density", "loudness", "polyphony", "register"):
        given: dict[str, Any] = {name: 25}
        with pytest.raises(ConfigError, match=rf"^{name}=25: chorale "):
            Steering(Control(**given), GRID, [])
    timeless = copy.copy(PIANO)
    timeless.pace = None
    with pytest.raises(ConfigError, match="^control=…: .*performance"):
        check_encoding(Control(key="C"), timeless)


def test_a_person_types_chords_as_they_are(world, tmp_path):
    words = ["musictx", "generate", f"bundle={world.bundle}", f"seed_midi={world.seed}", "length_seconds=2"]
    write_midi(chordal(["C", "Am"]), tmp_path / "chords.mid")
    wishes = ["control.chords=chords.mid", "control.key=C", "control.density=0 3, 2 8", "control.polyphony=3"]
    done = ok([*words, *wishes, "png=true", "out=track"], tmp_path)
    assert done.stdout.count("chords.mid: its chords are 0 C, 1 Am, 2\n") == 1
    said = r" \(\d+% in chords, \d+% in C, [\d.]+ to [\d.]+ notes a second, [\d.]+ at once\)$"
    assert re.search(said, done.stdout, re.MULTILINE)
    music = musictx.read_midi(tmp_path / "track" / "tune 0-1.mid")
    control = Control(key="C", chords="0 C, 1 Am, 2", density="0 3, 2 8", polyphony=3)
    (twin,) = musictx.load(world.bundle).continue_midi(world.seed, seconds=2, control=control)
    assert sorted(music.pitch.tolist()[-len(twin.new_notes) :]) == sorted(twin.new_notes.pitch.tolist())
    line = refused([*words, "control.chords=C | E7", "control.key=C", "out=no"], tmp_path)
    assert re.match("error: control.chords=E7: Ab .*control.key=C: ", line)
    assert not (tmp_path / "no").exists()
