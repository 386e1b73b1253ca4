from math import inf

import numpy as np
import pytest
from hypothesis import given
from strategies import scores

from musictx.analysis.motif import PEDALLED_S, chord_index, held_in, lines, ngrams, retention
from musictx.errors import UserError
from musictx.music.score import DRUMS, Score

KINDS = {"shorter": 0, "alike": 1, "longer": 2}


def line(*notes):
    """A score of (onset_s, pitch), half a second each."""
    onset, pitch = np.array(notes, dtype=float).reshape(-1, 2).T
    return Score(onset, onset + 0.5, pitch, np.full(len(pitch), 80))


def key(*intervals, rhythm):
    packed = sum((x + 128) << 8 * k for k, x in enumerate(intervals))
    return (packed << 2 * len(rhythm)) | sum(KINDS[r] << 2 * k for k, r in enumerate(rhythm))


def song(seed, seconds=40):
    """A tune that comes back every 10 s, every seed another."""
    rng = np.random.default_rng(seed)
    pitch, step = rng.integers(40, 90, 20), rng.choice([0.25, 0.5, 0.75], 20)
    onset = np.cumsum(step) * 9.0 / step.sum()
    return line(*((t + at, p) for at in range(0, seconds, 10) for t, p in zip(onset, pitch, strict=True)))


def halves(songs, s=10.0):
    return [x.clip(0, s) for x in songs], [x.clip(s, x.duration_s) for x in songs]


def test_a_motif_is_its_intervals_and_how_its_steps_compare():
    keys, onset_s = ngrams(line((0, 60), (1, 62), (3, 64)), inf)
    assert keys.tolist() == [133642, 133642]  # ((130 + 130 * 256) * 4 + 2), in the highest and in the lowest line
    assert key(2, 2, rhythm=["longer"]) == 133642
    assert onset_s.tolist() == [0, 0]
    keys, _ = ngrams(line((0, 60), (1, 67), (2.2, 64), (2.7, 60)), inf)
    assert keys.tolist() == [key(7, -3, rhythm=["alike"]), key(-3, -4, rhythm=["shorter"])] * 2
    assert ngrams(song(0).transpose(5).stretch(1.05), inf)[0].tolist() == ngrams(song(0), inf)[0].tolist()


def test_chords_give_their_highest_note_to_one_line_and_their_lowest_to_the_other():
    chords = line((0, 48), (0.02, 60), (0.04, 72), (1, 50), (1, 71), (2, 55), (2.04, 69))
    assert chord_index(chords.onset_s).tolist() == [0, 0, 0, 1, 1, 2, 2]
    keys, _ = ngrams(chords, inf)
    assert keys.tolist() == [key(-1, -2, rhythm=["alike"]), key(2, 5, rhythm=["alike"])]


TUNE = [(0, 72), (0.5, 74), (1, 76), (2, 74), (2.5, 72), (3, 79)]  # (onset_s, pitch)


def test_a_pedal_has_no_line():
    onset, pitch = np.array(TUNE, dtype=float).T
    pedalled = Score(onset, onset + 3.5, pitch, np.full(len(pitch), 80))  # every note until the pedal is lifted
    assert pitch[lines(pedalled, inf)[0]].tolist() == [72, 74, 76, 79]
    assert pitch[lines(pedalled, PEDALLED_S)[0]].tolist() == pitch.tolist()
    assert (held_in(metrical=True), held_in(metrical=False)) == (inf, 0.25)


@given(scores())
def test_lines_are_those_of_notes_looked_at_one_by_one(score):
    onset = score.onset_s
    chord = chord_index(onset)
    starts = [onset[chord == c].min() for c in sorted(set(chord.tolist()))]
    expected: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
    for c, start in enumerate(starts):
        struck = score.pitch[chord == c].astype(int)
        held = score.pitch[(chord < c) & (np.minimum(score.offset_s, onset + 0.3) > start + 0.05)].astype(int)
        if struck.max() >= held.max(initial=0):
            expected[0].append((start, struck.max()))
        if struck.min() <= held.min(initial=127):
            expected[1].append((start, struck.min()))
    found = [[(starts[chord[n]], int(score.pitch[n])) for n in line] for line in lines(score, 0.3)]
    assert found == list(expected)


def test_drums_are_no_motif():
    tune = line((0, 60), (1, 62), (3, 64))
    drums = Score([0.5, 1.5], [0.6, 1.6], [36, 38], [90, 90], program=DRUMS)
    assert ngrams(Score.merge([tune, drums]), inf)[0].tolist() == ngrams(tune, inf)[0].tolist()


def test_true_continuations_are_1_and_those_of_other_pieces_about_0():
    seeds, true = halves([song(k) for k in range(8)])
    curve = retention(seeds, true, true, 0.0, span_s=10, horizon_s=20)
    assert curve.time_s.tolist() == [5, 15]
    assert curve.pieces.tolist() == [8, 8]
    for row in (curve.mean, curve.low, curve.high):
        assert row == pytest.approx([1, 1])
    assert curve.true == pytest.approx([1, 1])
    swapped = retention(seeds, true[1:] + true[:1], true, 0.0, span_s=10, horizon_s=20)
    assert swapped.mean == pytest.approx(-1 / 7, abs=0.03)  # one shuffle of all, and own pairs left out of chance
    assert swapped.true_shuffled == pytest.approx(curve.true_shuffled)


def test_generated_music_is_scaled_between_chance_and_truth():
    """Two of four continuations are the true ones, two are silent: half is retained."""
    seeds, true = halves([song(k) for k in range(4)])
    curve = retention(seeds, [*true[:2], Score.empty(), Score.empty()], true, 0.0, span_s=10, horizon_s=10)
    assert curve.generated == pytest.approx([0.5])
    assert curve.mean[0] == pytest.approx(0.5, abs=0.02)
    assert curve.low[0] < 0.1
    assert curve.high[0] > 0.9


def test_spans_count_the_pieces_that_last():
    seeds, true = halves([song(0), song(1), song(2), song(3, seconds=20)])
    curve = retention(seeds, true, true, 0.0, span_s=9, horizon_s=40)
    assert curve.pieces.tolist() == [4, 3, 3, 0]
    assert np.isnan(curve.mean).tolist() == [False, False, False, True]
    without = retention([Score.empty(), *seeds[1:]], true, true, 0.0, span_s=9, horizon_s=10)
    assert without.pieces.tolist() == [3]  # a seed without motifs


def test_what_gives_no_scale_is_refused_in_one_line():
    seeds, true = halves([song(k) for k in range(4)])
    for few in (0, 1):
        with pytest.raises(UserError, match=f"^{few} seeds? .* 3 notes"):
            retention(seeds[:few], true[:few], true[:few], inf, 10, 10)
    with pytest.raises(UserError, match=" 4 pieces .* 10 s "):
        retention(seeds, true, [song(k + 100) for k in range(4)], 0.0, span_s=10, horizon_s=20)
    with pytest.raises(UserError, match=" 4 pieces .* 100 s "):  # none lasts that long
        retention(seeds, true, true, 0.0, span_s=100, horizon_s=100)
