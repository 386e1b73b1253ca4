"""Every token is a target once, whatever pieces are cut into."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import split_of

from musictx.data.scoring import Segment, batch_segments, carried_batches, scoring_batch, scoring_segments
from musictx.data.store import Split
from musictx.errors import ConfigError, StoreError
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer

PERFORMANCE, CHORALE = build_tokenizer("performance"), ChoraleTokenizer()


def scale(n):
    """A piece that counts: NOTE_ON 0, 1, 2 … so that every segment says where it was cut."""
    return np.arange(n) % 128


def test_scoring_inputs_of_a_model_that_counts_places_are_whole_cycles():
    split = split_of(scale(100))
    with pytest.raises(ConfigError, match="^segment=40: "):
        scoring_segments(split, CHORALE, 40, cycle=16)
    with pytest.raises(ConfigError, match="^stride=8: .*give a multiple of 16"):
        scoring_segments(split, CHORALE, 32, 16, stride=8)
    later = scoring_segments(split, CHORALE, 32, cycle=16)[1]
    assert later.ids[:3].tolist() == [31, 32, 33]  # as in training: the token before a cycle in BOS's place


lengths = st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any)
windows = st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@given(lengths, st.none() | st.integers(1, 50))
def test_scoring_makes_every_event_a_target_exactly_once(lengths, segment):
    split = split_of(*map(scale, lengths))
    segments = scoring_segments(split, PERFORMANCE, segment)
    np.testing.assert_array_equal(np.concatenate([s.ids[1:] for s in segments]), split.ids)
    np.testing.assert_array_equal(np.repeat(range(len(split)), lengths), [s.piece for s in segments for _ in s.ids[1:]])
    assert all(s.context == 0 for s in segments)
    if segment:
        assert max(len(s.ids) - 1 for s in segments) <= segment


@given(lengths, windows)
def test_with_a_stride_every_event_is_a_target_once_after_enough_context(lengths, window):
    (segment, stride), split = window, split_of(*map(scale, lengths))
    segments = scoring_segments(split, PERFORMANCE, segment, stride=stride)
    np.testing.assert_array_equal(np.concatenate([s.ids[1 + s.context :] for s in segments]), split.ids)
    for s in segments:
        assert 1 <= len(s.ids) - 1 - s.context <= (stride if s.context else segment)
        assert len(s.ids) - 1 <= segment
        if s.ids[0] != PERFORMANCE.vocab.bos:
            assert s.context == segment - stride
    _, targets = scoring_batch(segments, range(len(segments)), NextToken(PERFORMANCE))
    np.testing.assert_array_equal(targets[targets != PERFORMANCE.vocab.pad], split.ids)  # the others are PAD


def test_windows_by_hand():
    ids = scoring_segments(split_of(scale(7)), PERFORMANCE, 4, stride=2)
    bos = PERFORMANCE.vocab.bos
    assert [(s.ids.tolist(), s.context) for s in ids] == [
        ([bos, 0, 1, 2, 3], 0),
        ([1, 2, 3, 4, 5], 2),  # 4 and 5 after 1 2 3 and 1 2 3 4
        ([3, 4, 5, 6], 2),
    ]


@given(lengths, windows)
def test_a_stride_as_long_as_the_segment_is_blocks(lengths, window):
    split = split_of(*map(scale, lengths))
    blocks, strides = (scoring_segments(split, PERFORMANCE, window[0], stride=s) for s in (None, window[0]))
    assert [(s.piece, s.ids.tolist(), s.context) for s in blocks] == [
        (s.piece, s.ids.tolist(), s.context) for s in strides
    ]


@given(lengths, st.integers(1, 12), st.integers(1, 60))
def test_carried_rows_are_pieces_in_their_order(lengths, segment, budget):
    split = split_of(*map(scale, lengths))
    segments = scoring_segments(split, PERFORMANCE, segment)
    heard: dict[int, list[int]] = {}
    for steps in carried_batches(segments, budget):
        rows = [segments[n].piece for n in steps[0]]
        for numbers in steps:
            assert len(numbers) == 1 or len(numbers) * max(len(segments[n].ids) - 1 for n in numbers) <= budget
            assert [segments[n].piece for n in numbers] == rows[: len(numbers)]  # a row stays a piece's
            for n in numbers:
                heard.setdefault(segments[n].piece, []).extend(segments[n].ids[1:])
    assert heard == {k: piece.tolist() for k, piece in enumerate(split) if len(piece)}


def test_what_cannot_be_scored_is_refused_and_batches_keep_to_the_budget():
    for segment in (0, -3):
        with pytest.raises(ConfigError, match=f"^segment={segment}: give 1 "):
            scoring_segments(split_of(scale(9)), PERFORMANCE, segment)
    for stride in (0, -1, 5):
        with pytest.raises(ConfigError, match=f"^stride={stride}: give 1 to segment=4"):
            scoring_segments(split_of(scale(9)), PERFORMANCE, 4, stride=stride)
    with pytest.raises(ConfigError, match="^stride=2: segment=null scores whole pieces: give segment="):
        scoring_segments(split_of(scale(9)), PERFORMANCE, None, stride=2)
    empty = Split(np.zeros(0, np.uint16), np.zeros(1, np.int64), [])
    for split in (empty, split_of(scale(0))):
        with pytest.raises(StoreError, match="no tokens"):
            scoring_segments(split, PERFORMANCE, None)
    with pytest.raises(ConfigError, match="^score_batch_tokens=0: "):
        batch_segments([3], batch_tokens=0)
    with pytest.raises(ConfigError, match="^score_batch_tokens=0: "):
        carried_batches([Segment(0, np.zeros(3, np.uint16))], batch_tokens=0)
    assert batch_segments([5, 3, 9, 3, 30], batch_tokens=12) == [[1, 3], [0], [2], [4]]
