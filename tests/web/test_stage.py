"""Pictures and sounds of several people at once."""

from threading import Event, Thread

import numpy as np
import pytest

from musictx.music.score import Meter, Score
from musictx.viz.sound import write_wav
from musictx.web import stage
from musictx.web.session import PageMusic, Step


def music(n):
    onset_s = np.arange(n) * 0.02
    return Step(
        PageMusic(f"music{n}", Score(onset_s, onset_s + 0.5, 40 + np.arange(n) % 40, 60 + np.arange(n) % 8), Meter(0.5))
    )


@pytest.fixture
def slow(monkeypatch):
    """Sound of `music` of so many notes is written when its event is set; who is being written is in `begun`."""
    events, begun, write = dict[int, Event](), list[int](), write_wav

    def writing(score, path):
        begun.append(len(score))
        if len(score) in events:
            assert events[len(score)].wait(60)
        write(score, path)

    monkeypatch.setattr(stage, "write_wav", writing)
    yield events, begun
    for event in events.values():
        event.set()


def show(folder, n):
    thread = Thread(target=stage.stage, args=(music(n), folder))
    thread.start()
    return thread


def ends(thread):
    thread.join(60)
    return not thread.is_alive()


@pytest.mark.parametrize("n", [20, stage.LONG_NOTES + 1])
def test_nobody_waits_for_the_picture_and_sound_of_anothers_music(slow, tmp_path, n):
    events, begun = slow
    events[n] = Event()
    first = show(tmp_path, n)
    again = show(tmp_path, n)  # another person looks at the same
    while n not in begun:
        first.join(0.01)
    assert ends(show(tmp_path, 10))
    assert first.is_alive()
    assert again.is_alive()
    events[n].set()
    assert ends(first)
    assert ends(again)
    assert sorted(begun) == [10, n]


def test_music_that_takes_long_waits_for_such_music_and_short_music_does_not(slow, tmp_path):
    events, begun = slow
    long, longer = stage.LONG_NOTES + 1, stage.LONG_NOTES + 2
    events[long] = Event()
    first = show(tmp_path, long)
    while long not in begun:
        first.join(0.01)
    second = show(tmp_path, longer)
    assert ends(show(tmp_path, 10))
    assert begun == [long, 10]
    events[long].set()
    assert ends(second)


def test_what_is_being_shown_is_not_removed(slow, tmp_path, monkeypatch):
    events, begun = slow
    events[20] = Event()
    monkeypatch.setattr(stage, "KEEP_BYTES", 0)
    first = show(tmp_path, 20)
    while not begun:
        first.join(0.01)
    assert ends(show(tmp_path, 10))
    assert len(list(tmp_path.iterdir())) == 2
    events[20].set()
    assert ends(first)
    assert ends(show(tmp_path, 11))
    assert len(list(tmp_path.iterdir())) == 1
    assert stage.SHOWING == {}


def test_a_roll_of_many_notes_has_few_outlines(tmp_path):
    stage.rolls(music(3000), tmp_path / "roll.svg")
    text = (tmp_path / "roll.svg").read_text()
    assert text.count("<path") + text.count("<use") < 300
