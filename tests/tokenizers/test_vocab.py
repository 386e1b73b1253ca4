import numpy as np
import pytest

from musictx.errors import TokenError, UserError
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.vocab import EventRange, Vocab

PERFORMANCE, CHORALE = PerformanceTokenizer.vocab, ChoraleTokenizer.vocab


def test_both_tables():
    assert (PERFORMANCE.n_events, PERFORMANCE.size) == (388, 391)
    assert list(PERFORMANCE.offsets) == ["NOTE_ON", "NOTE_OFF", "TIME_SHIFT", "VELOCITY", "PAD", "BOS", "EOS"]
    assert list(PERFORMANCE.offsets.values()) == [0, 128, 256, 356, 388, 389, 390]
    assert np.flatnonzero(PERFORMANCE.mask("VELOCITY", "EOS")).tolist() == [*range(356, 388), 390]
    assert (CHORALE.n_events, CHORALE.size) == (89, 92)
    assert (CHORALE.pad, CHORALE.bos, CHORALE.eos) == (89, 90, 91)


@pytest.mark.parametrize("vocab", [PERFORMANCE, CHORALE])
def test_describe_and_id_are_inverse_for_every_token(vocab):
    for i in range(vocab.size):
        kind, _, value = vocab.describe(i).partition(" ")
        assert vocab.id(kind, int(value or 0)) == i


def test_fingerprints_are_fixed_since_stores_and_bundles_carry_them_and_move_with_rules_and_table():
    assert PERFORMANCE.fingerprint == "c773e1214be97db0"
    assert CHORALE.fingerprint == "4df3aa7daff334a8"
    tables = (("x/1", 3), ("x/2", 3), ("x/1", 4))
    assert len({Vocab(rules, (EventRange("A", 0, hi),)).fingerprint for rules, hi in tables}) == 3


ADDED = (EventRange("TO", 0, 0), EventRange("GAP", 1, 3))


@pytest.mark.parametrize("name", ["performance", "chorale"])
def test_added_ids_come_after_all_others_and_are_no_music(name):
    plain, grown = build_tokenizer(name), build_tokenizer(name, added=[["TO", 0, 0], ["GAP", 1, 3]])
    old, new = plain.vocab, grown.vocab
    assert new.table == (*old.table, *ADDED)
    assert new.size == old.size + 4
    assert (new.n_events, new.pad, new.bos, new.eos) == (old.n_events, old.pad, old.bos, old.eos)
    assert new.id("GAP", 3) == new.size - 1
    assert new.fingerprint != old.fingerprint == new.without_added.fingerprint
    assert build_tokenizer(name).vocab == old  # the class is as it was
    assert grown.pace is not None
    assert len(grown.pace) == new.size
    assert not grown.pace[old.size :].any()
    ids = np.array([5, new.id("TO"), 6, new.id("GAP", 1), *[7] * 5, 8, new.eos])
    assert grown.decode(ids) == plain.decode(ids[ids < old.size])
    assert grown.pitch.tolist() == [*plain.pitch.tolist(), *[-1] * 4]
    legal = build_grammar(grown, Rules(), [np.array([], np.uint16)], [0.5]).legal()
    assert legal.shape == (1, new.size)
    assert not legal[:, new.n_events :].any()


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([["PAD", 0, 0]], "has PAD "),
        ([["TO", 0, 0], ["TO", 0, 0]], "has TO "),
        ([["TO", 0, -1]], ".* TO 0 … -1"),
        ([["TO", 0, 10**12]], "has [0-9,]+ ids: .*65,535"),
    ],
)
def test_ids_that_cannot_be_distinguished(rows, text):
    with pytest.raises(UserError, match=f"^vocabulary performance/1 {text}"):
        build_tokenizer("performance", added=rows)
    with pytest.raises(UserError, match=f"^vocabulary mine/1 {text}"):
        Vocab("mine/1 of a kind", tuple(EventRange(*row) for row in rows))


def test_a_beginning_of_a_vocabulary_keeps_its_ids_by_name():
    old = Vocab("x/1", (EventRange("A", 0, 2),), (EventRange("TO", 0, 0),))
    longer = Vocab("x/1", (EventRange("A", 0, 2), EventRange("B", 5, 6)), ADDED)
    moved, same = longer.ids_of(old), longer.ids_of(longer)
    assert moved is not None
    assert moved.tolist() == [0, 1, 2, 5, 6, 7, 8]  # A, then B before PAD, BOS and EOS, then TO
    assert same is not None
    assert same.tolist() == list(range(12))
    for other in (
        Vocab("x/2", old.events),
        Vocab("x/1", (EventRange("A", 0, 3),)),
        Vocab("x/1", (EventRange("B", 5, 6),)),
        Vocab("x/1", old.events, (EventRange("GAP", 1, 3),)),
    ):
        assert longer.ids_of(other) is None
    assert old.ids_of(longer) is None


def test_values_and_ids_outside_the_table_are_refused():
    with pytest.raises(TokenError, match="TIME_SHIFT 101 .* 1 to 100"):
        PERFORMANCE.id("TIME_SHIFT", 101)
    for wrong in (391, -1):
        with pytest.raises(TokenError, match=f"^id {wrong} .* 0 to 390$"):
            PERFORMANCE.music(np.array([5, wrong]))
