"""Little songs with the melody in its own track, laid out as the archive of POP909."""

import mido
import numpy as np


def track(name, notes):
    """Notes of (onset, end, pitch) in ticks, as a track of that name."""
    events = [(end, 0, pitch) for _, end, pitch in notes] + [(onset, 80, pitch) for onset, _, pitch in notes]
    out, now = mido.MidiTrack([mido.MetaMessage("track_name", name=name)]), 0
    for at, velocity, pitch in sorted(events):
        out.append(mido.Message("note_on", note=int(pitch), velocity=velocity, time=int(at - now)))
        now = at
    return out


def write_song(path, rng, notes=16):
    """A line of `notes` over chords of two notes a quarter, at 120 quarters a minute."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = [(240 * k, 240 * k + 200, p) for k, p in enumerate(rng.integers(65, 85, notes))]
    chords = [
        (480 * k, 480 * k + 460, p + low) for k, p in enumerate(rng.integers(40, 50, notes // 2)) for low in (0, 7)
    ]
    tracks = [track("MELODY", line), track("BRIDGE", []), track("PIANO", chords)]
    mido.MidiFile(tracks=tracks, ticks_per_beat=480).save(path)
    return path


def write_songs(folder, count):
    rng = np.random.default_rng(5)
    for k in range(1, count + 1):
        write_song(folder / "POP909" / f"{k:03d}" / f"{k:03d}.mid", rng)
    return folder
