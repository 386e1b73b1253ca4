from collections import Counter

import numpy as np
import pytest

from musictx.data.prepare import assign_splits, check_fractions, content_key
from musictx.errors import ConfigError, StoreError
from musictx.tokenizers.chorale import ChoraleTokenizer

KEYS = [f"{i:02d}" for i in range(20)]


def test_fractions_become_counts_and_nothing_is_left_out():
    assert Counter(assign_splits(KEYS, 0.1, 0.2, random_seed=0)) == {"train": 14, "validation": 2, "test": 4}


def test_the_seed_decides_and_the_order_of_files_does_not():
    once = dict(zip(KEYS, assign_splits(KEYS, 0.2, 0.2, random_seed=3), strict=True))
    again = dict(zip(KEYS[::-1], assign_splits(KEYS[::-1], 0.2, 0.2, random_seed=3), strict=True))
    assert once == again
    assert once != dict(zip(KEYS, assign_splits(KEYS, 0.2, 0.2, random_seed=4), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_copies_of_a_piece_share_a_split(seed):
    assigned = assign_splits([*KEYS, *KEYS], 0.3, 0.3, seed)
    assert assigned[:20] == assigned[20:]


def test_even_a_small_fraction_gets_a_piece():
    assert sorted(assign_splits(["a", "b", "c"], 0.1, 0.1, random_seed=0)) == ["test", "train", "validation"]
    assert sorted(assign_splits(["a", "b"], 0.1, 0.0, random_seed=0)) == ["train", "validation"]


def test_too_few_pieces_and_impossible_fractions_are_refused():
    with pytest.raises(StoreError, match="^2 different pieces "):
        assign_splits(["a", "b", "a"], 0.1, 0.1, random_seed=0)
    with pytest.raises(ConfigError) as refused:
        check_fractions(0.5, 0.5, random_seed=0)
    assert (refused.value.field, refused.value.got) == ("validation_fraction", 0.5)


def test_a_transposed_copy_has_the_same_content():
    tok = ChoraleTokenizer()
    ids = tok.encode_grid(np.array([[72, 67, 64, 48], [74, -1, 64, 48]], np.int16))
    assert content_key(ids, tok) == content_key(tok.transpose(ids, 3), tok)
    other = tok.encode_grid(np.array([[72, 67, 64, 48], [75, -1, 64, 48]], np.int16))
    assert content_key(ids, tok) != content_key(other, tok)
