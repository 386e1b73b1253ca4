"""A file's use of a MIDI channel, and its state where new notes come."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import count, pairwise
from statistics import median_high

from musictx.music import midi_file as midi
from musictx.music.channels import CHANNELS, DRUM_CHANNEL, NOTES_OFF, SOUND_OFF
from musictx.music.midi_file import Event, EventTrack, Note, notes_of
from musictx.music.ticks import PEDAL, PEDAL_DOWN

CENTRE = bytes([0x00, 0x40])  # of a pitch bend
CUTS = (SOUND_OFF, *range(NOTES_OFF, 128))  # controls that end all notes
SOUND = (0, 32, 7, 10)  # controls that a part keeps: bank, volume, place
VOLUME = (7,)  # and those of another instrument
BEGINS = {0: 0, 32: 0, 7: 100, 8: 64, 10: 64, 5: 0, 65: 0, 91: 40, 93: 0}  # controls where a file begins
DATA = 6  # the control that sets the reach of bends
REACH = (101, 0), (100, 0), (DATA, 2), (38, 0), (101, 127), (100, 127)  # two semitones
RESTS = {1: 0, 11: 127, PEDAL: 0, 66: 0, 67: 0}  # modulation, expression and pedals at rest
USUAL = {1: 0, 7: 100, 11: 127}  # modulation, volume and expression, which a part has in its own way
LEVELS = (7, 11)


def place_for(
    tracks: Sequence[EventTrack], notes: Sequence[Note], tick: int, used: set[int], shared: int | None, like: int | None
) -> tuple[int, bool]:
    """A channel for new notes from a tick on, and whether its sound may change since no note of the file follows.

    The `shared` one, an unused one, or one that has ended; else one without other notes meanwhile, best `like`; else
    one of another port, from `CHANNELS` on."""
    last = dict.fromkeys((c for c in range(CHANNELS) if c != DRUM_CHANNEL), -1)
    for track in tracks:
        for event in track.events:
            if event.channel in last:
                last[event.channel] = max(last[event.channel], event.tick)
    quiet = [c for c in sorted(last, key=lambda c: last[c]) if c not in used and last[c] <= tick]
    if shared in quiet:
        return shared, True
    if quiet:
        return quiet[0], True
    sounding = [note for track in tracks for note in notes_of(track)]
    for channel in sorted(last, key=lambda c: c != like):
        is_alone = all(is_free(n, channel, sounding, ()) and lasts(tracks, channel, n.on, n.off) for n in notes)
        if channel not in used and is_alone:
            return channel, False
    ports = [e.data[-1] for track in tracks for e in track.events if e.data[:2] == bytes([midi.META, midi.PORT])]
    beyond = count(CHANNELS * (max(ports, default=0) + 1))
    return next(c for c in beyond if c not in used and c % CHANNELS != DRUM_CHANNEL), True


def value_of(
    tracks: Sequence[EventTrack], channel: int, tick: int, kind: int, control: int | None = None, default: int = 0
) -> int:
    """A channel's program, or value of a control, at a tick."""
    return (last_of(tracks, channel, tick, kind, control) or bytes([default]))[-1]


def last_of(tracks: Sequence[EventTrack], channel: int, tick: int, kind: int, control: int | None = None) -> bytes:
    """The last event of a kind up to a tick, or nothing."""
    latest = (-1, b"")
    for track in tracks:
        for event in track.events:
            if event.tick > tick:
                break
            if event.kind == kind and event.channel == channel and control in (None, event.data[1]):
                latest = max((event.tick, event.data), latest, key=lambda each: each[0])
    return latest[1]


def is_down(tracks: Sequence[EventTrack], channel: int, first: int, last: int) -> bool:
    """Whether a channel's pedal is down between two ticks."""
    is_pressed = any(
        first <= event.tick < last
        and event.kind == midi.CONTROL
        and event.channel == channel
        and event.data[1] == PEDAL
        and event.data[2] >= PEDAL_DOWN
        for track in tracks
        for event in track.events
    )
    return is_pressed or value_of(tracks, channel, first, midi.CONTROL, PEDAL) >= PEDAL_DOWN


def lasts(tracks: Sequence[EventTrack], channel: int, on: int, off: int) -> bool:
    """Whether a note lasts from `on` to `off`: no pedal holds it, and nothing ends it earlier."""
    is_cut = any(
        on < event.tick < off and event.kind == midi.CONTROL and event.channel == channel and event.data[1] in CUTS
        for track in tracks
        for event in track.events
    )
    return not is_cut and not is_down(tracks, channel, off, off + 1)


def usual_of(tracks: Sequence[EventTrack], channel: int, tick: int, control: int) -> int:
    """A control for a part that goes on at a tick: the median of its values where the channel's notes began, since a
    fade is short beside what it ends; of a level the highest until the next note, as notes swell. One that has risen
    stays."""
    events = sorted((e for track in tracks for e in track.events if e.channel == channel and e.tick <= tick), key=_tick)
    moves = [e for e in events if e.kind == midi.CONTROL and e.data[1] == control]
    values, ticks = [USUAL[control], *(e.data[2] for e in moves)], [e.tick for e in moves]
    begins = [bisect_right(ticks, e.tick) for e in events if e.begins] or [len(ticks)]
    if control not in LEVELS:
        return median_high(values[k] for k in begins)
    highest = (max(values[k : end + 1]) for k, end in pairwise([*begins, len(ticks)]))
    return max(median_high(highest), values[-1])


def _tick(event: Event) -> int:
    return event.tick


def rest_events(tracks: Sequence[EventTrack], channel: int, tick: int, *, goes_on: bool = False) -> list[Event]:
    """Events that end a channel's pedals, bends and fades; a part that `goes_on` there is as loud as before a fade."""
    out, rests = [], RESTS
    if goes_on:
        rests = RESTS | {control: usual_of(tracks, channel, tick, control) for control in USUAL}
    for control, rest in rests.items():
        if value_of(tracks, channel, tick, midi.CONTROL, control, rest) != rest:
            out.append(Event(tick, bytes([midi.CONTROL | channel, control, rest])))
    if last_of(tracks, channel, tick, midi.BEND)[1:] not in (b"", CENTRE):
        out.append(Event(tick, bytes([midi.BEND | channel]) + CENTRE))
    if value_of(tracks, channel, tick, midi.PRESSURE):
        out.append(Event(tick, bytes([midi.PRESSURE | channel, 0])))
    return out


def reset_events(tracks: Sequence[EventTrack], channel: int, tick: int) -> list[Event]:
    """Events that set a channel back to its state at the beginning of a file."""
    to, out = midi.CONTROL | channel, rest_events(tracks, channel, tick)
    if last_of(tracks, channel, tick, midi.CONTROL, DATA):
        out += [Event(tick, bytes([to, *each])) for each in REACH]
    out += [
        Event(tick, bytes([to, control, value]))
        for control, value in BEGINS.items()
        if value_of(tracks, channel, tick, midi.CONTROL, control, value) != value
    ]
    if value_of(tracks, channel, tick, midi.PROGRAM):
        out.append(Event(tick, bytes([midi.PROGRAM | channel, 0])))
    return out


def sound_of(tracks: Sequence[EventTrack], like: int | None, channel: int, program: int, tick: int) -> list[Event]:
    """Events that give a channel the volume of another before a fade, and its bank and place where both play this
    program."""
    if like is None:
        return []
    kept = SOUND if like != channel and value_of(tracks, like, tick, midi.PROGRAM) == program else VOLUME
    values = ((control, last_of(tracks, like, tick, midi.CONTROL, control)) for control in kept)
    said = {control: data[-1] for control, data in values if data}
    said |= {control: usual_of(tracks, like, tick, control) for control in VOLUME if control in said}
    to = midi.CONTROL | channel % CHANNELS
    return [Event(tick, bytes([to, control, value])) for control, value in said.items()]


def is_free(note: Note, channel: int, sounding: Sequence[Note], new: Sequence[Note]) -> bool:
    """Whether a channel has no other note of this pitch meanwhile."""
    others = [each for each in sounding if each.channel == channel] + [each for each in new if each is not note]
    return not any(each.pitch == note.pitch and each.on < note.off and note.on < each.off for each in others)
