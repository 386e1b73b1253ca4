"""A score as a MIDI file, within one tick, by pretty_midi."""

from pathlib import Path

import numpy as np
import pretty_midi

from musictx.files import replacing
from musictx.music.score import DRUMS, Score

TICKS_PER_QUARTER = 480
MAX_MSPQ = 0xFFFFFF  # a MIDI tempo has 24 bits


def write_midi(score: Score, path: Path, signature: tuple[int, int] | None = None) -> None:
    """Writes a track a program at the score's tempo, and another for overlaps of one pitch.

    `signature` is (beats, unit of a beat)."""
    mspq = min(max(round(score.quarter_s * 1e6), 1), MAX_MSPQ)
    # pretty_midi truncates the tempo it writes: a quarter of a microsecond more keeps it from being one too small
    midi = pretty_midi.PrettyMIDI(resolution=TICKS_PER_QUARTER, initial_tempo=6e7 / (mspq + 0.25))
    if signature is not None and signature != (4, 4):  # pretty_midi writes 4/4 by itself
        midi.time_signature_changes = [pretty_midi.TimeSignature(*signature, 0.0)]
    tick_s = mspq / 1e6 / TICKS_PER_QUARTER
    midi_tick_s = (mspq + 0.25) / 1e6 / TICKS_PER_QUARTER
    onset = np.rint(score.onset_s / tick_s).astype(np.int64)
    offset = np.maximum(np.rint(score.offset_s / tick_s).astype(np.int64), onset + 1)
    layers: list[pretty_midi.Instrument] = []
    ends: list[dict[int, int]] = []  # per layer: where the last note of each pitch ends
    programs: list[int] = []
    columns = (onset, offset, score.pitch, score.velocity, score.program)
    for start, end, pitch, velocity, program in sorted(zip(*(c.tolist() for c in columns), strict=True)):
        fits = (i for i, e in enumerate(ends) if programs[i] == program and e.get(pitch, 0) <= start)
        layer = next(fits, len(layers))
        if layer == len(layers):
            layers.append(pretty_midi.Instrument(program % DRUMS, is_drum=program == DRUMS))
            programs.append(program)
            ends.append({})
        ends[layer][pitch] = end
        layers[layer].notes.append(pretty_midi.Note(velocity, pitch, start * midi_tick_s, end * midi_tick_s))
    midi.instruments.extend(layers)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        midi.write(str(partial))
