import math

import numpy as np
import pytest

from musictx.errors import ConfigError
from musictx.generate.batch import Progress
from musictx.generate.requests import Length
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer

TOK, HYMN = PerformanceTokenizer(), ChoraleTokenizer()
NOTHING = np.zeros(0, np.uint16)


def progress(length, tokenizer=TOK, primer=NOTHING, quarter_s=0.5, bar_s=2.0) -> Progress:
    return Progress(length, bar_s, tokenizer, primer, quarter_s)


NO_LENGTHS = [{"seconds": 0.0}, {"seconds": math.nan}, {"seconds": math.inf}, {"bars": -1}, {"notes": 0}]


@pytest.mark.parametrize("given", [*NO_LENGTHS, {"tokens": 2_000_000}, {"seconds": 1.0, "bars": 2}])
def test_impossible_lengths_are_refused(given):
    with pytest.raises(ConfigError) as refused:
        Length(**given)
    field, value = next(iter(given.items()))
    assert (refused.value.field, refused.value.got) == (f"Length.{field}", value)


def test_lengths_in_seconds():
    lengths = Length(seconds=3.0), Length(bars=3), Length(), Length(notes=3)
    assert [length.in_seconds(2.0) for length in lengths] == [3.0, 6.0, 20.0, None]


def test_the_clock_of_a_performance_continues_from_look_to_look():
    p, wait = progress(Length(seconds=4.0)), TOK.silence(1.0)
    assert p.after(wait) == 0.25
    assert p.after(np.concatenate([wait, wait, wait])) == 0.75


def test_only_whole_steps_of_a_grid_count():
    p = progress(Length(seconds=0.3), HYMN, quarter_s=0.6)
    ids = np.full(9, HYMN.rest, np.uint16)
    assert [p.after(ids[:n]) for n in (3, 5, 7, 9)] == pytest.approx([0, 0.5, 0.5, 1.0])


def test_new_notes_are_counted():
    primer = TOK.vocab.id("NOTE_ON", 60), TOK.vocab.id("TIME_SHIFT", 9), TOK.vocab.id("NOTE_OFF", 60)
    p = progress(Length(notes=4), primer=np.array(primer, np.uint16))
    assert p.after(np.array(primer, np.uint16)) == 0.25
