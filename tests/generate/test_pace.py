"""Music that goes on after a ritardando has the tempo before it."""

from io import BytesIO

import mido
import numpy as np
import pytest
from small_scores import PLAIN, drawn, in_file

from musictx.generate.primer import Part as Region
from musictx.generate.requests import Continue, Length
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo
from musictx.music.notation.write import to_musicxml
from musictx.music.pace import pace_before
from musictx.music.project import Line, Project
from musictx.music.read import read_tracks
from musictx.music.score import Score

SLOW = [(0, 120.0), (4 * 96, 100.0), (5 * 96, 80.0)]  # in bars 5 and 6


@pytest.mark.parametrize(
    ("tempi", "bars", "pace"),
    [
        (SLOW, 6, 120.0),
        (SLOW[:2], 5, 120.0),
        ([(0, 120.0), (96, 100.0)], 4, None),  # it begins before the last half
        (SLOW, 8, 120.0),
        (SLOW, 9, None),  # a slow section of five bars
        ([(0, 120.0)], 8, None),
        ([(0, 120.0), (7 * 96, 118.0)], 8, None),  # as programs round
        ([(0, 120.0), (7 * 96, 150.0)], 8, None),  # a stretta stays
        ([(0, 60.0), (2 * 96, 120.0), (22 * 96, 70.0)], 24, 120.0),
        ([(0, 120.0), (6 * 96, 60.0), (7 * 96, 120.0)], 8, None),  # it ends before the end
        ([(24 * n, 120.0 + (n % 3)) for n in range(28)] + [(7 * 96, 90.0)], 8, 121.0),
        ([(0, 120.0), (32 * 96, 60.0)], 34, 120.0),
        ([(0, 120.0), (31 * 96, 60.0)], 34, None),  # one tempo that holds is a section
        ([(0, 120.0), (30 * 96, 60.0)], 34, None),
        ([(0, 120.0), (30 * 96, 60.0), (33 * 96, 60.0)], 34, None),  # said again
        ([(0, 120.0), (30 * 96, 90.0), (31 * 96, 60.0)], 34, 120.0),  # in steps
        ([(0, 120.0), (0, 90.0)], 1, None),
        ([(0, 120.0), (2 * 96, 90.0)], 3, None),  # an excerpt
    ],
)
def test_the_pace_before_a_ritardando(tempi, bars, pace):
    assert pace_before(tempi, range(0, 96 * bars + 1, 96)) == pace


def score(*tempi):
    bars = tuple(Bar(96 * n, 4, 4) for n in range(8))
    notes = tuple(Note(24 * n, 24, 60 + n % 7) for n in range(32))
    return Notation((Part("a", 0, notes),), bars, 8 * 96, tempi=tuple(Tempo(*tempo) for tempo in tempi))


def tempi_of(data):
    return [message.tempo for message in mido.MidiFile(file=BytesIO(data)).tracks[0] if message.type == "set_tempo"]


@pytest.mark.parametrize("form", ["mid", "musicxml"])
def test_new_bars_have_the_pace_before_a_ritardando_and_old_notes_their_times(tmp_path, form):
    piece, path = score((0, 120.0), (7 * 96, 60.0)), tmp_path / f"slow.{form}"
    if form == "mid":
        path = in_file(piece, tmp_path)
    else:
        path.write_bytes(to_musicxml(piece)[0])
    (music,) = drawn(path, Continue(PLAIN, Length(bars=2)))
    assert music.new_from_s == pytest.approx(7 * 2 + 4)
    assert music.given_notes.onset_s[-1] == pytest.approx(17)
    assert music.meter.lines_s[-3:] == pytest.approx([18, 20, 22])
    assert tempi_of(music.midi()) == [500_000, 1_000_000, 500_000]
    assert any("slows down" in remark for remark in music.remarks)
    assert [round(tempo.quarters_a_minute) for tempo in music.notation.tempi] == [120, 60, 120]


def test_a_file_with_later_tempi_and_one_that_is_cut_keep_theirs(tmp_path):
    path = in_file(score((0, 120.0), (6 * 96, 60.0), (7 * 96, 90.0)), tmp_path)
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1), part=Region(bars=7)))
    assert [round(tempo.quarters_a_minute) for tempo in music.notation.tempi] == [120, 60]
    assert music.meter.lines_s[-2:] == pytest.approx([6 * 2 + 4, 6 * 2 + 4 + 8 / 3])
    path = in_file(score((0, 120.0), (3 * 96, 60.0)), tmp_path)  # a slow part, cut within it
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1), part=Region(bars=4)))
    assert [round(tempo.quarters_a_minute) for tempo in music.notation.tempi] == [120, 60]
    clock = read_tracks(path.read_bytes(), path, one_tempo=True).tempo_map
    project = Project(path.read_bytes(), clock)
    assert tempi_of(project.continue_at([], float(clock.seconds(np.array(4 * 1920))))) == [500_000, 1_000_000]


def test_a_model_that_counts_beats_goes_on_at_the_pace_before_a_ritardando(tmp_path):
    path = in_file(score((0, 120.0), (7 * 96, 60.0)), tmp_path)
    data = path.read_bytes()
    for one_tempo, tempi in ((True, [500_000, 1_000_000, 500_000]), (False, [500_000, 1_000_000])):
        clock = read_tracks(data, path, one_tempo=one_tempo).tempo_map
        project = Project(data, clock)
        more = project.continue_at([Line("new", Score.empty())], float(clock.seconds(np.array(8 * 1920))))
        found = [
            message.tempo for message in mido.MidiFile(file=BytesIO(more)).tracks[0] if message.type == "set_tempo"
        ]
        assert found == tempi
