import numpy as np

from musictx.data.similar import group, signature
from musictx.notes.score import DRUMS, Score


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


def test_different_pieces_stand_alone():
    assert groups(*(tune(seed) for seed in range(50))) == list(range(50))


def test_groups_hang_together_through_a_chain():
    a = tune(0)
    b = changed(a, 2)
    pitch = b.pitch.copy()
    pitch[101:200:49] = 95
    c = Score(b.onset_s, b.offset_s, pitch, b.velocity)
    assert groups(a, c, b) in ([0, 0, 0], [0, 1, 0])
    assert groups(tune(1), a, b, tune(2), a.transpose(-2)) == [0, 1, 1, 3, 1]


def test_pieces_of_hardly_any_notes_have_signatures_too():
    one, two, other = (Score([0.0] * len(p), [1.0] * len(p), p, [80] * len(p)) for p in ([60], [60, 64], [60, 65]))
    assert groups(Score.empty(), one, two, other) == [0, 0, 2, 3]
    assert signature(one).shape == (64,)


def test_pieces_of_drums_alone_are_told_apart():
    rng = np.random.default_rng(0)
    kits = [
        Score(a.onset_s, a.offset_s, rng.integers(35, 50, 200), a.velocity, 0.5, np.array(DRUMS)) for a in [tune(0)] * 3
    ]
    assert groups(*kits, kits[1]) == [0, 1, 2, 1]
