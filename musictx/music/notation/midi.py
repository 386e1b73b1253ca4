"""Notation -> the bytes of a MIDI file, and back where every note of a file begins on the grid of twenty-fourths."""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import mido
import numpy as np

from musictx.errors import MidiError, PerformanceError, ScoreError
from musictx.music.channels import CHANNELS, DRUM_CHANNEL, Places, drums_of
from musictx.music.chunks import Chunks, read_chunks
from musictx.music.midi_file import BEND, CONTROL, META, PROGRAM, Event, EventFile, events_of
from musictx.music.notation.lengths import TAIL, apart, on_grid, without_tails
from musictx.music.notation.lyrics import LYRIC, in_midi, syllables_in
from musictx.music.notation.midi_staves import MidiStaff, staves_of, title_of
from musictx.music.notation.notation import MOST_PARTS, Losses, Notation
from musictx.music.notation.parts import MOST_QUARTERS, SIMPLER, UNSAID, Bar, Key, Part, Tempo, name_of
from musictx.music.notation.swing import NEAR, Swing, nearness, straight
from musictx.music.raw import read_raw
from musictx.music.score import UNITS

TICKS = 480  # a quarter: 20 ticks are a unit
VELOCITY = 80
SHARPS = ("C", "G", "D", "A", "E", "B", "F#", "C#")
FLATS = ("C", "F", "Bb", "Eb", "Ab", "Db", "Gb", "Cb")
LOOSE, ENOUGH = 0.25, 16  # and of a score whose notes are a little off, if so many places show it: they get the nearest
TUPLETS = (10, 14)  # of a quarter: quintuplets and septuplets, which the grid lacks
NAME, MARKER, UPBEAT = 0x03, 0x06, "upbeat"
MINOR = ("minor", "aeolian", "dorian", "phrygian", "locrian")  # modes with a minor third
SHOWN = 4 * UNITS  # how long a tempo of a MIDI file lasts that is printed
PEDAL, DOWN, CENTRE = 64, 64, b"\x00\x40"
KEPT = {"markers", "pedals", "programs", "bends", "swung"}  # losses of a score, not of music that goes on in its file


def to_midi(
    notation: Notation, loud: Mapping[tuple[int, int, int], int] | None = None, numbers: Sequence[int] | None = None
) -> bytes:
    """A track for each staff, and before them one with meters, keys and tempi. Raises ValueError for a meter that MIDI
    lacks.

    `loud` has velocities by the staff, its place or that of `numbers`, by onset and by pitch."""
    loud, numbers = loud or {}, numbers or range(len(notation.parts))
    file = mido.MidiFile(ticks_per_beat=TICKS)
    clock: list[tuple[int, mido.MetaMessage]] = []
    line, signed = 0, (0, 0)
    for bar, end in notation.spans:
        meter = meter_of(bar, end)
        if meter != signed or line != bar.onset:  # a signature begins a bar, also where the one before is broken off
            if meter[0] > 255 or meter[1] & (meter[1] - 1):
                raise ValueError(f"it has bars of {meter[0]}/{meter[1]}, which MIDI cannot say: {SIMPLER}")
            clock.append((bar.onset, mido.MetaMessage("time_signature", numerator=meter[0], denominator=meter[1])))
        line, signed = bar.onset + Bar(0, *meter).full, meter
    if notation.has_upbeat and not is_short(notation.bars[1].onset, notation.bars[1].full):
        clock.append((0, mido.MetaMessage("marker", text=UPBEAT)))
    clock += [(each.onset, mido.MetaMessage("key_signature", key=_name(each))) for each in notation.keys]
    clock += [
        (at, mido.MetaMessage("set_tempo", tempo=min(round(60e6 / speed), 2**24 - 1)))
        for at, speed, _ in notation.tempi
    ]
    if notation.title:
        clock.append((0, _text(NAME, notation.title)))
    file.tracks.append(_track(clock, notation.end, notation.swing))
    for n, part in enumerate(notation.parts):
        _, channel = place_of(n)
        events: list[tuple[int, mido.Message | mido.MetaMessage]] = [
            *[(0, mido.MetaMessage("midi_port", port=port)) for port in [n // (CHANNELS - 1)] if port],
            (0, _text(NAME, name_of(n, part))),
            (0, mido.Message("program_change", channel=channel, program=part.program)),
        ]
        events += [(at, _text(LYRIC, text)) for at, text in in_midi(part.lyrics).items()]
        for note in apart(part.notes):
            velocity = loud.get((numbers[n], note.onset, note.pitch), VELOCITY)
            events.append((note.onset, mido.Message("note_on", channel=channel, note=note.pitch, velocity=velocity)))
            events.append((note.offset, mido.Message("note_off", channel=channel, note=note.pitch)))
        file.tracks.append(_track(events, notation.end, notation.swing))
    out = io.BytesIO()
    file.save(file=out)
    return out.getvalue()


def _text(kind: int, text: str) -> mido.MetaMessage:
    """A text of a track in UTF-8; mido has one charset for all threads."""
    return mido.UnknownMetaMessage(kind, data=text.encode())


def place_of(n: int) -> tuple[int, int]:
    """The track and the channel that `to_midi` gives part `n`; after each 15 follows another port."""
    free = [channel for channel in range(CHANNELS) if channel != DRUM_CHANNEL]
    return n + 1, free[n % len(free)]


def lost_in_midi(notation: Notation) -> Losses:
    """Chord symbols, all verses but one, and notes with which a longer one of their staff and pitch begins."""
    unisons = sum(len(part.notes) - len({(note.onset, note.pitch) for note in part.notes}) for part in notation.parts)
    texts = [{each._replace(voice=0) for each in part.lyrics} for part in notation.parts]  # voices may sing the same
    unsung = sum(len(each) - len(in_midi(part.lyrics)) for each, part in zip(texts, notation.parts, strict=True))
    return +Losses(unison=unisons, unheld=len(notation.symbols), unsung=unsung)


def from_midi(data: bytes, source: object = "") -> tuple[Notation, Losses]:
    """The score of a MIDI file, and its losses, as drums; a note that ends shortly before a usual length gets that.
    Raises MidiError for a file whose notes keep to no grid, as a performance's."""
    return score_in(read_chunks(data, Counter()), source)


def score_in(chunks: Chunks, source: object = "") -> tuple[Notation, Losses]:
    """The score of a MIDI file's chunks, as `from_midi`."""
    file = events_of(chunks)
    per_quarter = int.from_bytes(file.division)
    if per_quarter & 0x8000 or not per_quarter:
        raise MidiError(
            source, "it counts frames of a film, not quarters, so it is no score", "give a MIDI file with a beat"
        )
    per_unit = per_quarter / UNITS
    is_coarse, near = per_quarter < UNITS, nearness(per_unit)
    drums = drums_of(read_raw(chunks, Counter()).channels)
    file, swing = straight(file, drums)
    staves, beaten = staves_of(file, drums)
    notes = [note for staff in staves for note in staff.notes]
    beside = [note.on for note in notes if not _is_near(note.on, per_unit, near)]
    loose = LOOSE if len({note.on for note in notes}) >= ENOUGH else near
    far = (tick for tick in beside if not (is_coarse or _is_near(tick, per_unit, loose)))
    total, off = len(notes), sum(not _is_tuplet(tick, per_quarter) for tick in far)
    parts = [Part(staff.name, staff.program, on_grid(staff.notes, per_unit)) for staff in staves]
    parts, unsung = with_lyrics(parts, staves, file, per_unit)
    losses = Losses(drums=beaten, finer=len(beside), lyrics=unsung, swung=int(not swing.is_straight))
    losses.update(_unwritten(file, drums))
    losses["shared"] = total - sum(len(part.notes) for part in parts)
    if not total:
        raise MidiError(source, "it has no notes" + " but drums" * (losses["drums"] > 0), "give a score with notes")
    if off:
        why = f"is a performance, not a score: {off} of its {total} notes begin beside all twenty-fourths of a quarter"
        raise PerformanceError(source, why, "quantise it in a DAW or a notation program")
    if (count := len(parts)) > MOST_PARTS:
        raise ScoreError(source, f"it has {count} staves, and at most {MOST_PARTS} are written", "give fewer tracks")
    if (end := max(note.offset for part in parts for note in part.notes)) > MOST_QUARTERS * UNITS:
        raise MidiError(source, f"it lasts more than {MOST_QUARTERS:,} quarters", "cut it")
    events = sorted((each for track in file.tracks for each in track.events if each.kind == META), key=lambda x: x.tick)
    meta = [(round(each.tick / per_unit), each.data) for each in events]  # of two at one place the later counts
    meters = {at: (d[3], 2 ** d[4]) for at, d in meta if d[1] == 0x58 and len(d) >= 5 and d[3] and d[4] < 16}
    has_upbeat = any(at == 0 and d[1] == MARKER and d[3:] == UPBEAT.encode() for at, d in meta)
    within = {at: meter for at, meter in meters.items() if at < end}
    bars, full = _bars(within, end, has_upbeat, source)
    beyond = (note.off / per_unit - bars[-1].onset for note in notes)
    is_written = any(at > 0 and abs(at / 3 - round(at / 3)) < 1e-6 for at in beyond)  # an exact thirty-second
    if end - (line := bars[-1].onset) < TAIL and not is_written and (cut := without_tails(parts, line)):
        parts, (bars, full) = cut, _bars(within, line, has_upbeat, source)
    end = full
    signed = {at: (d[3] - 256 * (d[3] > 127), "minor" * (d[4:5] == b"\1")) for at, d in meta if d[1] == 0x59 and d[3:]}
    keys = [Key(at, sharps, mode) for at, (sharps, mode) in signed.items() if abs(sharps) <= 7]
    speeds = {at: 60e6 / t for at, d in meta if d[1] == 0x51 and (t := int.from_bytes(d[3:6]))}
    lasts = (after - at for at, after in pairwise([*speeds, inf]))  # of a ramp no tempo but the last stays for long
    tempi = [Tempo.within(*each, UNITS * (long >= SHOWN)) for each, long in zip(speeds.items(), lasts, strict=True)]
    notation = Notation(
        tuple(parts),
        bars,
        end,
        tuple(keys) if not keys or keys[0].onset == 0 else (Key(0, 0), *keys),
        tuple(tempi) if tempi and tempi[0].onset == 0 else (UNSAID, *tempi),
        title=title_of(file),
        swing=swing,
    )
    return notation, +losses


def _unwritten(file: EventFile, drums: Places) -> Losses:
    """What a score lacks of a file: markers, changes of a channel's sound, and how often its pedal goes down and its
    pitch leaves the centre."""
    losses = Losses()
    for t, track in enumerate(file.tracks):
        states: dict[tuple[str, int | None], int] = {}
        begun: dict[int | None, int] = {}  # where a channel's first note is
        for event in track.events:
            if event.kind == META:
                losses["markers"] += event.data[1] == MARKER and event.text != UPBEAT.encode()
            if event.begins:
                begun.setdefault(event.channel, event.tick)
            kind, state = _state(event)
            if not kind or (t, event.channel) in drums:
                continue
            is_lost = begun.get(event.channel, event.tick) < event.tick if kind == "programs" else state > 0
            losses[kind] += is_lost and state != states.get((kind, event.channel), 0)
            states[kind, event.channel] = state
    return losses


def _state(event: Event) -> tuple[str, int]:
    """What an event of a channel changes, and to what; 0 is how a channel begins."""
    if event.kind == CONTROL and event.data[1] == PEDAL:
        return "pedals", int(event.data[2] >= DOWN)
    if event.kind == BEND:
        return "bends", int(event.data[1:3] != CENTRE)
    return ("programs", event.data[1]) if event.kind == PROGRAM else ("", 0)


def _is_near(tick: int, per_place: float, near: float) -> bool:
    return abs(tick / per_place - round(tick / per_place)) <= near


def _is_tuplet(tick: int, per_quarter: int) -> bool:
    """Whether a note of a tuplet begins there, rounded to a tick."""
    return any(_is_near(tick, per_quarter / n, max(NEAR * n / UNITS, 0.5 * n / per_quarter)) for n in TUPLETS)


def with_lyrics(
    parts: Sequence[Part], staves: Sequence[MidiStaff], file: EventFile, per_unit: float
) -> tuple[list[Part], int]:
    """The words of each track with the staff of it, or of all where it has none, that has most notes at their places;
    how many words have none there."""
    sung, lost = list(parts), 0
    onsets = [{note.onset for note in part.notes} for part in parts]
    for t, track in enumerate(file.tracks):
        words = syllables_in(track, per_unit)
        mine = [n for n, staff in enumerate(staves) if t in {track for track, _ in staff.places}] or range(len(staves))
        if words and mine:
            n = max(mine, key=lambda n: sum(each.onset in onsets[n] for each in words))
            below = [each for each in words if each.onset in onsets[n]]
            sung[n] = replace(sung[n], lyrics=tuple(sorted((*sung[n].lyrics, *below))))
            lost += len(words) - len(below)
    return sung, lost


def is_short(length: int, full: int) -> bool:
    """Whether a first bar is an upbeat by its length, at most half of the next: of 2,088 scores (OpenScore Lieder and
    music21's corpus) 718 begin with such an upbeat, 12 with a longer one, and 4 change their meter from the longer."""
    return 2 * length <= full


def _bars(
    by_onset: dict[int, tuple[int, int]], end: int, has_upbeat: bool, source: object
) -> tuple[tuple[Bar, ...], int]:
    """Bar lines from time signatures. A first bar in a shorter meter than the next is an upbeat in that, if it
    `has_upbeat`, is short, or the last bar is what it lacks; else the meter changes."""
    if not by_onset or min(by_onset) > 0:
        by_onset = {0: (4, 4), **by_onset}
    bars: list[Bar] = []
    for (at, meter), border in zip(by_onset.items(), [*by_onset, end][1:], strict=True):
        bars += Bar(at, *meter).filled(border, source)
    if len(bars) > 1 and (length := bars[0].full) == bars[1].onset < (full := bars[1].full):
        ends_early = bars[-1][1:] != bars[1][1:] and length + bars[-1].full == full
        if has_upbeat or ends_early or is_short(length, full):
            bars[0] = bars[1]._replace(onset=0)
    return tuple(bars), max(end, bars[-1].onset + bars[-1].full)


def meter_of(bar: Bar, end: int) -> tuple[int, int]:
    """The time signature under which a bar has its length."""
    length = end - bar.onset
    if length == bar.full:
        return bar.numerator, bar.denominator
    for denominator in sorted({bar.denominator, 4, 8, 16, 32}):
        if length * denominator % (4 * UNITS) == 0 and length * denominator // (4 * UNITS) <= 255:
            return length * denominator // (4 * UNITS), denominator
    return bar.numerator, bar.denominator


def _name(key: Key) -> str:
    """A key as mido names it; a minor one signs the sharps of the major key a minor third higher."""
    fifths = key.sharps + 3 * (key.mode in MINOR)
    names = SHARPS + ("G#", "D#", "A#") if fifths >= 0 else FLATS
    return names[abs(fifths)] + "m" * (key.mode in MINOR)


def _track(events: list[tuple[int, mido.Message | mido.MetaMessage]], end: int, swing: Swing) -> mido.MidiTrack:
    """Events by time; notes end before others begin."""
    order = sorted(events, key=lambda each: (each[0], each[1].type == "note_on"))
    ticks = np.rint(swing.played([at for at, _ in order] + [end]) * (TICKS / UNITS)).astype(int).tolist()
    track, now = mido.MidiTrack(), 0
    for tick, (_, message) in zip(ticks, order, strict=False):
        track.append(message.copy(time=tick - now))
        now = tick
    track.append(mido.MetaMessage("end_of_track", time=max(ticks[-1] - now, 0)))
    return track
