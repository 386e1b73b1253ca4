import numpy as np
import pytest

from musictx.errors import ConfigError, TokenError
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.vocab import EventRange, Vocab

PERFORMANCE, CHORALE = PerformanceTokenizer.vocab, ChoraleTokenizer.vocab


def test_performance_table_is_388_events_and_three_specials():
    assert PERFORMANCE.n_events == 388
    assert PERFORMANCE.size == 391
    assert PERFORMANCE.offsets == {
        "NOTE_ON": 0,
        "NOTE_OFF": 128,
        "TIME_SHIFT": 256,
        "VELOCITY": 356,
        "PAD": 388,
        "BOS": 389,
        "EOS": 390,
    }


def test_chorale_table_is_88_pitches_a_rest_and_three_specials():
    assert (CHORALE.n_events, CHORALE.size) == (89, 92)
    assert (CHORALE.pad, CHORALE.bos, CHORALE.eos) == (89, 90, 91)


@pytest.mark.parametrize("vocab", [PERFORMANCE, CHORALE])
def test_describe_and_id_are_inverse_for_every_token(vocab):
    for i in range(vocab.size):
        kind, _, value = vocab.describe(i).partition(" ")
        assert vocab.id(kind, int(value or 0)) == i


def test_fingerprints_are_fixed_since_stores_and_bundles_carry_them():
    assert PERFORMANCE.fingerprint == "c773e1214be97db0"
    assert CHORALE.fingerprint == "4df3aa7daff334a8"


def test_the_fingerprint_moves_with_rules_and_with_table():
    rows = (EventRange("A", 0, 3),)
    prints = {
        Vocab("x/1", rows).fingerprint,
        Vocab("x/2", rows).fingerprint,
        Vocab("x/1", (EventRange("A", 0, 4),)).fingerprint,
    }
    assert len(prints) == 3


def test_mask_marks_the_ids_of_a_type():
    assert np.flatnonzero(PERFORMANCE.mask("VELOCITY", "EOS")).tolist() == [*range(356, 388), 390]


def test_values_and_ids_outside_the_table_are_refused():
    with pytest.raises(TokenError, match="TIME_SHIFT 101 is not in the vocabulary: TIME_SHIFT goes from 1 to 100"):
        PERFORMANCE.id("TIME_SHIFT", 101)
    with pytest.raises(TokenError, match="id 391 is not in the vocabulary: ids go from 0 to 390"):
        PERFORMANCE.check(np.array([5, 391]))


def test_the_printed_table_names_every_row():
    assert "256 …  355  TIME_SHIFT 1 … 100" in str(PERFORMANCE)


def test_an_unknown_tokenizer_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="tokenizer 'remi' does not exist: choose one of performance, chorale"):
        build_tokenizer("remi")
