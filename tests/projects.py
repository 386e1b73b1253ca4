"""Files of a person, made of events: small projects, and any tracks with any pedals."""

from hypothesis import strategies as st

from musictx.music.midi_file import Event, EventFile, EventTrack, meta, write_events
from musictx.music.project import Project
from musictx.music.read import read_tracks

QUARTER = 96  # ticks
SLOW = 12_000_000  # microseconds a quarter: 480 ticks are a minute


def note(on, off, pitch, channel=0, velocity=80):
    return [
        Event(on, bytes([0x90 | channel, pitch, velocity])),
        Event(off, bytes([0x80 | channel, pitch, 0])),
    ]


def track(*events, end=0):
    each = sorted(
        (e for group in events for e in (group if isinstance(group, list) else [group])), key=lambda e: e.tick
    )
    return EventTrack(each, max([end, *(e.tick for e in each)]))


def tempo(tick, mspq):
    return Event(tick, b"\xff\x51\x03" + mspq.to_bytes(3))


def project(*tracks, **how):
    data = write_events(EventFile(QUARTER.to_bytes(2), list(tracks)))
    return Project(data, read_tracks(data, "a test").tempo_map, **how)


def band(**how):
    """Violin, cello and drums in a file whose tempo changes, with bends, markers and a pedal."""
    conductor = track(tempo(0, 500_000), tempo(192, 1_000_000), meta(0, 6, "verse"), meta(384, 6, "chorus"))
    violin = track(
        meta(0, 3, "violin"),
        Event(0, b"\xc0\x28"),
        *(note(96 * k, 96 * k + 90, 76 + k) for k in range(8)),
        Event(100, b"\xe0\x00\x50"),
        Event(300, b"\xe0\x00\x40"),
    )
    cello = track(
        meta(0, 3, "cello"), Event(0, b"\xc1\x2a"), *(note(192 * k, 192 * k + 180, 48 + k, 1) for k in range(4))
    )
    drums = track(meta(0, 3, "drums"), *(note(48 * k, 48 * k + 10, 36, 9) for k in range(16)))
    return project(conductor, violin, cello, drums, **how)


def heard(data):
    return read_tracks(data, "a test")


LONGEST = 900  # ticks


@st.composite
def files(draw):
    """Tracks of three channels, or two hands of one, with pedals anywhere; no pitch overlaps itself on a channel."""
    hands = draw(st.booleans())
    tracks: list[list[Event]] = [[], [], []]
    for t in range(3):
        channel, at = (0 if hands and t < 2 else t), dict.fromkeys(range(40 + 10 * t, 46 + 10 * t), 0)
        for _ in range(draw(st.integers(1, 12))):
            pitch = draw(st.sampled_from(sorted(at)))
            on = at[pitch] + 2 * draw(st.integers(0, 100))
            off = on + 2 * draw(st.integers(4, 100))
            at[pitch] = off + 2
            tracks[t] += [Event(on, bytes([0x90 | channel, pitch, 80])), Event(off, bytes([0x80 | channel, pitch, 0]))]
        down = False
        for tick in sorted(draw(st.sets(st.integers(0, LONGEST // 2), max_size=6))):
            down = not down
            value = draw(st.integers(64, 127)) if down else draw(st.integers(0, 63))
            tracks[t].append(Event(2 * tick + 1, bytes([0xB0 | channel, 64, value])))
    # a pedal that is up at the end, and a last note far behind, so that every gap has something after it
    last = [Event(1500, bytes([0xB0 | c, 64, 0])) for c in range(3)]
    last += [Event(1500, b"\x90\x20\x50"), Event(1600, b"\x80\x20\x00")]
    return [track(*events) for events in tracks] + [track(last)]


def without_lifts(tracks, forgets):
    """Files whose pedals nothing lifts at the end, if that is asked."""
    last = track([e for e in tracks[-1].events if e.kind != 0xB0])
    return [*tracks[:-1], last] if forgets else tracks
