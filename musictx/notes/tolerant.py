"""The tolerant reader: mido with clipping, which takes damage that the fast reader refuses."""

import io
from collections import defaultdict
from dataclasses import dataclass, field

import mido
import numpy as np

from musictx.notes.ticks import PEDAL, RawMidi, RawTrack

DRUM_CHANNEL = 9

Note = tuple[int, int, int, int]  # onset, offset, pitch, velocity
Change = tuple[int, int]  # tick, value


@dataclass
class Channel:
    """What one channel of one track has played so far."""

    program: int = 0
    open: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    notes: dict[int, list[Note]] = field(default_factory=lambda: defaultdict(list))  # by program
    pedal: list[Change] = field(default_factory=list)

    def strike(self, tick: int, pitch: int, velocity: int) -> None:
        self.open[pitch].append((tick, velocity, self.program))

    def release(self, tick: int, pitch: int) -> None:
        """Ends the note of this pitch that has sounded longest, as the fast reader does."""
        if self.open[pitch]:
            onset, velocity, program = self.open[pitch].pop(0)
            self.notes[program].append((onset, tick, pitch, velocity))

    def close(self, tick: int) -> None:
        """A note that is never released ends with its track."""
        for pitch, notes in self.open.items():
            for onset, velocity, program in notes:
                self.notes[program].append((onset, tick, pitch, velocity))


def read_mido(data: bytes) -> RawMidi:
    """A MIDI file in ticks. Raises whatever mido raises, ValueError for a file without tracks."""
    midi = mido.MidiFile(file=io.BytesIO(data), clip=True)
    if not midi.tracks:
        raise ValueError("there is no track in it")
    tempos: list[Change] = []
    signatures: list[tuple[int, int, int]] = []
    tracks = [raw for track in midi.tracks for raw in _read_track(track, tempos, signatures)]
    at, mspq = np.array(tempos, dtype=np.int64).reshape(-1, 2).T
    frames, ticks = divmod(midi.ticks_per_beat & 0xFFFF, 256)  # mido reads the two bytes as one signed number
    tick_s = 1 / ((256 - frames) * max(ticks, 1)) if frames >= 128 else None
    bars = np.array(signatures, dtype=np.int64).reshape(-1, 3)
    return RawMidi(tracks, midi.ticks_per_beat, at, mspq, tick_s, signatures=bars)


def _read_track(track: mido.MidiTrack, tempos: list[Change], signatures: list[tuple[int, int, int]]) -> list[RawTrack]:
    channels: dict[int, Channel] = defaultdict(Channel)
    tick, name = 0, ""
    for message in track:
        tick += message.time
        if message.type == "note_on" and message.velocity > 0:
            channels[message.channel].strike(tick, message.note, message.velocity)
        elif message.type in ("note_on", "note_off"):
            channels[message.channel].release(tick, message.note)
        elif message.type == "program_change":
            channels[message.channel].program = message.program
        elif message.type == "control_change" and message.control == PEDAL:
            channels[message.channel].pedal.append((tick, message.value))
        elif message.type == "set_tempo":
            tempos.append((tick, message.tempo))
        elif message.type == "time_signature":
            signatures.append((tick, message.numerator, message.denominator))
        elif message.type == "track_name":
            name = message.name
    raws = []
    for number, channel in channels.items():
        channel.close(tick)
        pedal, value = np.array(channel.pedal, dtype=np.int64).reshape(-1, 2).T
        for program, notes in channel.notes.items():
            onset, offset, pitch, velocity = np.array(notes, dtype=np.int64).reshape(-1, 4).T
            drums = number == DRUM_CHANNEL
            raws.append(RawTrack(name, program, drums, onset, offset, pitch, velocity, pedal, value))
    return raws
