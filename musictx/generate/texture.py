"""Whether four notes at once are the voices of a choir, or chords of a keyboard, a guitar or a band."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from musictx.music.grid import REST, in_steps, quantise, score_to_grid
from musictx.music.score import DRUMS, Score

# The most of 368 chorales of music21, 54 hymns and 33 choral works, each on one track and on two, without one hymn that
# strikes 52 % of its chords again; then the least of strummed guitars, pads, waltzes, marches and a lead over chords
FEW = 8  # moments with new notes: less music is not judged
LEAP = 7.5  # semitones, of the lowest notes' mean move: 6.1; waltzes and marches have 9.3
AGAIN = 0.55  # of chords whose three lowest notes were struck before: 0.28; strummed ones have 0.59
ABOVE = 0.3  # of moments at which the highest note begins alone, above others: 0.25; a lead over pads has 0.36
WIDE = 0.45  # of inner voices' moves, a fourth or more: 0.41; chords in one position have 0.42
FOURTH = 5
THIN = 0.25  # of the sounding steps, with two voices or fewer: 0.19; a bass that chords follow has 0.33
TOGETHER = 0.45  # of the moments with new notes, of two voices on one staff: 0.46; of chords under a tune 0.25
DOUBT = 4  # more moments that speak for a choir: a few bars prove less than a piece
HIGH = 128  # above all pitches


def not_a_choir(music: Score, parts: Sequence[Score] = ()) -> str:
    """The reason why music in four voices and its parts, also drums, are no choir; "" if they are one."""
    if any(len(part) and part.program[0] == DRUMS for part in parts):
        return "it has drums"
    heard = [part for part in parts if len(part)] or [music]
    counts = Counter(voices_of(part) for part in heard)
    if counts[1] >= 4:  # lines, whatever they play; others may double them
        return ""
    is_even = counts[2] >= 2 or counts[4] >= 1 or (counts.total() > 2 and _moves_together(heard, music))
    is_keyboard = len(heard) <= 2 and len({int(part.program[0]) for part in heard}) == 1  # it divides them as it likes
    if not is_even and not is_keyboard:
        return "of its parts, some play chords and some play lines"
    return not_as_voices(music)


def _moves_together(parts: Sequence[Score], music: Score) -> bool:
    """Whether parts are four voices of one sound, some of them on one staff, which begin notes as a choir does."""
    several = [part for part in parts if voices_of(part) > 1]
    begins = min((len(np.unique(part.onset_s)) for part in several), default=0) / len(np.unique(music.onset_s))
    is_one = len({int(part.program[0]) for part in parts}) == 1
    return is_one and sum(map(voices_of, parts)) == 4 and begins > TOGETHER


def voices_of(part: Score) -> int:
    """How many notes a part usually has at once."""
    at_s = np.unique(part.onset_s)
    began, ended = (np.searchsorted(np.sort(each), at_s, "right") for each in (part.onset_s, part.offset_s))
    return int(np.median(began - ended))


def not_as_voices(music: Score) -> str:
    """The reason why music in four voices on a grid moves as chords, or as a tune over them; "" if it does not."""
    heard = quantise(music).score
    grid, struck = score_to_grid(heard), dict[int, list[int]]()
    for step, pitch in sorted(zip(in_steps(heard)[0].tolist(), heard.pitch.tolist(), strict=True)):
        struck.setdefault(step, []).append(pitch)
    if len(struck) < FEW:
        return ""
    voices = (grid != REST).sum(1)  # (steps,)
    thin = voices[voices > 0] < 3
    leaps = _moves(np.where(grid == REST, HIGH, grid).min(1)[voices > 0])
    leap = leaps.mean() if len(leaps) else 0.0
    again = np.array([one == two for one, two in pairwise(p[:3] for p in struck.values() if len(p) > 2)])
    above = np.array([voices[step] > 2 and pitches == [grid[step].max()] for step, pitches in struck.items()])
    wide = np.concatenate([_moves(voice[voice != REST]) for voice in grid.T[1:3]]) >= FOURTH
    if leap > LEAP:
        return f"its lowest notes leap by {leap:.0f} semitones on average"
    judged = [
        (again, AGAIN, "{:.0%} of its chords are struck again"),
        (above, ABOVE, "{:.0%} of the time its highest note begins alone, above others"),
        (wide, WIDE, "{:.0%} of its inner voices' moves are leaps"),
        (thin, THIN, "at most two voices sound in {:.0%} of it"),
    ]
    found = (why.format(those.mean()) for those, most, why in judged if those.sum() > most * (len(those) + DOUBT))
    return next(found, "")


def _moves(line: NDArray[np.int16]) -> NDArray[np.int16]:
    """The semitones between each note of a line and the next other one."""
    moves = np.abs(np.diff(line))
    return moves[moves > 0]
