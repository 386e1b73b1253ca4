from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.data import similar
from musictx.data.similar import BAND, N_BANDS, N_HASHES, SAME, Links, group, signature
from musictx.music.score import DRUMS, Score


def tune(seed, notes=200):
    rng = np.random.default_rng(seed)
    onset = np.arange(notes) * 0.25
    return Score(onset, onset + 0.2, rng.integers(40, 90, notes), rng.integers(20, 110, notes))


def changed(score, count):
    """The same tune with some notes at other pitches."""
    pitch = score.pitch.copy()
    pitch[:: len(pitch) // count][:count] = 39
    return Score(score.onset_s, score.offset_s, pitch, score.velocity)


def with_drums(score):
    kit = Score(score.onset_s, score.offset_s, [36] * len(score), [100] * len(score), program=np.array(DRUMS))
    return Score.merge([score, kit])


def groups(*scores):
    return group([signature(score) for score in scores])


def test_key_tempo_loudness_and_drums_do_not_make_another_piece():
    a = tune(0)
    louder = Score(a.onset_s, a.offset_s, a.pitch, np.full(len(a), 127))
    assert groups(a, a.transpose(5), a.stretch(1.7), louder, with_drums(a)) == [0, 0, 0, 0, 0]


def test_a_few_other_notes_do_not_make_another_piece_and_many_do():
    assert groups(tune(0), changed(tune(0), 2)) == [0, 0]
    assert groups(tune(0), changed(tune(0), 60)) == [0, 1]


def test_groups_hang_together_through_a_chain():
    a = tune(0)
    b = changed(a, 6)
    pitch = b.pitch.copy()
    pitch[19::32] = 95
    c = Score(b.onset_s, b.offset_s, pitch, b.velocity)
    assert groups(a, b) == groups(b, c) == [0, 0]
    assert groups(a, c) == [0, 1]  # the ends are no near-duplicates of each other
    for order in permutations([a, b, c]):
        assert groups(*order) == [0, 0, 0]
    assert groups(tune(1), a, c, tune(2), b, a.transpose(-2)) == [0, 1, 1, 3, 1, 1]


def accompanied(seed):
    """Ninety seconds of a melody in sixteenths, and on every beat a sixth below it and a triad."""
    rng = np.random.default_rng(seed)
    beat_s = np.arange(180) * 0.5
    chord = rng.integers(40, 47, 180)[:, None] + [0, 4, 7]
    chord[:, 1] -= rng.integers(0, 2, 180)
    melody = 78 + np.clip(np.cumsum(rng.integers(-3, 4, 720)), -12, 14)
    parts = [(beat_s, chord[:, k]) for k in range(3)] + [(np.arange(720) * 0.125, melody), (beat_s, melody[::4] - 8)]
    onset, pitch = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Score(onset, onset + 0.2, pitch, rng.integers(30, 110, len(onset)))


def played_again(score, jitter_s, seed):
    """Every onset a little early or late, 3 to 5 % faster or slower, another loudness."""
    rng = np.random.default_rng(seed)
    onset = np.maximum(score.onset_s + rng.normal(0, jitter_s, len(score)), 0)
    velocity = np.clip(score.velocity.astype(int) + 15, 1, 127)
    played = Score(onset, onset + 0.1, score.pitch, velocity)
    return played.stretch(float(1 + rng.choice([-1, 1]) * rng.uniform(0.03, 0.05)))


@pytest.mark.parametrize("jitter_ms", [8, 40])
def test_human_timing_does_not_make_another_piece(jitter_ms):
    pieces = [accompanied(seed) for seed in range(8)]
    again = [played_again(piece, jitter_ms / 1000, seed) for seed, piece in enumerate(pieces)]
    assert jitter_ms < 20 or (again[0].pitch != pieces[0].pitch).mean() > 0.3  # chords in another order
    assert groups(*pieces, *again) == [*range(8), *range(8)]


def test_pieces_of_hardly_any_notes_have_signatures_too():
    one, two, other = (Score([0.0] * len(p), [1.0] * len(p), p, [80] * len(p)) for p in ([60], [60, 64], [60, 65]))
    assert groups(Score.empty(), one, two, other) == [0, 0, 2, 3]
    assert signature(one).shape == (128,)
    assert groups() == []


def test_one_pitch_again_and_again_is_no_likeness():
    strikes, arpeggio = (
        Score(np.arange(len(p)), np.arange(len(p)) + 1, p, [80] * len(p)) for p in ([53] * 40, [60, 64, 67, 72] * 40)
    )
    assert groups(strikes, arpeggio, strikes.transpose(7)) == [0, 1, 0]


def test_pieces_of_drums_alone_are_distinguished():
    rng = np.random.default_rng(0)
    kits = [
        Score(a.onset_s, a.offset_s, rng.integers(35, 50, 200), a.velocity, 0.5, np.array(DRUMS)) for a in [tune(0)] * 3
    ]
    assert groups(*kits, kits[1]) == [0, 1, 2, 1]


def grouped_one_by_one(signatures):
    """As `group` says it, without its blocks."""
    links = Links()
    for band in range(0, N_BANDS * BAND, BAND):
        firsts: dict[tuple[int, ...], list[int]] = {}  # of a bucket: the pieces that are near no earlier one of them
        for i, numbers in enumerate(signatures):
            others = firsts.setdefault(tuple(numbers[band : band + BAND]), [])
            near = [j for j in others if (signatures[j] == numbers).sum() >= SAME * N_HASHES]
            for j in near:
                links.join(i, j)
            if not near:
                others.append(i)
    return [links.first(i) for i in range(len(signatures))]


@st.composite
def many_signatures(draw):
    """Copies, more or less alike; or one bucket, in which each is near its neighbours alone."""
    rng, count = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(1, 40))
    if draw(st.booleans()):
        made = rng.integers(0, draw(st.integers(2, 4)), (count, N_HASHES))[rng.integers(0, count, count)]
        made[rng.random(made.shape) < draw(st.sampled_from([0, 0.2, 0.5]))] = 9
    else:
        made = rng.integers(0, 2**32, (count, N_HASHES))
        made[:, :BAND] = 0
        for k in range(1, count):
            same = rng.random(N_HASHES // 2) < 0.85
            made[k, N_HASHES // 2 :][same] = made[k - 1, N_HASHES // 2 :][same]
    return made.astype(np.uint32)


@given(many_signatures(), st.sampled_from([1, 50, 2**15]))
def test_many_at_once_are_grouped_as_one_by_one(signatures, pairs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "PAIRS", pairs)
        assert group(signatures) == grouped_one_by_one(signatures)
