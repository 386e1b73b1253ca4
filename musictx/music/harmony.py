"""Keys and chords in letters, `F# minor`, `C | Am F | G7`, and the chords of music."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music.curve import LEAST_S, MOST_S, NUMBER, in_seconds
from musictx.music.score import Score

NATURALS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
ACCIDENTALS = {"#": 1, "b": -1}
FIFTHS = "FCGDAEB"  # each signs one sharp more than the one before; C none
LETTERS = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")  # a pitch class, as it is mostly written
MODES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 9, 10, 11),  # the sixth and the leading note are raised or not
}
MODE_OF = {"": "major", "major": "major", "m": "minor", "minor": "minor"}
QUALITIES = {
    "": (0, 4, 7),
    "maj": (0, 4, 7),
    "m": (0, 3, 7),
    "7": (0, 4, 7, 10),
    "maj7": (0, 4, 7, 11),
    "m7": (0, 3, 7, 10),
    "dim": (0, 3, 6),
    "m7b5": (0, 3, 6, 10),
    "aug": (0, 4, 8),
    "sus2": (0, 2, 7),
    "sus4": (0, 5, 7),
    "6": (0, 4, 7, 9),
    "m6": (0, 3, 7, 9),
    "9": (0, 2, 4, 7, 10),
}
CHORDS = (
    f"a root from A to G, with # or b, and one of {', '.join(filter(None, QUALITIES))} or nothing, as in F#m7; or its "
    "notes, as in C+D+G"
)
NOTES = re.compile(r"(?:\+[A-G][#b]?)+")  # of a chord, after its first
MOST_CHORDS = 4000
NO_CHORD = "N.C."  # any notes

Classes = frozenset[int]  # pitch classes: 0 is C


def pitch_class(letter: str, accidentals: str = "") -> int:
    return (NATURALS[letter] + sum(ACCIDENTALS[each] for each in accidentals)) % 12


def pitch_name(pitch: int) -> str:
    """A pitch as pianists write it: 60 is C4."""
    return f"{LETTERS[pitch % 12]}{pitch // 12 - 1}"


def key_classes(name: str) -> Classes:
    """The pitch classes of a key: `D minor`, `Dm`, `Bb`. Raises ConfigError."""
    letter, accidental, mode = _key(name)
    return _above(pitch_class(letter, accidental), MODES[mode])


def key_sharps(name: str) -> int:
    """The sharps that a key signs, flats below 0; of more than seven those of its enharmonic. Raises ConfigError."""
    letter, accidental, mode = _key(name)
    sharps = FIFTHS.index(letter) - 1 + 7 * sum(ACCIDENTALS[each] for each in accidental) - 3 * (mode == "minor")
    return sharps if abs(sharps) <= 7 else sharps - 12 * (1 if sharps > 0 else -1)


def key_mode(name: str) -> str:
    """`major` or `minor`. Raises ConfigError."""
    return _key(name)[2]


def _key(name: str) -> tuple[str, str, str]:
    """The letter, the accidental and the mode of a key. Raises ConfigError."""
    words = re.fullmatch(r"([A-G])([#b]?) *(\w*)", name.strip())
    if not words or words[3] not in MODE_OF:
        raise ConfigError("key", got=name, allowed="a key such as 'D minor', Dm, 'F# major' or Bb")
    return words[1], words[2], MODE_OF[words[3]]


@dataclass(frozen=True)
class Chord:
    """A root and a quality of `QUALITIES`, or a bass and other notes, `+D+G`."""

    root: int
    quality: str = ""
    spelling: str = field(default="", compare=False)  # as a person writes it: G#dim is Abdim too

    def __str__(self) -> str:
        return self.spelling or LETTERS[self.root] + self.quality

    @property
    def classes(self) -> Classes:
        if NOTES.fullmatch(self.quality):
            return frozenset({self.root, *(pitch_class(each[0], each[1:]) for each in self.quality[1:].split("+"))})
        return _above(self.root, QUALITIES[self.quality])


def parse_chord(name: str) -> Chord:
    """A chord by its name. Raises ConfigError."""
    if name == NO_CHORD:
        return replace(spelled_out(0, frozenset(range(12))), spelling=NO_CHORD)
    plain, slash, _ = name.partition("/")
    words = re.fullmatch(r"([A-G])(#{1,2}|b{1,2}|)(.*)", plain)
    if not words or (words[3] not in QUALITIES and not NOTES.fullmatch(words[3])):
        raise ConfigError("chords", got=name, why="this chord is not known", allowed=CHORDS)
    if slash:
        raise ConfigError("chords", got=name, why="the bass of a chord is not steered", allowed=plain)
    return Chord(pitch_class(words[1], words[2]), words[3], plain)


@dataclass(frozen=True)
class ChordLine:
    """Chords that repeat, their beginnings and length, in bars or seconds."""

    chords: tuple[Chord, ...]
    begins: tuple[float, ...]
    length: float
    in_bars: bool


def parse_chords(text: str) -> ChordLine:
    """A line of chords: bars, `C | Am F | G7`, or seconds, `0 C, 4 Am`, perhaps with an end, `0 C, 4 Am, 8`. Raises
    ConfigError."""
    line = _in_seconds(text) if re.match(r"[\s\d.,-]*\d", text, re.ASCII) else _in_bars(text)
    if len(line.chords) > MOST_CHORDS:
        raise ConfigError("chords", why=f"there are {len(line.chords)} chords", allowed=f"at most {MOST_CHORDS}")
    return line


def _in_bars(text: str) -> ChordLine:
    bars = [bar.split() for bar in text.strip().removeprefix("|").removesuffix("|").split("|")]
    if not all(bars):
        allowed = "a chord in each bar, as in 'C | Am F | G7'"
        raise ConfigError("chords", got=text, why="a bar is empty", allowed=allowed)
    begins = tuple(k + n / len(bar) for k, bar in enumerate(bars) for n in range(len(bar)))
    return ChordLine(tuple(parse_chord(name) for bar in bars for name in bar), begins, float(len(bars)), True)


def _in_seconds(text: str) -> ChordLine:
    text, _, end = text.rpartition(",") if re.search(rf",\s*{NUMBER}\s*$", text, re.ASCII) else (text, "", "")
    begins, names = in_seconds("chords", text, "seconds from 0 on, each with its chord, as in '0 C, 4 Am, 8 G7'")
    last = begins[-1] - begins[-2] if len(begins) > 1 else MOST_S
    length = float(end) if end else begins[-1] + last
    if not begins[-1] + LEAST_S <= length <= 2 * MOST_S:
        allowed = f"more than {begins[-1]:g} and at most {2 * MOST_S:g}"
        raise ConfigError("chords", got=end.strip(), why="the line ends there", allowed=allowed)
    return ChordLine(tuple(map(parse_chord, names)), begins, length, False)


def spell(classes: Classes) -> str:
    return ", ".join(LETTERS[each] for each in sorted(classes))


def _above(root: int, steps: tuple[int, ...]) -> Classes:
    return frozenset((root + step) % 12 for step in steps)


# each chord of `QUALITIES` but 9 has such notes
COMMON_QUALITIES = ("", "m", "7", "maj7", "m7", "dim", "m7b5", "aug", "sus4")
COMMON_CHORDS = [Chord(root, quality) for quality in COMMON_QUALITIES for root in range(12)]
CHORD_NOTES = np.array([[pitch in chord.classes for pitch in range(12)] for chord in COMMON_CHORDS], float)  # (K, 12)
ROOTS = np.array([chord.root for chord in COMMON_CHORDS])  # (K,)
OF_ROOT = 0.1  # how much a root that sounds counts beside the cosine: chooses among chords that share notes
TOGETHER_S = 0.05  # notes of one chord begin so close to each other


def chords_by_bar(score: Score, lines_s: NDArray[np.float64]) -> str:
    """The chord of each bar between lines (bars + 1,), `C | Am | F`, for a score with notes."""
    from_s, to_s = lines_s[:-1, None], lines_s[1:, None]
    sounds_s = np.minimum(score.offset_s, to_s) - np.maximum(score.onset_s, from_s)  # (bars, N)
    classes = np.eye(12)[score.pitch % 12]  # (N, 12)
    seconds = np.maximum(sounds_s, 0.0) @ classes  # (bars, 12)
    chord = nearest_chord((score.offset_s - score.onset_s) @ classes)
    chords = [chord := nearest_chord(each) if each.any() else chord for each in seconds]
    return " | ".join(map(str, chords))


def nearest_chord(seconds: NDArray[np.floating]) -> Chord:
    """The chord nearest to the seconds of each pitch class, (12,), by the cosine; a long root counts more."""
    cosine_times_norm = CHORD_NOTES @ seconds / np.sqrt(CHORD_NOTES.sum(1))
    return COMMON_CHORDS[int((cosine_times_norm + OF_ROOT * seconds[ROOTS]).argmax())]


def chord_track(score: Score) -> str:
    """The notes that sound together as chords, `0 C, 2 Am, 4 C+D+G, 6`, for a score with notes."""
    onset_s = np.unique(score.onset_s)
    changes = list[tuple[float, Chord]]()
    first_s = onset_s[np.diff(onset_s, prepend=-np.inf) > TOGETHER_S].tolist()
    for at_s, next_s in pairwise([*first_s, max(score.duration_s, first_s[-1] + TOGETHER_S)]):
        begins = (score.onset_s >= at_s) & (score.onset_s <= at_s + TOGETHER_S)
        rings = (score.onset_s < at_s) & (score.offset_s > (at_s + next_s) / 2)  # legato and pedal end sooner
        chord = exact_chord(score.pitch[begins | rings].tolist())
        if not changes or chord.classes != changes[-1][1].classes:
            changes.append((at_s - onset_s[0], chord))
    end_s = max(score.duration_s - onset_s[0], changes[-1][0] + TOGETHER_S)
    return ", ".join([*(f"{round(at_s, 2):g} {chord}" for at_s, chord in changes), f"{round(end_s, 2):g}"])


def exact_chord(pitches: Sequence[int]) -> Chord:
    """The chord of exactly these pitches, best on the bass."""
    bass, classes = min(pitches) % 12, frozenset(pitch % 12 for pitch in pitches)
    for root in (bass, *range(12)):
        for quality in QUALITIES:
            if (chord := Chord(root, quality)).classes == classes:
                return chord
    return spelled_out(bass, classes)


def spelled_out(bass: int, classes: Classes) -> Chord:
    """The notes of a chord by their letters, the bass first."""
    return Chord(bass, "".join(f"+{LETTERS[each]}" for each in sorted(classes - {bass}) or [bass]))


def chord_on(root: str, classes: Classes) -> Chord:
    """The chord of these pitch classes on a root in letters, `F#`."""
    low = pitch_class(root[0], root[1:])
    chord = exact_chord([low, *(low + (each - low) % 12 for each in classes)])
    if chord.root != low:  # the notes are a chord on another root too
        chord = spelled_out(low, classes)
    return replace(chord, spelling=root + chord.quality)
