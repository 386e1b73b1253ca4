from dataclasses import replace

import numpy as np
import pytest

from musictx.config.prepare import FilterConfig, SelectConfig
from musictx.data.recipe import Recipe, choose, encode_midi, fault
from musictx.music.score import DRUMS, Score
from musictx.music.ticks import RawMidi, TempoMap, Track, Tracks
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer


def notes(pitches, program=0, every_s=0.5):
    onset = np.arange(len(pitches)) * every_s
    return Score(onset, onset + every_s, pitches, [80] * len(pitches), 0.5, np.array(program))


BAND = Tracks(
    [
        Track("MELODY", notes([72, 74, 76], 73)),
        Track("PIANO ", notes([48, 52], 0)),
        Track("", notes([36, 38, 36, 38], DRUMS)),
        Track("empty", Score.empty()),
    ],
    TempoMap(RawMidi([], 480, np.zeros(0), np.zeros(0))),
)


@pytest.mark.parametrize(
    ("settings", "pitches"),
    [
        ({}, {48, 52, 72, 74, 76}),
        ({"drums": True}, {36, 38, 48, 52, 72, 74, 76}),
        ({"tracks": "piano"}, {48, 52}),
        ({"tracks": "longest"}, {72, 74, 76}),
        ({"programs": [73], "drums": True}, {36, 38, 72, 74, 76}),
        ({"names": ["PIANO", "MELODY"]}, {48, 52, 72, 74, 76}),
        ({"names": ["BASS"]}, set()),
    ],
)
def test_tracks_are_chosen(settings, pitches):
    assert set(choose(BAND, SelectConfig(**settings)).pitch.tolist()) == pitches


SCALE = notes([60, 62, 64, 65, 67, 69, 71, 72])  # eight notes, two a second, four seconds
APART = Score([0, 1, 12], [4, 2, 13], [40, 60, 62], [80] * 3)


@pytest.mark.parametrize(
    ("score", "settings", "reason"),
    [
        (SCALE, {"min_notes": 9}, "too few notes: 8, the limit is 9"),
        (SCALE, {"min_seconds": 4.5}, "too short: 4 s, the limit is 4.5"),
        (SCALE, {"max_seconds": 3}, "too long: 4 s, the limit is 3"),
        (SCALE, {"min_notes_per_second": 3}, "too sparse: 2 notes a second, the limit is 3"),
        (SCALE, {"max_notes_per_second": 1}, "too dense: 2 notes a second, the limit is 1"),
        (SCALE, {"lowest_pitch": 61}, "too low: 60, the limit is 61"),
        (SCALE, {"highest_pitch": 71}, "too high: 72, the limit is 71"),
        (SCALE, {"min_pitch_span": 13}, "too narrow: 12 semitones, the limit is 13"),
        (APART, {"max_silence_seconds": 5}, "too silent for long: 8 s, the limit is 5"),
        (notes([60, 60, 60, 62]), {"max_repeats": 2}, "too stuck: 3 strikes of one pitch, the limit is 2"),
    ],
)
def test_each_filter_says_what_is_wrong_and_passes_what_is_at_its_limit(score, settings, reason):
    assert fault(score, FilterConfig()) is None
    assert fault(score, FilterConfig(**settings)) == reason
    ((name, _),) = settings.items()
    value = float(reason.split(": ")[1].split()[0].rstrip(","))
    assert fault(score, FilterConfig(**settings | {name: value})) is None


def test_one_file_from_bytes_to_ids(tmp_path):
    write_midi(SCALE, tmp_path / "a.mid")
    data = (tmp_path / "a.mid").read_bytes()
    recipe = Recipe(build_tokenizer("performance"), SelectConfig(), FilterConfig())
    filtered = replace(recipe, filters=FilterConfig(min_notes=9))
    encoded = encode_midi(data, "", recipe)
    assert not isinstance(encoded, str), encoded
    ids, seconds, mark = encoded
    assert (len(ids), seconds, len(mark)) == (2 * (1 + 8 * 2 + 8), 4.0, 512)  # velocity, on and off, shifts
    assert encode_midi(data, "", filtered) == "too few notes: 8, the limit is 9"
    assert encode_midi(data, "", replace(recipe, select=SelectConfig(programs=[5]))) == "no notes in the chosen tracks"
    assert str(encode_midi(b"Dear diary", "", recipe)).startswith("not a MIDI file: ")
    assert str(recipe) != str(filtered)


def test_a_file_that_claims_days_of_music_is_left_out_with_the_reason():
    long = b"\x00\x90\x3c\x50" + b"\xff\xff\xff\x7f\x80\x3c\x00" + b"\x00\xff\x2f\x00"  # 2^28 - 1 ticks
    data = b"MThd\x00\x00\x00\x06\x00\x00\x00\x01\x00\x60MTrk" + len(long).to_bytes(4) + long
    got = encode_midi(data, "", Recipe(build_tokenizer("performance"), SelectConfig(), FilterConfig()))
    assert got == "cannot be written in performance tokens: 388 hours long, at most 24 can be written"
