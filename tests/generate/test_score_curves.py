"""New notes of scores are led to numbers: notes a second, notes at once, the pitch around which they lie."""

from dataclasses import replace

import numpy as np
import pytest
from test_score_control import BARS, PLAIN, SCORE, SONG, TUNE, player

from musictx.generate.control import Control
from musictx.generate.requests import Accompany, Continue, Fill, Length
from musictx.generate.score_curves import Clock
from musictx.generate.score_tasks import task_of
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Tempo


@pytest.fixture
def song(tmp_path):
    (tmp_path / "song.mid").write_bytes(to_midi(SONG))
    return tmp_path / "song.mid"


def drawn(path, control, request=None):
    request = request or Continue(PLAIN, Length(bars=8))
    (music,) = task_of(path, SCORE, replace(request, control=control)).draw(player(), SCORE)
    return music


def numbers(music):
    """Notes a second, notes at once, and the mean pitch."""
    new, seconds = music.new_notes, 12.0  # eight bars
    return len(new) / seconds, (new.offset_s - new.onset_s).sum() / seconds, new.pitch.mean()


@pytest.mark.parametrize(
    ("name", "k", "few", "many", "near"),
    [("density", 0, 2, 8, 1.5), ("polyphony", 1, 2, 6, 1.5), ("register", 2, 48, 76, 12)],
)
def test_numbers_are_followed(song, name, k, few, many, near):
    low, high = (numbers(drawn(song, Control(**{name: asked})))[k] for asked in (few, many))
    assert low + (many - few) / 3 < high
    assert abs(low - few) < near
    assert abs(high - many) < near


def test_a_curve_leads_from_one_value_to_the_next(song):
    music = drawn(song, Control(register="0 48, 6 48, 6.5 80", strength=20.0))
    new = music.new_notes
    assert new.pitch[new.onset_s < 10.5].mean() + 20 < new.pitch[new.onset_s > 12.5].mean()
    assert music.became.startswith("around ")
    assert " to " in music.became


def test_parts_keep_their_distance(song):
    music = drawn(song, Control(register=70, strength=20.0))
    tune, bass = (np.mean([note.pitch for note in music.added[slot]]) for slot in sorted(music.added))
    assert 8 < tune - bass < 24  # in the seed 19
    assert abs((tune + bass) / 2 - 70) < 4


def test_numbers_of_one_part_are_all_its_own(song, tmp_path):
    fill = Fill(PLAIN, from_bar=1, to_bar=3, only="Cello")
    music = drawn(song, Control(register=40, strength=20.0), fill)
    assert abs(music.new_notes.pitch.mean() - 40) < 8
    assert music.notation.parts[0] == TUNE
    (tmp_path / "tune.mid").write_bytes(to_midi(replace(SONG, parts=(TUNE,))))
    few, many = (drawn(tmp_path / "tune.mid", Control(density=n), Accompany()) for n in (1, 10))
    assert len(few.new_notes) * 2 < len(many.new_notes)


def test_the_clock_follows_every_tempo():
    clock = Clock(Notation((TUNE,), BARS, 240, tempi=(Tempo(0, 60.0), Tempo(48, 120.0), Tempo(96, 30.0))))
    assert clock.seconds(np.array([0, 24, 48, 72, 96, 120])).tolist() == [0, 1, 2, 2.5, 3, 5]
