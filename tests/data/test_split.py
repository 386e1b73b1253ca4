from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from musictx.data.prepare import assign_splits, content_key, print_summary
from musictx.errors import StoreError
from musictx.tokenizers.chorale import ChoraleTokenizer

KEYS = [f"{i:02d}" for i in range(20)]


def test_fractions_become_counts_and_even_a_small_one_gets_a_piece():
    assert Counter(assign_splits(KEYS, 0.1, 0.2, random_seed=0)) == {"train": 14, "validation": 2, "test": 4}
    assert sorted(assign_splits(["a", "b", "c"], 0.1, 0.1, random_seed=0)) == ["test", "train", "validation"]
    assert sorted(assign_splits(["a", "b"], 0.1, 0.0, random_seed=0)) == ["train", "validation"]


def test_the_seed_decides_the_order_of_files_does_not_and_copies_share_a_split():
    once = assign_splits(KEYS, 0.2, 0.2, random_seed=3)
    assert assign_splits([*KEYS, *KEYS[::-1]], 0.2, 0.2, random_seed=3) == [*once, *once[::-1]]
    assert assign_splits(KEYS, 0.2, 0.2, random_seed=4) != once


def test_too_few_pieces_are_refused():
    with pytest.raises(StoreError, match="^2 different pieces "):
        assign_splits(["a", "b", "a"], 0.1, 0.1, random_seed=0)


def test_a_transposed_copy_has_the_same_content():
    tok = ChoraleTokenizer()
    ids = tok.encode_grid(np.array([[72, 67, 64, 48], [74, -1, 64, 48]], np.int16))
    assert content_key(ids, tok) == content_key(tok.transpose(ids, 3), tok)
    other = tok.encode_grid(np.array([[72, 67, 64, 48], [75, -1, 64, 48]], np.int16))
    assert content_key(ids, tok) != content_key(other, tok)


def test_one_of_a_kind_is_one_in_the_summary(capsys):
    extra = {"files": 1, "kept": 1, "dropped_by_reason": {}, "near_duplicates": [[0, 1]]}
    manifest: Any = SimpleNamespace(
        corpus=SimpleNamespace(name="mine", licence="mine"),
        tokenizer="chorale",
        splits={"train": SimpleNamespace(pieces=["a"], tokens=1200, seconds=60)},
        dropped=[],
        extra=extra | {"near_duplicates_across_splits": 1},
    )
    print_summary(Path("st"), manifest)
    _, split, files, groups = capsys.readouterr().out.splitlines()
    assert split.split() == ["train", "1", "piece", "1,200", "tokens", "0.02", "hours"]
    assert files == "1 file in, 1 kept, 0 left out"
    assert groups == "2 pieces are near-duplicates in 1 group, 1 group spans several official splits"
