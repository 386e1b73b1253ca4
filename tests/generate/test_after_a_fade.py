"""New music behind a fade, a bend or an open pedal sounds as the part did before them, whichever model draws it."""

import pytest
from projects import note, project, track
from small_scores import PLAIN, drawn

from musictx.generate.requests import Continue, Length
from musictx.music.midi_file import BEND, CONTROL, NOTE_ON, PRESSURE, Event, notes_of, read_events
from musictx.music.project import NAME, Line
from musictx.music.score import Score

END = 1536  # four bars of 4/4
REST = {(BEND,): 0x40, (PRESSURE,): 0, (CONTROL, 1): 0, (CONTROL, 7): 90, (CONTROL, 11): 110, (CONTROL, 66): 0}


def control(tick, number, value):
    return Event(tick, bytes([CONTROL, number, value]))


def fade(number, to, since=END - 96):
    return [control(since + 12 * k, number, max(100 - 14 * k, to)) for k in range(8)]


ENDS = {
    "expression": fade(11, 3),
    "volume": fade(7, 2),
    "bend": [Event(END - 96, b"\xe0\x00\x08")],
    "pressure and modulation": [Event(END - 96, b"\xd0\x60"), control(END - 96, 1, 90)],
    "sostenuto": [control(END - 96, 66, 127)],
}


def faded(end):
    line = [note(96 * k, 96 * k + 90, 60 + k % 5) for k in range(16)]
    return project(track(), track(Event(0, b"\xc0\x28"), control(0, 7, 90), control(0, 11, 110), *line, end))


def state(data, tick):
    """What the channel is set to where new notes begin."""
    found = dict[tuple[int, ...], int](REST)
    for event in sorted((e for each in read_events(data).tracks for e in each.events), key=lambda each: each.tick):
        if event.channel == 0 and event.kind == NOTE_ON and event.tick >= tick:
            return found
        if event.channel == 0 and event.tick <= tick:
            found[event.kind, *([event.data[1]] if event.kind == CONTROL else [])] = event.data[-1]
    raise AssertionError("no new notes")


def levels(found):
    return {each: value for each, value in found.items() if each in REST}


def by_scores(seed, folder):
    path = folder / "seed.mid"
    path.write_bytes(seed.data)
    (music,) = drawn(path, Continue(PLAIN, Length(bars=2)))
    return music.midi()


def in_its_part(seed, folder):
    """As voices of a chorale go on."""
    return seed.continue_at([], 8.0, more={1: note(END, END + 96, 64)})


def beside_it(seed, folder):
    """As a piano goes on."""
    return seed.continue_at([Line(NAME, Score([8.0], [8.5], [64], [80], 0.5, 40))], 8.0)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", [by_scores, in_its_part, beside_it])
def test_new_notes_sound_as_the_part_before_its_end(way, end, tmp_path):
    seed = faded(ENDS[end])
    data = way(seed, tmp_path)
    found = state(data, END)
    assert levels(found) == (REST if way != beside_it else REST | {(CONTROL, 11): 127})
    was = read_events(seed.data).tracks[1].events
    assert [e for e in read_events(data).tracks[1].events if e.tick < END] == [e for e in was if e.tick < END]


def test_a_part_that_grew_louder_stays_so(tmp_path):
    seed = faded([control(96 * k, number, 40 + 5 * k) for number in (7, 11) for k in range(16)])
    found = state(by_scores(seed, tmp_path), END)
    assert (found[CONTROL, 7], found[CONTROL, 11]) == (115, 115)


def test_a_part_without_fades_gets_no_events(tmp_path):
    seed = faded([])
    old, new = (read_events(data).tracks[1] for data in (seed.data, by_scores(seed, tmp_path)))
    assert len(new.events) - len(old.events) == 2 * (len(notes_of(new)) - len(notes_of(old)))


def test_notes_that_swell_and_fade_each_leave_the_level_of_their_swell(tmp_path):
    moves = [control(96 * k + at, 11, value) for k in range(16) for at, value in ((0, 20), (40, 108), (88, 20))]
    assert state(by_scores(faded(moves), tmp_path), END)[CONTROL, 11] == 108
