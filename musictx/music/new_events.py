"""New notes, pedals and tempi as events of a MIDI file."""

from collections.abc import Iterable

from musictx.music import midi_file as midi
from musictx.music.midi_file import Event, Note
from musictx.music.pedal import Press
from musictx.music.ticks import PEDAL

MAX_MSPQ = 0xFFFFFF  # a MIDI tempo has 24 bits


def tempo_event(tick: int, quarters_a_minute: float) -> Event:
    mspq = min(max(round(6e7 / quarters_a_minute), 1), MAX_MSPQ)
    return Event(tick, b"\xff\x51\x03" + mspq.to_bytes(3))


def events_of(notes: Iterable[Note], channel: int) -> Iterable[Event]:
    for note in notes:
        yield Event(note.on, bytes([midi.NOTE_ON | channel, note.pitch, note.velocity]))
        yield Event(note.off, bytes([midi.NOTE_OFF | channel, note.pitch, 64]))


def pedal_events(presses: Iterable[Press], channel: int) -> Iterable[Event]:
    for press in presses:
        yield Event(press.down, bytes([midi.CONTROL | channel, PEDAL, 127]))
        yield Event(press.up, bytes([midi.CONTROL | channel, PEDAL, 0]))


def layers_of(notes: list[Note]) -> list[list[Note]]:
    """Notes in layers without overlaps of one pitch."""
    layers, ends = list[list[Note]](), list[dict[int, int]]()
    for note in sorted(notes, key=lambda note: note[:5]):
        layer = next((i for i, end in enumerate(ends) if end.get(note.pitch, 0) <= note.on), len(layers))
        if layer == len(layers):
            layers.append([])
            ends.append({})
        layers[layer].append(note)
        ends[layer][note.pitch] = note.off
    return layers
