"""What a model has read is the same however it was said, and what it draws begins with a note."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from session_parts import make_partner, phrase_score

from musictx.generate.engine import BatchRow, begin_stream
from musictx.generate.filters import NanError
from musictx.generate.primer import bare_prompt
from musictx.tokenizers.grammar import build_grammar

BOTH = ["performance", "chorale"]


def drawn(partner, idiom, count=40):
    partner.begin()
    return [partner.draw(opening=k == 0) for k in range(count)]


@pytest.mark.parametrize("encoding", BOTH)
def test_a_phrase_said_in_parts_is_the_phrase(encoding):
    (one, idiom), (two, _) = make_partner(encoding), make_partner(encoding)
    ids = idiom.ids(phrase_score(1), np.inf)
    one.hear(ids)
    for n in range(0, len(ids) + 1, 3):
        two.hear(ids[:n])
    two.hear(ids)
    np.testing.assert_allclose(one.logits, two.logits, rtol=1e-5, atol=1e-5)
    assert drawn(one, idiom) == drawn(two, idiom)


@pytest.mark.parametrize("encoding", BOTH)
def test_a_phrase_that_turns_out_otherwise_is_read_again(encoding):
    (one, idiom), (two, _) = make_partner(encoding), make_partner(encoding)
    ids = idiom.ids(phrase_score(1), np.inf)
    one.hear(ids[:12])
    two.hear(np.flip(ids[:16]))
    two.hear(ids[:12])
    np.testing.assert_allclose(one.logits, two.logits, rtol=1e-5, atol=1e-5)


def test_a_reply_that_was_broken_off_is_forgotten_from_there_on():
    (one, idiom), (two, _) = make_partner(max_distance=200), make_partner(max_distance=200)
    ids = idiom.ids(phrase_score(2), np.inf)
    for partner in (one, two):
        partner.hear(ids)
    reply = np.array(drawn(one, idiom), dtype=np.uint16)
    one.end(reply[:10])
    two.hear(np.concatenate([ids, reply[:10]]))
    np.testing.assert_allclose(one.logits, two.logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("encoding", BOTH)
def test_a_reply_is_guided_by_what_was_played_before_its_last_moments(encoding):
    (plain, idiom), (guided, _) = (make_partner(encoding, max_distance=2000) for _ in range(2))
    for partner in (plain, guided):
        with torch.no_grad():
            for p in partner.player.model.parameters():  # so large that what is far behind matters
                p *= 2
        partner.end(np.zeros(0, np.uint16))
    guided.sampling = replace(guided.sampling, seed_guidance=2.0)
    ids = idiom.ids(phrase_score(1), np.inf)
    assert len(ids) > 32
    for partner in (plain, guided):
        partner.hear(ids[:8])
    assert drawn(plain, idiom) == drawn(guided, idiom)  # nothing to hold on to yet
    for partner in (plain, guided):
        partner.end(ids[:0])
        partner.hear(ids)
    tokenizer, heard = guided.tokenizer, guided.context()
    replies = []
    for partner in (guided, plain):
        partner.begin()
        replies.append([partner.draw(opening=False) for _ in range(40)])
    assert replies[0] != replies[1]
    grammar = build_grammar(tokenizer, guided.rules, [ids[:0]], [guided.quarter_s])
    rows = [BatchRow(0, (guided.random_seed, 1))]
    bare = [bare_prompt(heard, guided.period)]
    stream = begin_stream(guided.player, [heard], rows, guided.sampling, grammar, guided.window, True, bare)
    assert [int(next(stream).ids[0]) for _ in range(40)] == replies[0]


def test_every_reply_has_chance_its_own():
    partner, idiom = make_partner()
    replies = []
    for _ in range(3):
        replies.append(tuple(drawn(partner, idiom)))
        partner.past = partner.past[:0]
        partner.end(partner.past)
    assert len(set(replies)) == 3


def test_the_first_note_is_not_waited_for():
    for seed in range(8):
        partner, _ = make_partner(seed=seed)
        partner.begin()
        vocab = partner.tokenizer.vocab
        assert vocab.mask("VELOCITY")[partner.draw(opening=True)]
        assert vocab.mask("NOTE_ON")[partner.draw(opening=True)]
        partner, _ = make_partner("chorale", seed=seed)
        partner.begin()
        assert partner.draw(opening=True) != partner.tokenizer.rest


def test_a_model_without_numbers_is_said():
    partner, _ = make_partner()
    partner.player.model.blocks[0].up.weight.data.fill_(float("nan"))
    partner.end(partner.past)
    partner.begin()
    with pytest.raises(NanError, match="NaN"):
        partner.draw(opening=True)


@pytest.mark.parametrize("encoding", BOTH)
@pytest.mark.parametrize("position", ["learned", "relative"])
def test_a_reply_that_is_taken_back_leaves_no_trace(encoding, position):
    for count in range(48, 64):
        (one, idiom), (two, _) = (make_partner(encoding, position=position, max_positions=64) for _ in range(2))
        phrase = np.resize(idiom.ids(phrase_score(1), np.inf), count)
        for partner in (one, two):
            partner.hear(phrase)
        steps = one.steps
        one.begin()
        for k in range(6):
            one.draw(opening=k == 0)
        one.take_back()
        if one.steps is not steps:  # the table was at its end: it has read the newest again
            two._recall()
        np.testing.assert_allclose(one.logits, two.logits, rtol=1e-4, atol=1e-4)
        assert drawn(one, idiom) == drawn(two, idiom)
