"""A vocabulary with other pitches says the same of the same music, in all that an encoding gives; or it is refused."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scores

from musictx.errors import ConfigError, TokenError, UserError
from musictx.music.grid import REST, grid_to_score
from musictx.music.score import Score
from musictx.tokenizers import Vocab, build_tokenizer, with_added
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.vocab import EventRange

LO, HI = 40, 84


def narrow(vocab):
    keys = {"NOTE_ON", "NOTE_OFF", "PITCH"}
    events = [row._replace(lo=LO, hi=HI) if row.type in keys else row for row in vocab.events]
    return Vocab(f"{vocab.encoding} narrow", tuple(events))


class FewKeys(PerformanceTokenizer):
    name, vocab = "few-keys", narrow(PerformanceTokenizer.vocab)


class FewVoices(ChoraleTokenizer):
    name, vocab = "few-voices", narrow(ChoraleTokenizer.vocab)


PAIRS = [(FewKeys(), build_tokenizer("performance")), (FewVoices(), build_tokenizer("chorale"))]


def place(few, all_):
    """(V,) where each id of the narrow vocabulary is in the wide one."""
    words = [few.vocab.describe(i).split() for i in range(few.vocab.size)]
    return np.array([all_.vocab.id(type, *map(int, value)) for type, *value in words])


def within(score):
    return replace(score, pitch=(score.pitch % (HI - LO) + LO).astype(np.uint8))


GRIDS = st.lists(st.tuples(*[st.integers(LO, HI) | st.just(REST)] * 4), min_size=1, max_size=12)
MUSIC = [scores(max_notes=15).map(within), GRIDS.map(lambda rows: grid_to_score(np.array(rows, np.int16), 0.5))]


@pytest.mark.parametrize("kind", [0, 1], ids=["performance", "chorale"])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_same_music_in_fewer_ids(kind, data):
    (few, all_), score = PAIRS[kind], data.draw(MUSIC[kind])
    assert (few.lo, few.hi) == (LO, HI)
    to, ids, wide = place(few, all_), few.encode(score), all_.encode(score)
    np.testing.assert_array_equal(to[ids], wide)
    assert few.decode(ids, score.quarter_s) == all_.decode(wide, score.quarter_s) == few.normalise(score)
    assert few.pitch_range(ids) == all_.pitch_range(wide)
    assert few.seconds(ids, 0.5) == all_.seconds(wide, 0.5)
    np.testing.assert_array_equal(few.pace, all_.pace[to])
    if few.pitch_range(ids) and few.pitch_range(ids)[1] < HI:
        np.testing.assert_array_equal(to[few.transpose(ids, 1)], all_.transpose(wide, 1))

    for mine, theirs in zip(few.trace(ids, 0.5), all_.trace(wide, 0.5), strict=True):
        assert mine == theirs if isinstance(mine, Score) else np.array_equal(mine, theirs)

    live, wide_live = few.idiom(0.5), all_.idiom(0.5)
    np.testing.assert_array_equal(live.waits, wide_live.waits[to])
    for now_s in (0.3, inf):
        np.testing.assert_array_equal(to[live.ids(score, now_s)], wide_live.ids(score, now_s))
    np.testing.assert_array_equal(to[live.heard(ids, 0.4)], wide_live.heard(wide, 0.4))
    mine, theirs = live.reader(), wide_live.reader()
    for i in ids.tolist():
        assert mine.read(i) == theirs.read(int(to[i]))
        assert mine.clock_s == theirs.clock_s


@pytest.mark.parametrize("kind", [0, 1], ids=["performance", "chorale"])
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_the_same_grammar_over_fewer_ids(kind, data):
    (few, all_), score = PAIRS[kind], data.draw(MUSIC[kind])
    to, ids, chance = place(few, all_), few.encode(score), np.random.default_rng(data.draw(st.integers(0, 99)))
    rules = Rules(max_note_s=0.5, max_silence_s=1.0, max_polyphony=data.draw(st.sampled_from([None, 2])))
    now = build_grammar(few, rules, [ids], [0.5], "cpu")
    wide = build_grammar(all_, replace(rules, lowest=LO, highest=HI), [to[ids]], [0.5], "cpu")
    for _ in range(40):
        legal = now.legal()[0].numpy()
        np.testing.assert_array_equal(legal, wide.legal()[0].numpy()[to])
        id_ = int(chance.choice(np.flatnonzero(legal)))
        now.update(torch.tensor([id_]))
        wide.update(torch.tensor([int(to[id_])]))


@pytest.mark.parametrize("few", [FewKeys(), FewVoices()], ids=["performance", "chorale"])
def test_what_has_no_place_in_it_is_refused_by_name(few):
    for wrong, others in ((30, (35, 50)), (90, (50, 86))):
        with pytest.raises(TokenError, match=f"^pitch {wrong} .* {few.name} .* 40 … 84"):
            few.encode(Score([0.0] * 3, [0.5] * 3, [wrong, *others], [80] * 3))
    with pytest.raises(ConfigError, match=r"^rules=…: .*pitch .* 40 to 84"):
        build_grammar(few, Rules(highest=39), [np.array([], np.uint16)], [0.5], "cpu")


@pytest.mark.parametrize("base", [PerformanceTokenizer, ChoraleTokenizer])
def test_events_that_it_cannot_read_are_refused_by_name(base):
    events = base.vocab.events
    for wrong in (
        events[::-1],
        events[:1],
        (EventRange("TEMPO", 0, 9), *events),
        tuple(row._replace(hi=200) if row.hi > 107 else row for row in events),
        (events[0]._replace(hi=60), *(row._replace(hi=row.hi + 1) for row in events[1:])),
    ):
        kind = type("Wrong", (base,), {"name": "mine", "vocab": Vocab("mine/1", wrong)})
        with pytest.raises(UserError, match=rf"tokenizer mine .*{wrong[0].type} \d+ … \d+.*: give (NOTE_ON|PITCH)"):
            kind()


def test_further_events_change_nothing_of_the_music():
    vocab = Vocab("pedal/1", (*PerformanceTokenizer.vocab.events, EventRange("PEDAL", 0, 1)))
    tokenizer, plain = type("Pedal", (PerformanceTokenizer,), {"name": "pedal", "vocab": vocab})(), PAIRS[0][1]
    score = Score([0.0, 0.5], [0.4, 1.5], [60, 62], [80, 90])
    ids = tokenizer.encode(score)
    np.testing.assert_array_equal(ids, plain.encode(score))
    pressed = np.insert(ids, [0, 3], vocab.id("PEDAL", 1))
    assert tokenizer.decode(pressed) == plain.decode(ids)
    assert tokenizer.seconds(pressed) == plain.seconds(ids)
    legal = build_grammar(tokenizer, Rules(), [pressed], [0.5], "cpu").legal()
    assert not legal[:, vocab.id("PEDAL", 0) :].any()
    assert torch.equal(legal[:, :388], build_grammar(plain, Rules(), [ids], [0.5], "cpu").legal()[:, :388])


def test_longer_shifts_take_fewer_ids():
    on, off, _, velocity = PerformanceTokenizer.vocab.events
    vocab = Vocab("long/1", (on, off, EventRange("TIME_SHIFT", 1, 300), velocity))
    tokenizer = type("Long", (PerformanceTokenizer,), {"name": "long", "vocab": vocab})()
    score = Score([2.5, 9.0], [3.0, 9.5], [60, 62], [80, 80])
    words = [tokenizer.vocab.describe(int(i)) for i in tokenizer.encode(score)]
    assert words[:3] == ["TIME_SHIFT 250", "VELOCITY 19", "NOTE_ON 60"]
    assert words[5:7] == ["TIME_SHIFT 300", "TIME_SHIFT 300"]
    assert tokenizer.decode(tokenizer.encode(score)) == tokenizer.normalise(score)
    assert tokenizer.seconds(tokenizer.encode(score)) == 9.5


@pytest.mark.parametrize("name", ["performance", "chorale", "miditok-remi"])
def test_ids_that_an_objective_adds_are_never_drawn(name):
    tokenizer = with_added(build_tokenizer(name), (EventRange("HIDDEN", 0, 4),))
    legal = build_grammar(tokenizer, Rules(), [np.array([], np.uint16)], [0.5], "cpu").legal()
    assert legal.shape == (1, tokenizer.vocab.size)
    assert not legal[:, tokenizer.vocab.n_events :].any()
    assert len(tokenizer.pitch) == tokenizer.vocab.size
    assert tokenizer.pitch[tokenizer.vocab.id("HIDDEN", 4)] == -1
