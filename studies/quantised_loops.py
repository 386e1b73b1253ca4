"""Loops of our own for the set of quantised pieces: drums, bass, chords and a tune, drawn from a random seed.

Nothing is taken from anywhere. A loop is four bars of 4/4 that come four times. The chords are a tonic, two others and
one that leads back. All players have a rhythm of their own, drawn once; the tune enters the second time, and each time
the drums end with a fill. Straight loops have sixteenths. Swung ones have eighths, of which the second is late.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from quantised_scores import TICKS, Note, Part, Piece, apart

from musictx.music.score import DRUMS

BARS, TIMES = 4, 4
MODES = {"major": (0, 2, 4, 5, 7, 9, 11), "minor": (0, 2, 3, 5, 7, 8, 10)}
MIDDLE, BACK = {"major": (5, 3, 1, 2), "minor": (5, 3, 2, 6)}, {"major": (4, 3), "minor": (4, 6)}  # degrees of chords
KICK, SNARE, HAT, RIDE = 36, 38, 42, 51
KEYS, BASS, LEAD = (0, 4, 16), (33, 38), (80, 73, 65)  # programs to draw from
LATE = (320, 300, 288)  # ticks: where the second eighth of a beat lies in swung loops

Place = Callable[[int], int]  # the tick of a step


def straight(step: int) -> int:
    return step * TICKS // 4


def swung(late: int) -> Place:
    return lambda step: step // 2 * TICKS + step % 2 * late


def loop(seed: int, swings: bool = False) -> Piece:
    """One piece of a number; the same number gives the same piece."""
    rng = np.random.default_rng([seed, int(swings)])
    late = LATE[seed % len(LATE)]
    place, steps = (swung(late), 8) if swings else (straight, 16)
    mode = str(rng.choice(list(MODES)))
    tonic, bpm = int(rng.integers(55, 67)), float(rng.integers(42, 68) * 2)
    chords = [0, *rng.choice(MIDDLE[mode], 2, replace=False).tolist(), int(rng.choice(BACK[mode]))]

    def pitch(degree: int, octave: int = 0) -> int:
        return tonic + 12 * (octave + degree // 7) + MODES[mode][degree % 7]

    parts = [
        Part("Drums", DRUMS, drums(rng, steps, place, swings)),
        Part("Bass", int(rng.choice(BASS)), bass(rng, steps, place, chords, pitch, swings)),
        Part("Keys", int(rng.choice(KEYS)), comping(rng, steps, place, chords, pitch)),
        Part("Lead", int(rng.choice(LEAD)), tune(rng, steps, place, chords, pitch)),
    ]
    return Piece([each._replace(notes=apart(each.notes)) for each in parts], (4, 4), 0, [(0, bpm)])


def rhythm(rng: np.random.Generator, steps: int, beats: float, others: float) -> list[int]:
    """Steps of a bar, the first among them: those on a beat and the others with such probabilities."""
    beat = steps // 4
    return [k for k in range(steps) if k == 0 or rng.random() < (beats if k % beat == 0 else others)]


def held(at: Sequence[int], end: int, place: Place, share: float = 1.0) -> list[tuple[int, int]]:
    """From when to when notes at these steps sound, each up to the next, the last to the end, or a share of that."""
    ticks = [place(step) for step in [*at, end]]
    return [(on, on + round((off - on) * share)) for on, off in pairwise(ticks)]


def drums(rng: np.random.Generator, steps: int, place: Place, swings: bool) -> list[Note]:
    kick, beat = rhythm(rng, steps, 0.4, 0.1), steps // 4
    hat = [k for k in range(steps) if k % (1 if swings or rng.random() < 0.3 else 2) == 0]
    fill = [k for k in range(steps - beat, steps) if rng.random() < 0.8]
    found = []
    for bar in range(BARS * TIMES):
        hits = [(k, KICK, 100) for k in kick] + [(k, SNARE, 96) for k in (beat, 3 * beat)]
        hits += [(k, RIDE if swings else HAT, 84 if k % beat == 0 else 64) for k in hat]
        hits += [(k, SNARE, 90) for k in fill] if bar % BARS == BARS - 1 else []
        found += [
            Note(on := place(bar * steps + k), on + TICKS // 8, key, loud) for k, key, loud in dict.fromkeys(hits)
        ]
    return found


def bass(
    rng: np.random.Generator, steps: int, place: Place, chords: list[int], pitch: Callable[..., int], swings: bool
) -> list[Note]:
    """The root at the first step, then chord notes; a walking bass in swung loops, whose last beat leads on."""
    at = list(range(0, steps, 2)) if swings else rhythm(rng, steps, 0.7, 0.2)
    tones = [0, *rng.choice((0, 0, 2, 4), len(at) - 1).tolist()]
    found = []
    for bar in range(BARS * TIMES):
        chord, after = chords[bar % BARS], chords[(bar + 1) % BARS]
        degrees = [chord + tone for tone in tones[:-1]] + [after - 1 if swings else chord + tones[-1]]
        times = held([bar * steps + k for k in at], (bar + 1) * steps, place, 0.75)
        found += [Note(*time, pitch(degree, -2), 92) for time, degree in zip(times, degrees, strict=True)]
    return found


def comping(
    rng: np.random.Generator, steps: int, place: Place, chords: list[int], pitch: Callable[..., int]
) -> list[Note]:
    at = rhythm(rng, steps, 0.5, 0.12)
    share = float(rng.choice((0.5, 1.0)))
    found = []
    for bar in range(BARS * TIMES):
        times = held([bar * steps + k for k in at], (bar + 1) * steps, place, share)
        # inverted, so that hands move little: each chord within an octave
        keys = [pitch((chords[bar % BARS] + tone) % 7) for tone in (0, 2, 4)]
        found += [Note(*time, key, 72) for time in times for key in keys]
    return found


def tune(
    rng: np.random.Generator, steps: int, place: Place, chords: list[int], pitch: Callable[..., int]
) -> list[Note]:
    """A motif of two bars that follows the chords, from the second time on; its second half varies."""
    motif = [(rhythm(rng, steps, 0.5, 0.15), rng.integers(-1, 2)) for _ in range(2)]
    found = []
    for bar in range(BARS, BARS * TIMES):
        at, turn = motif[bar % 2]
        if bar % 2 and rng.random() < 0.5:
            at = rhythm(rng, steps, 0.4, 0.15)
        degree = chords[bar % BARS] % 7 + 2 * int(rng.integers(0, 2))
        times = held([bar * steps + k for k in at], (bar + 1) * steps, place, 0.9)
        for k, time in enumerate(times):
            found.append(Note(*time, pitch(degree, 1), 88 if k else 96))
            degree = int(np.clip(degree + (turn if k % 2 else rng.integers(-2, 3)), 0, 8))
    return found
