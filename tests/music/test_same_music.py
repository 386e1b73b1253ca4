"""musictx/music/gap.py and project.py: a file that is written sounds as the page says, whatever the pedals."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from player import play
from projects import LONGEST, files, project, track

from musictx.generate.gap import cut_gap, fill
from musictx.generate.result import Music, Place
from musictx.music.midi_file import read_events
from musictx.music.project import Line
from musictx.music.read import read_tracks
from musictx.music.score import Meter, Score
from musictx.tokenizers.performance import PerformanceTokenizer

TOKENIZER = PerformanceTokenizer()


def sounds(score, clock):
    columns = clock.ticks(score.onset_s), clock.ticks(score.offset_s), score.pitch
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=100)
@given(files(), st.integers(0, LONGEST), st.integers(20, 400), st.data())
def test_a_fill_sounds_in_its_file_as_on_the_page(tracks, first, length, data):
    part = data.draw(st.sampled_from((None, "1", "2")))
    it = project(*tracks, part=part)
    heard = read_tracks(it.alone() if part else it.data, "a test").merge()
    from_s, to_s = it.clock.seconds(np.array([first, first + length])).tolist()
    if heard.duration_s <= to_s + 0.02 or len(it.heard) == 0:
        return
    gap = cut_gap(heard, heard, from_s, to_s, Meter(0.5), TOKENIZER)
    drawn = data.draw(st.lists(st.tuples(st.integers(40, 75), st.booleans(), st.integers(1, 60)), max_size=12))
    ids = [i for pitch, on, wait in drawn for i in (pitch if on else 128 + pitch, 255 + wait)]
    score, is_new = fill(gap, np.array(ids, np.uint16), TOKENIZER, 0, ringing=True)
    music = Music(
        score=score,
        new_from_s=gap.from_s,
        new_to_s=gap.to_s,
        is_new=is_new,
        name="",
        signature=None,
        seed=None,
        place=Place(it, near_s=0.005),
    )
    for pedal in (False, True):
        written = music.midi(pedal=pedal)
        others = {(part.channel, pitch) for part in it.parts if part not in it.heard for pitch in part.pitches.tolist()}
        tail = [sound for sound in play(it.data) if (sound.channel, sound.pitch) in others]
        got, mine = play(written), sounds(score, it.clock)
        for each in tail:  # another hand plays on as it did
            got.remove(each)
        now = sorted((s.on, s.off, s.pitch) for s in got)
        assert [x[2] for x in now] == [x[2] for x in mine]
        for shown, heard_now in zip(sorted(mine, key=key), sorted(now, key=key), strict=True):
            assert abs(shown[0] - heard_now[0]) <= 1
            assert abs(shown[1] - heard_now[1]) <= 2
        # what the person has outside the gap stays, event for event, but for ends of notes that cross its borders
        first_tick, last_tick = it.tick(gap.from_s), it.tick(gap.to_s)
        for before, after in zip(it.file.tracks, read_events(written).tracks, strict=False):
            kept = [e for e in before.events if e.kind == 0xB0 and not first_tick <= e.tick < last_tick]
            assert [e for e in after.events if e in kept] == kept


def key(row):
    return row[2], row[0], row[1]


@settings(max_examples=100)
@given(files(), st.integers(10, 1700), st.booleans(), st.booleans())
def test_up_to_the_join_a_file_sounds_as_on_the_page(tracks, join, pedal, forgets):
    if forgets:  # a pedal that nothing lifts
        tracks[-1] = track([e for e in tracks[-1].events if e.kind != 0xB0])
    it = project(*tracks)
    heard = read_tracks(it.data, "a test").merge()
    join = max(join, it.tick(heard.onset_s[0]) + 1)
    at_s = float(it.clock.seconds(np.array([join]))[0])
    new = Score(at_s + np.array([0.0, 0.5]), [at_s + 1.0, at_s + 1.0], [90, 91], [80, 80])
    got = [(s.on, s.off, s.pitch) for s in play(it.continued([Line("musictx", new)], at_s, pedal=pedal))]
    mine = sounds(heard.clip(0.0, at_s), it.clock) + [(join, join + 192, 90), (join + 96, join + 192, 91)]
    assert sorted(got, key=key) == sorted(mine, key=key)
