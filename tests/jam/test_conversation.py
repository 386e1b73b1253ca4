"""Whose turn it is, on a clock that jumps: no thread, no port, no file."""

import mido
import numpy as np
import pytest
from session_parts import Session, hanging, note, pedal, played, random_playing

from musictx.jam import conversation as module
from musictx.jam.conversation import AHEAD_S, PREPARE_S, STUMBLE_S

PHRASE = played(*[note(1 + 0.3 * k, 1.25 + 0.3 * k, 60 + k) for k in range(6)])
END_S = 1.25 + 0.3 * 5
BOTH = ["performance", "chorale"]


@pytest.mark.parametrize("encoding", BOTH)
def test_a_reply_begins_when_the_pause_is_over_and_lasts_as_long_as_asked(encoding):
    session = Session(PHRASE, encoding)
    assert session.begins[0].at_s == pytest.approx(END_S + 0.6)
    assert max(event.at_s for event in session.events) <= END_S + 0.6 + 2.0 + 1e-9
    assert session.events[-1].at_s == pytest.approx(END_S + 0.6 + 2.0, abs=0.6)
    assert not hanging(session.events)
    assert len(session.playback.latencies_s) == 1
    again, other = (Session(PHRASE, encoding, seed=seed).events for seed in (0, 4))
    assert session.events == again  # the seed alone decides
    assert session.events != other


@pytest.mark.parametrize("encoding", BOTH)
def test_a_player_who_comes_back_is_listened_to_at_once(encoding):
    back_s = END_S + 0.6 + 1.0
    session = Session(played(PHRASE, note(back_s, back_s + 1, 72)), encoding)
    first = [event for event in session.events if event.at_s <= back_s]
    second = [event for event in session.events if event.at_s > back_s]
    assert first
    assert not hanging(first)
    assert second[0].at_s == pytest.approx(back_s + 1 + 0.6)
    assert not hanging(session.events)
    assert session.conversation.interruptions == 1
    assert session.partner.replies == 2


@pytest.mark.parametrize("encoding", BOTH)
def test_what_the_partner_remembers_is_what_was_heard(encoding):
    back_s = END_S + 0.6 + 1.0
    session = Session(played(PHRASE, note(back_s, back_s + 1, 72)), encoding, max_distance=500)
    tokenizer = session.partner.tokenizer
    past = tokenizer.decode(session.partner.past, 0.6)
    begins = sorted(event.pitch for event in session.begins)
    if encoding == "performance":
        assert sorted(past.pitch.tolist()) == sorted([*range(60, 66), 72, *begins])
        assert past.duration_s == pytest.approx(END_S - 1 + 1.0 + 1 + 2.0, abs=0.7)
    else:
        assert set(past.pitch.tolist()) == {*range(60, 66), 72, *begins}


def test_keys_that_are_held_are_no_pause_and_a_pedal_is_one():
    held = Session(note(0, 5, 60), reply_s=None)
    assert held.begins[0].at_s == pytest.approx(5.6)
    assert held.clock.now() == pytest.approx(5.6 + 5)  # a reply as long as the phrase
    odd = [(0.1, mido.Message("pitchwheel", pitch=100)), (0.3, mido.Message("clock"))]
    odd += [(0.4, mido.Message("sysex", data=[1, 2])), (1.7, mido.Message("control_change", control=1, value=5))]
    session = Session(played(pedal(0, 127), note(0.5, 1, 60), odd))  # odd messages pass without harm
    assert session.begins[0].at_s == pytest.approx(1.6)
    assert session.conversation.interruptions == 0
    phrase = session.partner.tokenizer.decode(session.partner.past).clip(0, 1.0)
    assert phrase.offset_s[0] - phrase.onset_s[0] >= 1.0  # it sounded until the pause was over


@pytest.mark.parametrize("encoding", BOTH)
@pytest.mark.parametrize("seed", range(2))
def test_careless_hands_get_music_without_hanging_notes(encoding, seed):
    session = Session(random_playing(seed), encoding, seed=seed)
    assert session.events
    assert not hanging(session.events)
    assert [event.at_s for event in session.events] == sorted(event.at_s for event in session.events)


def test_the_phrase_is_read_along_so_that_nothing_is_left_to_read_at_the_pause():
    read = []
    Session(PHRASE, watch=lambda session: read.append((session.partner.phrase.copy(), session.clock.now())))
    before = [ids for ids, now_s in read if now_s < END_S + 0.5][-1]
    at_pause = next(ids for ids, now_s in read if now_s >= END_S + 0.6)
    assert len(before) > 20
    assert np.array_equal(before, at_pause)
    assert len({len(ids) for ids, now_s in read if now_s < END_S + 0.6}) > 5  # note by note


def test_music_is_drawn_a_little_ahead_and_no_further():
    ahead: list[float] = []

    def watch(session):
        ahead.extend(event.at_s - session.clock.now() for event in session.playback.queue)

    Session(PHRASE, reply_s=6.0, watch=watch)
    assert AHEAD_S / 2 < max(ahead) <= AHEAD_S + 1.0  # and the longest shift


@pytest.mark.parametrize("encoding", BOTH)
def test_the_music_of_a_slow_model_waits_for_it(encoding, monkeypatch):
    session = Session([], encoding)
    conversation, clock, playback = session.conversation, session.clock, session.playback
    for at_s, message in note(0, 1, 60):
        conversation.hear(at_s, message)
    scheduled = playback.schedule

    def schedule(events):
        events = list(events)
        assert all(event.at_s >= clock.now_s - STUMBLE_S for event in events)
        scheduled(events)

    monkeypatch.setattr(playback, "schedule", schedule)
    clock.now_s = 1.6
    conversation.work()
    while conversation.reply is not None:
        clock.now_s += 0.2  # so long does one token take
        conversation.work()
        playback.check(clock.now_s)
    assert len(session.begins) > 1
    assert [event.at_s for event in session.events] == sorted(event.at_s for event in session.events)
    assert not hanging(session.events)


@pytest.mark.parametrize(("encoding", "position"), [("performance", "learned"), ("chorale", "relative")])
def test_a_conversation_longer_than_the_model_looks_back(encoding, position):
    turns = played(*[note(5 * k + 0.2 * i, 5 * k + 0.2 * i + 0.1, 60 + i) for k in range(5) for i in range(8)])
    session = Session(turns, encoding, position=position, max_distance=12, max_positions=40)
    assert session.partner.replies == 5
    assert not hanging(session.events)
    assert len(session.partner.past) <= session.partner.window


@pytest.mark.parametrize("encoding", BOTH)
def test_the_first_note_is_drawn_before_its_time_and_goes_out_in_it(encoding):
    session = Session([], encoding)
    conversation, clock, playback = session.conversation, session.clock, session.playback
    for at_s, message in PHRASE:
        clock.now_s = at_s
        conversation.hear(at_s, message)
    drawn_s = []
    draw = session.partner.draw

    def slow(opening):
        clock.now_s += 0.04  # so long does one token take
        drawn_s.append(clock.now_s)
        return draw(opening)

    session.partner.draw = slow
    while not playback.queue:
        conversation.work()
        clock.now_s = max(clock.now_s, min(conversation.next_s(), END_S + 0.6))
    assert drawn_s[0] < END_S + 0.6
    assert playback.queue[0].at_s == pytest.approx(END_S + 0.6)


@pytest.mark.parametrize("message", [note(END_S + 0.5, END_S + 1, 72), pedal(END_S + 0.5, 0)])
def test_a_reply_that_nobody_heard_is_taken_back_when_the_phrase_goes_on(message, monkeypatch):
    with_pedal = played(pedal(0.9, 127), PHRASE, message)
    session = Session(with_pedal)
    assert session.partner.replies == 1
    assert session.conversation.interruptions == 0
    monkeypatch.setattr(module, "PREPARE_S", 0.0)
    assert session.events == Session(with_pedal).events  # as if it had never been begun


@pytest.mark.parametrize("message", [mido.Message("clock"), mido.Message("pitchwheel", pitch=9), None])
def test_what_changes_no_phrase_neither_takes_a_reply_back_nor_delays_it(message):
    ticks = [(0.02 * k, message) for k in range(200)] if message else []
    begun_s = []

    def watch(session):
        if session.conversation.reply is not None:
            begun_s.append(session.clock.now())

    session = Session(played(PHRASE, ticks), watch=watch)
    assert begun_s[0] == pytest.approx(END_S + 0.6 - PREPARE_S, abs=0.021)
    assert session.begins[0].at_s == pytest.approx(END_S + 0.6, abs=0.021)
    assert session.partner.replies == 1
