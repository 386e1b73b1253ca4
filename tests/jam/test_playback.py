"""Events go out at their time, and all notes end."""

import time

import pytest

from musictx.errors import UserError
from musictx.jam.recording import Playback
from musictx.jam.session import RealClock, Sender
from musictx.tokenizers.tokenizer import Event


def test_silence_ends_what_sounds_and_forgets_the_rest():
    out: list[Event] = []
    playback = Playback(out.append)
    playback.schedule([Event(1.0, 60, 80), Event(1.0, 64, 80), Event(1.5, 60, 0), Event(3.0, 67, 80)])
    playback.check(0.9)
    assert not out
    playback.silence(2.0)
    playback.close(9.0)
    assert out[2:] == [Event(1.5, 60, 0), Event(2.0, 64, 0)]
    assert not playback.queue


def test_a_latency_is_counted_once_a_reply_and_not_for_one_without_a_note():
    playback = Playback(lambda event: None)
    playback.begin(0.25)
    playback.silence(0.0)
    playback.begin(0.25)
    playback.schedule([Event(0.0, 60, 80), Event(0.0, 64, 80)])
    playback.check(0.0)
    assert len(playback.latencies_s) == 1
    assert playback.latencies_s[0] >= 0.25


def test_the_sender_sends_by_itself_and_ends_all_notes():
    out: list[Event] = []
    clock = RealClock()
    sender = Sender(out.append, clock)
    sender.schedule([Event(0.0, 60, 80), Event(0.02, 64, 80), Event(1000.0, 67, 80)])
    until = time.monotonic() + 60
    while len(out) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    sender.check(clock.now())
    sender.close(5.0)
    assert out == [Event(0.0, 60, 80), Event(0.02, 64, 80), Event(5.0, 60, 0), Event(5.0, 64, 0)]
    assert not sender.thread.is_alive()


def test_a_port_that_is_gone_is_said():
    def gone(event):
        raise OSError("no device")

    clock = RealClock()
    sender = Sender(gone, clock)
    sender.schedule([Event(0.0, 60, 80)])
    sender.thread.join(60)
    with pytest.raises(UserError, match=r"\(no device\):"):
        sender.check(clock.now())
    sender.close(1.0)
