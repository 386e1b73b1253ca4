import numpy as np
from hypothesis import given
from strategies import ids

from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.performance.events import NEVER, EventTable

TOK, HYMN = PerformanceTokenizer(), ChoraleTokenizer()


@given(ids(TOK.vocab))
def test_any_stream_is_where_reading_it_event_by_event_leads(tokens):
    struck, now, silent_since, struck_last, has_velocity = {}, 0, 0, 0, False
    for word in (TOK.vocab.describe(int(i)).split() for i in tokens):
        value = int(word[1]) if len(word) > 1 else 0
        if word[0] == "NOTE_ON":
            struck[value] = struck_last = now
        elif word[0] == "NOTE_OFF":
            struck.pop(value, None)
        now += value if word[0] == "TIME_SHIFT" else 0
        silent_since = now if word[0].startswith("NOTE") else silent_since
        has_velocity |= word[0] == "VELOCITY"
    place = EventTable(TOK.vocab).place(tokens)
    assert {int(p): int(place.struck[p]) for p in np.flatnonzero(place.struck < NEVER)} == struck
    assert (place.now, place.struck_last, place.has_velocity) == (now, struck_last, has_velocity)
    if not struck:
        assert place.silent_since == silent_since


def test_silence_lasts_as_long_as_it_says():
    assert [TOK.vocab.describe(int(i)) for i in TOK.silence(1.234)] == ["TIME_SHIFT 100", "TIME_SHIFT 23"]
    assert TOK.silence(0.0).tolist() == TOK.silence(-1.0).tolist() == []
    assert HYMN.silence(0.31, 0.6).tolist() == [HYMN.rest] * 8
    assert HYMN.seconds(HYMN.silence(2.4, 0.6), 0.6) == 2.4
