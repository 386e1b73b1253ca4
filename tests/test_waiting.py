"""Who waits for more than three seconds is told beforehand how long, and then how far it is."""

import re
import shutil
import sys
from functools import partial

from conftest import QUICK, TINY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musictx import lessons
from musictx.cli import main
from musictx.waiting import Waiting, estimated, in_words


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def lines_of(capsys, total, seconds_each, done=0):
    """What is said of so many parts of work, each with the second when it is said."""
    clock, lines = Clock(), []
    waiting = Waiting("work", total, done, clock)
    for _ in range(total - done):
        clock.now_s += seconds_each
        waiting.advance()
        lines += [(clock.now_s, line) for line in capsys.readouterr().err.splitlines()]
    return lines


def test_an_estimate_comes_first_and_then_how_far_it_is(capsys):
    assert lines_of(capsys, 100, 1.0) == [
        (1, "work: about 2 minutes"),
        *((n, f"work: {n}% done, about {in_words(100 - n)} left") for n in range(11, 97, 10)),
    ]
    assert lines_of(capsys, 100, 1.0, done=80) == [(1, "work: about 20 s"), (11, "work: 91% done, about 10 s left")]
    assert lines_of(capsys, 4, 1.0) == []
    assert lines_of(capsys, 1, 500.0) == []


def test_the_start_of_processes_is_no_measure_of_the_work(capsys):
    clock = Clock()
    waiting = Waiting("work", 60, 0, clock, starts=2)
    for took_s in (14.0, 0.1, *[1.0] * 20):
        clock.now_s += took_s
        waiting.advance()
    assert capsys.readouterr().err.splitlines() == ["work: about 60 s", "work: 22% done, about 50 s left"]


@given(st.integers(2, 300), st.floats(0.01, 1000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_long_work_is_told_in_few_lines(capsys, total, seconds_each):
    lines = lines_of(capsys, total, seconds_each)
    first = max(1.0, seconds_each)
    if total * seconds_each - 2 * first > 3:
        assert lines[0][0] <= 2 * first
        assert re.fullmatch(r"work: about [\d.]+ (s|minutes|hours)", lines[0][1])
    assert len(lines) <= 21


def test_each_item_counts_as_much_as_its_size(capsys, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("musictx.waiting.Waiting.__init__.__defaults__", (0.0, clock))
    seen = []
    for n in estimated([3, 5, 12], "work", float):
        seen.append(n)
        clock.now_s += 2 * n
    assert seen == [3, 5, 12]
    assert capsys.readouterr().err == "work: about 35 s\nwork: 40% done, about 25 s left\n"


def test_times_are_said_as_people_say_them():
    said = {1: "5 s", 41: "45 s", 90: "90 s", 91: "2 minutes", 2640: "44 minutes", 5401: "1.6 hours", 9000: "2.5 hours"}
    assert {seconds: in_words(seconds) for seconds in said} == said


def test_every_command_that_may_take_long_says_so(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("musictx.waiting.SHORT_S", 0.0)
    monkeypatch.setattr("musictx.waiting.MEASURED_S", 0.0)
    monkeypatch.setattr("musictx.commands.lesson.run", partial(lessons.run, size=0.1))
    for folder in ("a", "b"):
        (tmp_path / "labelled" / folder).mkdir(parents=True)
    for n, file in enumerate(sorted(world.midi.rglob("*.mid"))[:12]):
        shutil.copy(file, tmp_path / "labelled" / "ab"[n % 2])
    shutil.copy(world.seed, "seed.mid")
    store, bundle = f"store={world.store}", f"bundle={world.bundle}"
    for typed, said in (
        (f"prepare folder path={world.midi} out=store workers=1", r"reading \d+ files"),
        (f"evaluate {bundle} data.path={world.store} data.score_batch_tokens=64 split=train", r"scoring \d+ pieces"),
        (f"generate seed.mid {bundle} length_tokens=96 out=new", "drawing 1 piece of new music"),
        (f"train {world.store} out=run {' '.join([*TINY, *QUICK])}", "training, 4 steps"),
        ("probe labelled out=labels.safetensors bundle=piano passages=3", r"listening to \d+ passages"),
        ("classify seed.mid labels=labels.safetensors out=classified", r"reading \d+ passages.*"),
        (f"similar seed.mid {store} passages=20 out=similar", r"listening to \d+ passages"),
        ("accompany chorale out=voices variations=1", "writing voices"),
        ("render seed.mid out=film.gif", "drawing the film"),
        ("lesson masking out=lessons", "a training"),
    ):
        monkeypatch.setattr(sys, "argv", ["musictx", *typed.split()])
        main()
        assert re.search(rf"^{said}: about \d+ (s|minutes?)$", capsys.readouterr().err, re.MULTILINE), typed
