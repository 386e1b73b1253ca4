import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from stubs import Said, continued

from musictx.errors import ConfigError
from musictx.generate.draw import Drawing, continue_primers
from musictx.generate.filters import NanError
from musictx.generate.primer import Primer
from musictx.generate.requests import PLAIN, Continue, Length
from musictx.model.static_steps import StaticSteps
from musictx.model.torch_steps import TorchPlayer
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.music.score import Meter, Score
from musictx.tokenizers import Tokenizer, build_tokenizer
from musictx.tokenizers.rules import Rules

SEED = Score([0, 0.6], [0.6, 1.2], [60, 64], [80, 80], quarter_s=0.6)
TWO_S = Length(seconds=2.0)
LONGER = Score(np.arange(9) * 0.3, np.arange(9) * 0.3 + 0.3, np.arange(60, 69), np.full(9, 80), quarter_s=0.6)


def build(name, position="relative", max_distance=64) -> tuple[Transformer, Tokenizer]:
    tokenizer = build_tokenizer(name)
    torch.manual_seed(0)
    config = TransformerConfig(tokenizer.vocab.size, d_model=16, n_layers=1, n_heads=2, d_ff=16, max_positions=100)
    return Transformer(replace(config, position=position, max_distance=max_distance)).eval(), tokenizer


def playing(name) -> tuple[TorchPlayer, Tokenizer]:
    model, tokenizer = build(name)
    return TorchPlayer(model), tokenizer


def go(name="performance", seed=SEED, length=TWO_S, **asked):
    return continued(seed, *playing(name), Continue(PLAIN, length, **asked))


def same(one, other):
    return one.score == other.score and one.mean_log_p == pytest.approx(other.mean_log_p)


@pytest.mark.parametrize("name", ["performance", "chorale"])
def test_exactly_the_length_that_was_asked_for_is_added_after_the_seed(name):
    model, tokenizer = build(name)
    primer = Primer(SEED, 1.8, Meter(0.6, (3, 4)))  # ends at its bar line, 0.6 s after its last note

    def made(**amount):
        asked = Continue(PLAIN, Length(**amount), include_seed=False)
        return continue_primers([primer], TorchPlayer(model), tokenizer, asked)[0][0]

    assert 2.5 < made(bars=2).score.duration_s <= 3.6 + 1e-9
    assert made(bars=2).score.pitch.tolist() == made(seconds=3.6).score.pitch.tolist()
    assert not made(tokens=40).stopped
    assert made(tokens=40).score.duration_s <= made(tokens=80).score.duration_s
    whole = continue_primers([primer], TorchPlayer(model), tokenizer, Continue(PLAIN, Length(bars=2)))[0][0]
    assert (whole.stopped, whole.score.quarter_s) == ("", 0.6)
    assert whole.new_from_s == pytest.approx(1.8)
    new = whole.score.select(whole.score.onset_s > 1.2)
    assert (new.onset_s >= 1.8 - 1e-9).all()


def test_a_variation_depends_on_the_seed_and_its_number_alone():
    three, one = go(variations=3), go(variations=1)
    assert same(three[0], one[0])
    assert not same(three[0], three[1])
    assert not same(go(random_seed=1)[0], one[0])


@pytest.mark.parametrize("position", ["relative_fourier", "learned"])  # of the others: test_engine.py
def test_several_seeds_in_one_batch_which_end_at_different_times_are_each_as_if_alone(position):
    model, tokenizer = build("performance", position)
    model.double()
    primers = [Primer(s, s.duration_s, Meter(s.quarter_s)) for s in (SEED, LONGER)] + [None]
    asked = Continue(replace(PLAIN, guard=True), Length(seconds=1.0), variations=2)
    together = continue_primers(primers, TorchPlayer(model), tokenizer, asked)
    for primer, results in zip(primers, together, strict=True):
        alone = continue_primers([primer], TorchPlayer(model), tokenizer, asked)[0]
        assert all(same(a, b) for a, b in zip(alone, results, strict=True))
    parts = continue_primers(primers, TorchPlayer(model), tokenizer, replace(asked, rows_at_once=2))
    assert not together[0][0].stopped
    steps_of_one_shape = continue_primers(primers, TorchPlayer(StaticSteps(model)), tokenizer, asked)
    for others in (parts, steps_of_one_shape):
        assert all(same(a, b) for x, y in zip(others, together, strict=True) for a, b in zip(x, y, strict=True))


def test_longer_than_the_window_keeps_the_newest_part_and_says_so():
    model, tokenizer = build("performance", max_distance=8)  # looks back 16 tokens
    long = Score(np.arange(30) * 0.1, np.arange(30) * 0.1 + 0.1, np.arange(30) + 40, np.full(30, 80))
    asked = Continue(PLAIN, Length(seconds=1.0))
    (result,) = continued(long, TorchPlayer(model), tokenizer, asked)
    n = len(tokenizer.encode(long))
    assert result.unheard == n - 16
    assert result.new_from_s == pytest.approx(3.0)
    assert (result.score.clip(0, 2.95).pitch == long.clip(0, 2.95).pitch).all()
    (wider,) = continued(long, TorchPlayer(model), tokenizer, replace(asked, window=500))
    assert wider.unheard == 0
    hymns, tokenizer = build("chorale", max_distance=5)
    (result,) = continued(
        long.clip(0, 0.1), TorchPlayer(hymns), tokenizer, Continue(PLAIN, Length(seconds=9.0), window=10)
    )
    assert not result.stopped


def test_positions_that_run_out_end_the_music_and_say_so():
    model, tokenizer = build("performance", "learned")
    (result,) = continued(SEED, TorchPlayer(model), tokenizer, Continue(PLAIN, Length(tokens=200)))
    assert result.stopped.startswith("101 tokens are more than position=learned has")
    assert result.score.duration_s > 1.2


def test_the_guard_warms_a_row_that_is_stuck():
    tokenizer = build_tokenizer("performance")
    vocab = tokenizer.vocab

    def say(length, rows):
        logits = np.zeros((rows, vocab.size))
        for event in (("NOTE_ON", 60), ("TIME_SHIFT", 10), ("NOTE_OFF", 60)):
            logits[:, vocab.id(*event)] = 12.0
        logits[:, vocab.id("VELOCITY", 5)] = 12.0 if length < 3 else -9.0
        return logits

    def different(guard):
        asked = Continue(replace(PLAIN, guard=guard), Length(tokens=600))
        notes = continued(None, Said(say), tokenizer, asked)[0].score
        return len(set(notes.pitch.tolist()))

    assert different(True) > different(False)


def test_whoever_iterates_may_stop_after_any_step():
    model, tokenizer = build("performance")
    asked = Continue(PLAIN, Length(tokens=70), variations=2)
    whole = continued(None, TorchPlayer(model), tokenizer, asked)
    drawing = Drawing([None], TorchPlayer(model), tokenizer, replace(asked, rows_at_once=1))
    assert len(list(itertools.islice(drawing, 71))) == 71
    drawing.stop("it is late")
    results = drawing.continuations()[0]
    assert [result.stopped for result in results] == ["", "it is late"]
    assert results[0].score == whole[0].score


def test_logits_that_are_no_numbers_are_said():
    model, tokenizer = build("performance")
    model.get_parameter("blocks.0.down.weight").data[0, 0] = torch.nan
    with pytest.raises(NanError, match=r"\(NaN\)"):
        continued(SEED, TorchPlayer(StaticSteps(model)), tokenizer, Continue(PLAIN))


def test_miditok_has_no_rules_to_break():
    pytest.importorskip("miditok")
    (result,) = go("miditok-tsd")
    assert not result.stopped
    with pytest.raises(ConfigError, match="^rules="):
        go("miditok-tsd", rules=Rules(lowest=40))


def test_how_many_rows_share_a_batch_shortens_none(monkeypatch):
    monkeypatch.setattr("musictx.generate.draw.MOST_TOKENS", 640)  # of sixteen rows: 40 each
    model, tokenizer = build("performance")
    lengths = set()
    for rows in (16, 20):
        asked = Continue(PLAIN, Length(seconds=1e4), variations=20, rows_at_once=rows)
        lengths |= {result.stopped for result in continued(None, TorchPlayer(model), tokenizer, asked)}
    assert lengths == {"40 tokens are the most"}
