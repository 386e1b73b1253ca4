from math import inf

import numpy as np

from musictx.generate.draw import Continuation
from musictx.generate.primer import Primer
from musictx.generate.ranking import best_first, by_likelihood, by_primer, rankings
from musictx.generate.requests import RANKS
from musictx.music.score import Meter, Score


def tune(pitches, from_s=0.0):
    onset_s = from_s + 0.5 * np.arange(len(pitches))
    return Score(onset_s, onset_s + 0.4, pitches, [80] * len(pitches))


SEED = Primer(tune([60, 62, 65, 64, 67, 60]), 3.0, Meter())
ECHO = Continuation(Score.merge([SEED.score, tune([67, 69, 72, 71, 74, 67], 3.0)]), 3.0, mean_log_p=-2.0)
OTHER = Continuation(Score.merge([SEED.score, tune([60, 60, 60, 60, 72, 48], 3.0)]), 3.0, mean_log_p=-1.0)


def test_a_transposed_echo_of_the_seed_has_all_its_motifs_and_other_music_none():
    assert by_primer(inf)(SEED, ECHO) == 1.0
    assert by_primer(inf)(SEED, OTHER) == 0.0
    assert by_primer(inf)(None, ECHO) == 0.0
    assert by_primer(inf)(Primer(tune([60]), 0.5, Meter()), ECHO) == 0.0


def test_each_ranking_puts_its_best_first():
    first = [best_first(SEED, [ECHO, OTHER], rankings(rank, inf))[0] for rank in RANKS]
    assert first == [OTHER, ECHO, ECHO]
    assert best_first(SEED, [OTHER, ECHO], [by_primer(inf)]) == [ECHO, OTHER]
    assert best_first(SEED, [ECHO, OTHER], [by_likelihood]) == [OTHER, ECHO]
    assert best_first(SEED, [ECHO, OTHER], [by_likelihood, by_primer(inf)]) == [ECHO, OTHER]  # a tie: the earlier draw
