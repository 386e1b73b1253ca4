"""A person's file for the page: a waltz in four tracks on the beat, with an upbeat."""

import mido

QUARTER = 480
BEAT_S = 0.4375
BARS = 8
TUNE = (67, 72, 76, 79, 77, 76, 74, 71, 74, 77, 76, 74, 72, 67, 64, 60, 62, 64, 65, 69, 72, 71, 67, 71, 72)


def waltz(path):
    """Bar 1 begins at the third quarter after time 0, and the upbeat at the second."""
    tracks: dict[str, list[tuple[float, int, int, float]]] = {"flute": [], "strings": [], "bass": [], "drums": []}
    for k, pitch in enumerate(TUNE):
        tracks["flute"].append((2 + k, pitch, 0, 0.9))
    for bar in range(BARS):
        root = (48, 43, 41, 48)[bar // 2 % 4]
        tracks["bass"].append((3 + 3 * bar, root - 12, 2, 0.9))
        for beat in (1, 2):
            for step in (0, 4, 7):
                tracks["strings"].append((3 + 3 * bar + beat, root + 12 + step, 1, 0.5))
        tracks["drums"].append((3 + 3 * bar, 36, 9, 0.2))
    midi = mido.MidiFile(type=1, ticks_per_beat=QUARTER)
    midi.add_track().extend(
        [
            mido.MetaMessage("time_signature", numerator=3, denominator=4),
            mido.MetaMessage("set_tempo", tempo=round(BEAT_S * 1e6)),
        ]
    )
    for name, notes in tracks.items():
        track, events, now = midi.add_track(name), [], 0
        for quarter, pitch, channel, lasts in notes:
            kinds = (quarter, "note_on", 80), (quarter + lasts, "note_off", 0)
            events += [(round(QUARTER * at), kind, pitch, channel, loud) for at, kind, loud in kinds]
        for tick, kind, pitch, channel, loud in sorted(events):
            track.append(mido.Message(kind, note=pitch, channel=channel, velocity=loud, time=tick - now))
            now = tick
    midi.save(path)
    return path
