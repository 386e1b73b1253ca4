import numpy as np
from hypothesis import given
from strategies import ids

from musictx.music.grid import REST
from musictx.music.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.performance.events import NEVER, EventTable

TOK, HYMN = PerformanceTokenizer(), ChoraleTokenizer()
TABLE = EventTable(TOK.vocab)


def stream(*events):
    return np.array([TOK.vocab.id(*event) for event in events], np.uint16)


def test_what_every_id_does():
    table, vocab = TABLE, TOK.vocab
    assert table.pitch[vocab.id("NOTE_ON", 60)] == table.pitch[vocab.id("NOTE_OFF", 60)] == 60
    assert table.steps[vocab.id("TIME_SHIFT", 7)] == 7
    assert table.steps.sum() == 5050
    assert HYMN.pitch[HYMN.vocab.id("PITCH", 60)] == 60
    assert HYMN.pitch[[HYMN.rest, HYMN.vocab.bos]].tolist() == [REST, REST]


def test_where_a_stream_stands():
    place = TABLE.place(stream(("VELOCITY", 9), ("NOTE_ON", 60), ("TIME_SHIFT", 30), ("NOTE_ON", 64), ("NOTE_OFF", 60)))
    assert place.struck[64] == 30
    assert (np.delete(place.struck, 64) == NEVER).all()
    assert (place.now, place.has_velocity) == (30, True)
    silent = TABLE.place(stream(("TIME_SHIFT", 100), ("TIME_SHIFT", 20)))
    assert (silent.now, silent.silent_since, silent.has_velocity) == (120, 0, False)
    after = TABLE.place(stream(("NOTE_ON", 1), ("TIME_SHIFT", 5), ("NOTE_OFF", 1), ("TIME_SHIFT", 2)))
    assert (after.now, after.silent_since) == (7, 5)


@given(ids(TOK.vocab))
def test_any_stream_stands_where_reading_it_event_by_event_leads(tokens):
    struck, now, silent_since = {}, 0, 0
    for word in (TOK.vocab.describe(int(i)).split() for i in tokens):
        value = int(word[1]) if len(word) > 1 else 0
        if word[0] == "NOTE_ON":
            struck[value] = now
        elif word[0] == "NOTE_OFF":
            struck.pop(value, None)
        now += value if word[0] == "TIME_SHIFT" else 0
        silent_since = now if word[0].startswith("NOTE") else silent_since
    place = TABLE.place(tokens)
    assert {int(p): int(place.struck[p]) for p in np.flatnonzero(place.struck < NEVER)} == struck
    assert place.now == now
    if not struck:
        assert place.silent_since == silent_since


def test_a_grid_voice_by_voice():
    music = Score([0.0, 0.0], [0.3, 0.15], [72, 48], [80, 80], quarter_s=0.6)
    assert HYMN.whole_steps(HYMN.encode(music)).tolist() == [[72, REST, REST, 48], [72, REST, REST, REST]]


def test_silence_lasts_as_long_as_it_says():
    assert [TOK.vocab.describe(int(i)) for i in TOK.silence(1.234)] == ["TIME_SHIFT 100", "TIME_SHIFT 23"]
    assert TOK.silence(0.0).tolist() == TOK.silence(-1.0).tolist() == []
    assert HYMN.silence(0.31, 0.6).tolist() == [HYMN.rest] * 8
    assert HYMN.seconds(HYMN.silence(2.4, 0.6), 0.6) == 2.4
