"""Finds the chords of music, bar by bar or where they change, and writes them as text that `parse_chords` reads."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from musictx.music.harmony import LETTERS, QUALITIES, Chord
from musictx.music.score import Score

# each chord of `QUALITIES` but 9 has such notes
COMMON_QUALITIES = ("", "m", "7", "maj7", "m7", "dim", "m7b5", "aug", "sus4")
CHORDS = [Chord(root, quality) for quality in COMMON_QUALITIES for root in range(12)]
NOTES = np.array([[pitch in chord.classes for pitch in range(12)] for chord in CHORDS], float)  # (K, 12)
ROOTS = np.array([chord.root for chord in CHORDS])  # (K,)
OF_ROOT = 0.1  # how much a root that sounds counts beside the cosine: chooses among chords that share notes
TOGETHER_S = 0.05  # notes of one chord begin so close to each other


def chords_by_bar(score: Score, lines_s: NDArray[np.float64]) -> str:
    """The chord of each bar between lines (bars + 1,), as in `C | Am | F | G7`. An empty bar has the chord before it.
    There must be notes."""
    from_s, to_s = lines_s[:-1, None], lines_s[1:, None]
    sounds_s = np.minimum(score.offset_s, to_s) - np.maximum(score.onset_s, from_s)  # (bars, N)
    classes = np.eye(12)[score.pitch % 12]  # (N, 12)
    seconds = np.maximum(sounds_s, 0.0) @ classes  # (bars, 12)
    chord = nearest_chord((score.offset_s - score.onset_s) @ classes)
    chords = [chord := nearest_chord(each) if each.any() else chord for each in seconds]
    return " | ".join(map(str, chords))


def nearest_chord(seconds: NDArray[np.floating]) -> Chord:
    """The chord whose notes are nearest to how long each pitch class sounds, (12,): the largest cosine, where a longer
    root counts a little more."""
    cosine_times_norm = NOTES @ seconds / np.sqrt(NOTES.sum(1))
    return CHORDS[int((cosine_times_norm + OF_ROOT * seconds[ROOTS]).argmax())]


def chord_track(score: Score) -> str:
    """All notes that sound together are a chord, from where it changes to where it changes again, as in
    `0 C, 2 Am, 4 C+D+G, 6`; time counts from the first. There must be notes."""
    onset_s = np.unique(score.onset_s)
    changes = list[tuple[float, Chord]]()
    first_s = onset_s[np.diff(onset_s, prepend=-np.inf) > TOGETHER_S].tolist()
    for at_s, next_s in pairwise([*first_s, max(score.duration_s, first_s[-1] + TOGETHER_S)]):
        begins = (score.onset_s >= at_s) & (score.onset_s <= at_s + TOGETHER_S)
        rings = (score.onset_s < at_s) & (score.offset_s > (at_s + next_s) / 2)  # legato and pedal end sooner
        chord = named(score.pitch[begins | rings].tolist())
        if not changes or chord.classes != changes[-1][1].classes:
            changes.append((at_s - onset_s[0], chord))
    end_s = max(score.duration_s - onset_s[0], changes[-1][0] + TOGETHER_S)
    return ", ".join([*(f"{round(at_s, 2):g} {chord}" for at_s, chord in changes), f"{round(end_s, 2):g}"])


def named(pitches: Sequence[int]) -> Chord:
    """The chord with exactly these pitch classes, if there is one on the bass; else on another root; else note by
    note."""
    bass, classes = min(pitches) % 12, frozenset(pitch % 12 for pitch in pitches)
    for root in (bass, *range(12)):
        for quality in QUALITIES:
            if (chord := Chord(root, quality)).classes == classes:
                return chord
    return Chord(bass, "".join(f"+{LETTERS[each]}" for each in sorted(classes - {bass}) or [bass]))
