"""A last bar that completes the upbeat, as notation programs write it, is not the meter of what comes next."""

import io
from itertools import pairwise
from typing import Any

import mido
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.generate.seeds import read_seed
from musictx.music.read import read_tracks
from musictx.music.upbeat import completes_upbeat, without_last_signature
from musictx.tokenizers import build_tokenizer

HYMN = "X:1\nM:3/4\nL:1/4\nV:S\nV:A\nV:T\nV:B\nK:F\n" + "".join(
    f"[V:{voice}] {key} | {key}2 {key} | {key}2 {key} | {key}2 |\n" for voice, key in zip("SATB", "fcAF", strict=True)
)


def file_of(bars, more=()):
    """A MIDI file with a note of a quarter on each beat of quarters; bars that differ from the one before are signed,
    and `more` are signatures by their quarters."""
    track: list[tuple[float, int, Any]] = []
    at = 0
    for before, bar in pairwise([0, *bars]):
        if bar != before:
            track.append((at, 0, mido.MetaMessage("time_signature", numerator=bar, denominator=4)))
        for beat in range(at, at + bar):
            track.append((beat, 1, mido.Message("note_on", note=60)))
            track.append((beat + 0.5, 0, mido.Message("note_off", note=60)))
        at += bar
    track += [(tick, 0, mido.MetaMessage("time_signature", numerator=n, denominator=4)) for tick, n in more]
    file, before = mido.MidiFile(), 0
    file.tracks.append(mido.MidiTrack())
    for quarter, _, message in sorted(track, key=lambda each: each[:2]):
        file.tracks[0].append(message.copy(time=round((quarter - before) * 480)))
        before = quarter
    out = io.BytesIO()
    file.save(file=out)
    return out.getvalue()


def read(data):
    return read_tracks(data, "a file")


def signatures(data):
    return [(tick // 480, beats) for tick, beats, _ in read(data).signatures.tolist()]


@given(st.integers(2, 7), st.data(), st.integers(1, 5))
def test_music_that_goes_on_has_the_meter_of_the_bars(meter, data, n_bars):
    upbeat = data.draw(st.integers(1, meter - 1))
    bars = [upbeat, *[meter] * n_bars, meter - upbeat]
    before = file_of(bars)
    assert completes_upbeat(read(before))
    after = without_last_signature(before)
    assert signatures(after) == [(0, upbeat), (upbeat, meter)]
    assert (read(after).merge().onset_s == read(before).merge().onset_s).all()
    assert not completes_upbeat(read(after))


@pytest.mark.parametrize(
    "bars",
    [
        [1, 3, 3, 3],
        [3, 3, 2],  # no upbeat
        [2, 2, 4, 4, 2],
        [1, 1, 1, 3, 2],
        [1, 3, 2, 2],  # two bars of the new meter
        [2, 4, 4, 3],  # too long
        [4, 4],
        [1, 3],
    ],
)
def test_other_last_bars_keep_their_meter(bars):
    assert not completes_upbeat(read(file_of(bars)))
    assert not completes_upbeat(read(file_of([1, 3, 3], more=[(7, 2)])))  # behind the last note


def test_a_seed_fills_its_last_bar_where_it_goes_on_alone(tmp_path):
    (tmp_path / "hymn.abc").write_text(HYMN)
    (tmp_path / "hymn.mid").write_bytes(file_of([1, 3, 3, 2]))
    for name in "hymn.abc", "hymn.mid":
        goes_on, as_it_is = (read_seed(tmp_path / name, build_tokenizer("chorale"), goes_on=on) for on in (True, False))
        quarters = [np.diff(each.meter.bars_s(9.5)) / each.score.quarter_s for each in (goes_on, as_it_is)]
        assert [each.round(6).tolist() for each in quarters] == [[1, 3, 3, 3, 3, 3, 3], [1, 3, 3, 2, 3, 3, 3, 3]]
        assert goes_on.project is not None
        assert signatures(goes_on.project.data) == [(0, 1), (1, 3)]
