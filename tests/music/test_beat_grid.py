"""The grid of music: found where a person has quantised, and in no free performance."""

import mido
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.music.beat_grid import GRIDS, SWING, bars_of, find_grid, grid_by_name, keeps_beat
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import UNITS, Meter, Score

SLOWING = Meter(0.5, units_s=np.cumsum(np.linspace(0.02, 0.03, 20 * UNITS + 1)) - 0.02)  # 20 quarters, ever longer


def music(onset_s, lasts_s=0.025):
    """Notes that begin at these moments."""
    return Score(onset_s, onset_s + lasts_s, np.full(len(onset_s), 60), np.full(len(onset_s), 80))


def moments(meter, places, quarters=16, chance=0):
    """Half of all places, by chance, in seconds."""
    at = (np.arange(quarters)[:, None] + np.array(places) / UNITS).ravel()
    kept = np.random.default_rng(chance).random(len(at)) < 0.6
    return meter.seconds(at[kept | (at < 2)])


@pytest.mark.parametrize("meter", [Meter(0.5), Meter(0.37), SLOWING], ids=["even", "quick", "slowing"])
@pytest.mark.parametrize("name", GRIDS)
def test_each_grid_is_found(name, meter):
    onset_s = moments(meter, GRIDS[name])
    assert find_grid(music(onset_s), meter) == grid_by_name(name)._replace(ends=False)
    legato = Score(onset_s[:-1], onset_s[1:], np.full(len(onset_s) - 1, 60), np.full(len(onset_s) - 1, 80))
    assert find_grid(legato, meter) == grid_by_name(name)


@pytest.mark.parametrize("late", [13.5, 15, 16, 17])
def test_swung_eighths_are_found_as_late_as_they_are(late):
    grid = find_grid(music(moments(Meter(0.4), (0, late))), Meter(0.4))
    assert grid is not None
    assert grid.name == SWING
    assert grid.places == pytest.approx((0, late), abs=0.01)


@pytest.mark.parametrize("chance", range(20))
def test_a_free_performance_has_none(chance):
    assert find_grid(music(np.random.default_rng(chance).uniform(0, 20, 200)), Meter(0.5)) is None


def test_few_notes_are_no_grid_and_small_errors_are():
    assert find_grid(music(np.array([0.0, 0.5, 1.0])), Meter(0.5)) is None
    played = np.arange(64) * 0.25 + np.random.default_rng(0).normal(0, 0.004, 64).clip(-0.01, 0.01)
    assert find_grid(music(np.abs(played)), Meter(0.5)) == grid_by_name("1/8")._replace(ends=False)
    rubato = np.arange(64) * 0.25 + np.random.default_rng(0).normal(0, 0.03, 64)
    assert find_grid(music(np.abs(rubato)), Meter(0.5)) is None


@pytest.mark.parametrize("chance", range(5))
@pytest.mark.parametrize("name", ["1/8", "1/16", "1/8t", "1/16+1/8t"])
def test_a_grid_is_found_where_most_notes_are_exact_and_the_others_around_it(name, chance):
    rng = np.random.default_rng(chance)
    onset_s = moments(Meter(0.5), GRIDS[name], 32, chance)
    some = rng.random(len(onset_s)) < 0.2
    spacing_s = 0.5 * np.diff([*GRIDS[name], UNITS]).min() / UNITS
    loose = np.abs(onset_s + some * rng.choice([-1, 1], len(onset_s)) * min(0.03, spacing_s / 5))
    assert find_grid(music(loose), Meter(0.5)) == grid_by_name(name)._replace(ends=False)
    every = np.abs(onset_s + rng.choice([-1, 1], len(onset_s)) * min(0.03, spacing_s / 5))
    assert find_grid(music(every), Meter(0.5)) != grid_by_name(name)._replace(ends=False)


@given(st.sampled_from([*GRIDS, SWING]), st.sampled_from([Meter(0.5), Meter(0.43), SLOWING]), st.integers(0, 999))
def test_times_of_the_clock_become_exact_places(name, meter, chance):
    """The clock has steps of 10 ms; a score of rounded places is put on them again, and only what is new."""
    grid = grid_by_name(name)
    lines = grid.lines_s(meter, 15.0)
    assert np.all(np.diff(lines) > 0.02)
    rng = np.random.default_rng(chance)
    on, off = np.sort(lines[rng.choice(len(lines), (2, 12), replace=False)], axis=0)
    on, off = np.sort(on), np.sort(off)
    rounded = Score(np.rint(on * 100) / 100, np.rint(off * 100) / 100, np.full(12, 60), np.full(12, 80))
    put = grid.put_on(rounded, meter, 0.0, 0.006)
    np.testing.assert_allclose(np.sort(put.onset_s), on, atol=1e-9)
    np.testing.assert_allclose(np.sort(put.offset_s), off, atol=1e-9)
    assert grid.away_s(meter, put.onset_s).max() < 1e-9
    late = grid.put_on(rounded, meter, 99.0, 0.006)
    np.testing.assert_array_equal(late.onset_s, rounded.onset_s)


def test_seconds_and_quarters_are_inverse_and_go_on_after_the_file():
    for meter in (Meter(0.5), SLOWING, SLOWING.part(1.3, 7.0)):
        at = np.array([0.4, 3.3, 11.0, 40.0])
        np.testing.assert_allclose(meter.seconds(meter.quarters(at)), at, atol=1e-9)
    assert Meter(0.5).quarters([2.25]) == 4.5


@pytest.mark.parametrize(
    ("signature", "beat_s"), [((4, 4), 0.5), ((2, 2), 1.0), ((6, 8), 0.75), ((3, 8), 0.25), ((7, 8), 0.25)]
)
def test_beats_of_a_signature(signature, beat_s):
    beats = Meter(0.5, signature).beats_s(3.4)
    assert beats[:4] == pytest.approx(beat_s * np.arange(4))
    assert beats[-2] < 3.4 <= beats[-1]


def test_notes_keep_a_beat_without_bar_lines_that_are_known():
    meter = Meter(0.5, lines_s=np.arange(0.0, 12.0, 2.0))
    free = music(np.random.default_rng(0).uniform(0, 8, 60))
    assert not keeps_beat(free, meter)
    assert bars_of(free, meter, 8.0) is None
    quantised = music(np.arange(16) * 0.5)
    assert keeps_beat(quantised, meter)
    bars = bars_of(quantised, meter, 8.0)
    assert bars is not None
    assert bars.numbers.tolist() == [1, 2, 3, 4, 5]
    assert bars_of(quantised, Meter(0.5), 8.0) is None  # without a file


def test_quarters_of_no_length_are_no_beat_and_take_no_memory():
    """A tempo of a microsecond a quarter is legal in a file: a day has 86 thousand million of them."""
    meter = Meter(1e-6)
    assert meter.quarters([86_400.0])[0] == pytest.approx(86_400e6)
    assert find_grid(music(np.arange(16) * 0.5), meter) is None
    assert len(grid_by_name("1/32").lines_s(meter, 86_400.0)) == 8 * 10**6


@pytest.mark.parametrize("ticks", [1, 2, 3, 4, 5, 8, 10, 12, 100, 480])
def test_files_of_few_ticks_have_quarters_too(tmp_path, ticks):
    midi = mido.MidiFile(ticks_per_beat=ticks)
    messages = [mido.Message(kind, note=60, time=ticks * (kind == "note_off")) for kind in ("note_on", "note_off") * 12]
    midi.tracks.append(mido.MidiTrack(messages))
    midi.save(tmp_path / "a.mid")
    tracks = read_tracks(read_bytes(tmp_path / "a.mid"), tmp_path / "a.mid")
    meter = tracks.meter()
    np.testing.assert_allclose(meter.quarters([0.25, 3.0, 3.5, 9.0]), [0.5, 6, 7, 18], atol=1e-9)
    assert find_grid(tracks.merge(), meter) == grid_by_name("1/8")


@pytest.mark.parametrize("first_s", [1e-3, 0.05, 3.0])
def test_the_tempo_of_a_count_in_hides_no_grid(first_s):
    units_s = np.cumsum(np.repeat([0.0, first_s / UNITS, 0.5 / UNITS], [1, UNITS, UNITS * 12]))
    meter = Meter(first_s, units_s=units_s)
    assert find_grid(music(meter.seconds(1 + np.arange(40) / 4)), meter) == grid_by_name("1/16")._replace(ends=False)


def test_beats_and_places_follow_the_map_beyond_the_notes(tmp_path):
    """6/8 becomes 4/4, and the tempo doubles, after the last note."""
    midi, track = mido.MidiFile(ticks_per_beat=480), mido.MidiTrack()
    track.append(mido.MetaMessage("time_signature", numerator=6, denominator=8))
    track += [mido.Message("note_on", note=60), mido.Message("note_off", note=60, time=480)]
    track.append(mido.MetaMessage("time_signature", numerator=4, denominator=4, time=960))
    track.append(mido.MetaMessage("set_tempo", tempo=250_000, time=1920))
    midi.tracks.append(track)
    midi.save(tmp_path / "it.mid")
    meter = read_tracks((tmp_path / "it.mid").read_bytes(), "").meter()
    np.testing.assert_allclose(meter.beats_s(4.3), [0, 0.75, 1.5, 2, 2.5, 3, 3.5, 3.75, 4, 4.25, 4.5])
    np.testing.assert_allclose(grid_by_name("1/8").lines_s(meter, 3.9)[-6:-2], [3.5, 3.625, 3.75, 3.875])
    np.testing.assert_allclose(meter.part(1.5, 2.0).beats_s(1.0), [0, 0.5, 1.0])
