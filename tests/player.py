"""Plays a MIDI file as a synthesizer does, by mido: another reader than ours, which forgives nothing."""

import io
from typing import Any, NamedTuple

import mido


class Sound(NamedTuple):
    """A note as it sounds, in ticks; it ends with its key, or when the pedal comes up."""

    on: int
    off: int
    channel: int
    pitch: int
    program: int
    bend: int
    expression: int


def play(data: bytes) -> list[Sound]:
    """All that sounds, in order of its begin. A key's end is for the note of its pitch that began last; what begins
    again ends what sounds. Raises AssertionError if something sounds for ever."""
    midi = mido.MidiFile(file=io.BytesIO(data), clip=True)
    keys: dict[tuple[int, int], list[Any]] = {}  # channel and pitch -> tick, state, key is down
    control: dict[tuple[int, int], int] = {}
    program, bend, out, tick = dict[int, int](), dict[int, int](), list[Sound](), 0

    def end(key, at):
        on, state, _ = keys.pop(key)
        out.append(Sound(on, at, *key, *state))

    for message in mido.merge_tracks(midi.tracks):
        tick += message.time
        channel: int = getattr(message, "channel", -1)
        if message.type == "note_on" and message.velocity:
            if (key := (channel, message.note)) in keys:
                end(key, tick)
            state = program.get(channel, 0), bend.get(channel, 0), control.get((channel, 11), 127)
            keys[key] = [tick, state, True]
        elif message.type in ("note_on", "note_off") and (key := (channel, message.note)) in keys:
            keys[key][2] = False
            if control.get((channel, 64), 0) < 64:
                end(key, tick)
        elif message.type == "control_change":
            control[channel, message.control] = message.value
            if message.control in (120, 123) or (message.control == 64 and message.value < 64):
                for key in [
                    k for k, (_, _, down) in keys.items() if k[0] == channel and (message.control != 64 or not down)
                ]:
                    end(key, tick)
        elif message.type == "program_change":
            program[channel] = message.program
        elif message.type == "pitchwheel":
            bend[channel] = message.pitch
    assert not keys, f"sounds for ever: {keys}"
    return sorted(out)
