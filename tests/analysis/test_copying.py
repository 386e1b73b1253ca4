import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import scores

from musictx.analysis.repeats import CorpusIndex, suffix_order
from musictx.errors import UserError
from musictx.music.score import DRUMS, Score


def tune(*pitches):
    """One note a second."""
    onset = np.arange(len(pitches))
    return Score(onset, onset + 0.9, np.array(pitches), np.full(len(pitches), 80))


def noise(seed, notes=60):
    return tune(*np.random.default_rng(seed).integers(30, 90, notes))


def longest_by_hand(score, corpus):
    """In notes, the slow way; one note a second only."""

    def intervals(x):
        return "".join(chr(1000 + int(d)) for d in np.diff(x.pitch.astype(int)))

    mine, theirs = intervals(score), [intervals(x) for x in corpus]
    runs = [mine[i:j] for i in range(len(mine)) for j in range(i + 1, len(mine) + 1)]
    longest = max((len(r) for r in runs if any(r in x for x in theirs)), default=0)
    return longest + 1 if longest else 0


def test_the_notes_of_a_chord_count_from_the_lowest_up():
    """A rolled chord is the same chord."""
    together = Score([0, 0, 0, 1], [1, 1, 1, 2], [60, 64, 67, 72], [80] * 4)
    rolled = Score([0, 0.02, 0.04, 1.2], [1, 1, 1, 2], [69, 62, 66, 74], [80] * 4)
    assert CorpusIndex([together]).longest_copy(rolled).notes == 4


def test_drums_are_no_melody():
    drums = Score(np.arange(9) / 2, np.arange(9) / 2 + 0.1, np.full(9, 36), np.full(9, 90), program=DRUMS)
    index = CorpusIndex([Score.merge([noise(0), drums]), noise(1)])
    assert index.longest_copy(noise(0)).notes == 60
    assert index.longest_copy(drums).notes == 0


@pytest.mark.parametrize("corpus", [[], [Score.empty()], [tune(60), tune(62)]])
def test_a_corpus_without_music_is_refused(corpus):
    with pytest.raises(UserError, match=f"{len(corpus)} training piece"):
        CorpusIndex(corpus)


@given(st.lists(st.lists(st.integers(60, 62), max_size=24), min_size=1, max_size=4), st.data())
def test_it_agrees_with_trying_every_run(corpus, data):
    """Three pitches only, so that runs are long and tie often."""
    corpus = [tune(60, 60), *(tune(*x) for x in corpus)]
    score = tune(*data.draw(st.lists(st.integers(60, 62), max_size=40)))
    copy = CorpusIndex(corpus).longest_copy(score)
    assert copy.notes == longest_by_hand(score, corpus)
    if copy.notes:
        mine, there = int(copy.from_s), int(copy.piece_s)
        run = np.diff(score.pitch[mine : mine + copy.notes].astype(int))
        assert run.tolist() == np.diff(corpus[copy.piece].pitch[there : there + copy.notes].astype(int)).tolist()


@given(scores(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, 4.0]))
def test_a_copy_is_found_whole_in_any_key(score, semitones, factor):
    """And at any tempo, as long as the same notes make a chord."""
    low, high = int(score.pitch.min(initial=64)), int(score.pitch.max(initial=64))
    semitones = min(max(semitones, -low), 127 - high)
    moved = score.transpose(semitones)
    index = CorpusIndex([noise(0), score, noise(1)])
    assert index.longest_copy(moved).notes == (len(score) if len(score) > 1 else 0)
    slow = noise(1).stretch(factor)
    copy = index.longest_copy(slow)
    assert (copy.notes, copy.piece, copy.seconds) == (60, 2, 59 * factor)


def test_long_repetitions_are_sorted_too():
    text = bytes([1] * 300 + [2] + [1] * 300)
    assert suffix_order(np.frombuffer(text, np.uint8)).tolist() == sorted(range(len(text)), key=lambda i: text[i:])
    index = CorpusIndex([tune(*[60] * 500), tune(*[60, 62] * 200)])
    assert index.longest_copy(tune(*[70] * 700)).notes == 500
    assert index.longest_copy(tune(*[70, 72] * 100))[:4] == (200, 199.0, 0.0, 1)


def test_the_longest_runs_come_first_and_share_no_interval():
    theirs = [noise(0), noise(1)]
    here, there = theirs[0].select(slice(10, 30)), theirs[1].select(slice(40, 52))
    pitch = np.concatenate([[90], here.pitch - 1, [30, 91], there.pitch])
    copies = CorpusIndex(theirs).copies(tune(*pitch), 3)
    assert [(c.notes, c.from_s, c.piece, c.piece_s) for c in copies[:2]] == [(20, 1, 0, 10), (12, 23, 1, 40)]
    assert copies[2].notes < 6
    taken = [range(int(c.from_s), int(c.from_s) + c.notes - 1) for c in copies]
    assert len({*taken[0], *taken[1], *taken[2]}) == sum(map(len, taken))


def test_a_run_that_reaches_into_a_longer_one_ends_before_it():
    a, b = noise(2, 20), noise(3, 20)
    both = np.concatenate([a.pitch[10:], b.pitch[1:] + int(a.pitch[-1]) - int(b.pitch[0])])  # b, transposed
    first, second = CorpusIndex([a, b]).copies(tune(*both), 2)
    assert (first.notes, first.from_s, first.piece) == (20, 9, 1)
    assert (second.notes, second.from_s, second.piece) == (10, 0, 0)
