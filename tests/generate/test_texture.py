"""Which four notes at once are a choir: textures made here, and real chorales."""

import json

import numpy as np
import pytest
from strategies import SHARED_DATA

from musictx.generate.choose_bundle import choose_bundle, name_bundle
from musictx.generate.requests import Continue
from musictx.generate.texture import not_a_choir, not_as_voices
from musictx.model.packaged import CHORALE, SCORE, seed_path
from musictx.music.grid import grid_to_score, lines_of_grid
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.read import read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi

Strikes = list[tuple[int, float, float]]  # pitch, onset and length in quarters
TRIADS = ((60, 64, 67), (55, 59, 62), (57, 60, 64), (53, 57, 60))  # in one position
FAR = ((60, 64, 67), (53, 57, 60), (60, 64, 67), (55, 59, 62))
LED = ((60, 64, 67), (59, 62, 67), (60, 64, 69), (60, 65, 69))
BARS = 8


def chords(of: tuple[tuple[int, ...], ...], beats: tuple[int, ...], length: float, bar: int = 4) -> Strikes:
    return [(p, bar * n + beat, length) for n in range(BARS) for beat in beats for p in of[n % 4]]


def tune(bar: int = 4) -> Strikes:
    return [(72 + (0, 4, 7, 5, 9)[k % 5], k, 1) for k in range(BARS * bar)]


def bass(beats: tuple[int, ...], length: float, bar: int = 4) -> Strikes:
    return [(TRIADS[n % 4][0] - 12, bar * n + beat, length) for n in range(BARS) for beat in beats]


def score(strikes: Strikes, quarter_s: float = 0.5) -> Score:
    pitch, onset, length = np.array(sorted(strikes, key=lambda each: each[1])).T
    on_s, off_s = onset * quarter_s, (onset + length) * quarter_s
    return Score(on_s, off_s, pitch.astype(int), np.full(len(pitch), 80), quarter_s)


ALL, HALVES, AFTER = (0, 1, 2, 3), (0, 2), (1, 2)
WALTZ = [*bass((0,), 1, 3), *chords(TRIADS, AFTER, 1, 3)]
HELD_WALTZ = [*bass((0,), 3, 3), *chords(tuple(each[1:] for each in LED), AFTER, 1, 3)]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([[*bass(ALL, 1), *chords(TRIADS, ALL, 1)]], "chords are struck again"),  # a strummed guitar
        ([[*bass(ALL, 0.5), *chords(LED, ALL, 0.5)]], "chords are struck again"),
        ([tune(), chords(LED, ALL, 1)], "chords are struck again"),
        ([tune(3), WALTZ], "lowest notes leap"),
        ([tune(3) + WALTZ], "lowest notes leap"),  # on one track
        ([tune(3), HELD_WALTZ], "at most two voices sound in 33%"),
        ([tune(), chords(LED, (0,), 4)], "highest note begins alone"),  # a lead over pads
        ([tune() + chords(LED, HALVES, 2)], "highest note begins alone"),
        ([[*bass((0,), 4), *chords(FAR, (0,), 4)]], "voices' moves are leaps"),  # blocks in one position
        ([tune(), chords(tuple(each[1:] for each in LED), (0,), 4), bass(ALL, 1)], "some play chords"),
    ],
)
def test_chords_and_a_tune_over_them_are_no_choir(parts, reason):
    each = [score(part) for part in parts]
    music = Score.merge(each, 0.5)
    assert reason in not_a_choir(music, each)
    assert reason in choose_bundle(music, "it", each).why


def test_a_waltz_for_piano_is_continued_by_the_model_of_scores(tmp_path):
    hands = [
        Part("Piano", 0, tuple(Note(int(o * 24), int(n * 24), p) for p, o, n in hand)) for hand in (tune(3), WALTZ)
    ]
    path = tmp_path / "waltz.mid"
    path.write_bytes(to_midi(Notation(tuple(hands), tuple(Bar(72 * n, 3, 4) for n in range(BARS)), 72 * BARS)))
    assert name_bundle(None, [path], request=Continue()).bundle == SCORE


def test_a_chorale_stays_one_however_its_voices_are_divided(tmp_path):
    table = SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json"
    if table.is_file():
        grids = [np.array(each, np.int16) for each in json.loads(table.read_text())["valid"][::4]]
        for grid in grids:
            lines = lines_of_grid(grid)
            pairs = [Score.merge(pair, 0.6) for pair in (lines[:2], lines[2:])]
            staves = [lines[0], Score.merge(lines[1:3], 0.6), lines[3]]
            for parts in (lines, pairs, [grid_to_score(grid)], [Score.merge(lines[:3], 0.6), lines[3]], staves):
                assert choose_bundle(grid_to_score(grid), "it", parts).bundle == CHORALE
            for bars in (2, 4, 8):  # a seed is short
                assert not not_as_voices(grid_to_score(grid[: 16 * bars]))
    path = seed_path("chorale")
    assert name_bundle(None, [path], request=Continue()).bundle == CHORALE
    write_midi(read_tracks(path.read_bytes(), path).merge(), one := tmp_path / "one.mid")
    assert name_bundle(None, [one], request=Continue()).bundle == CHORALE
