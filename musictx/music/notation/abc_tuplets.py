"""Tuplets of ABC that music21 does not know: with more than nine notes, or cut by a bar line."""

import re
from fractions import Fraction

from musictx.music.notation.abc_pitches import EVENT

MANY = re.compile(
    r"\((\d{2,3})(?![\d])(?::(\d{0,3}))?(?::(\d{0,3}))?"
)  # notes, in the time of how many, how many have it
UNSAID = re.compile(r"\((\d)(?!\d)(?::(\d*))?:?(?![\d:])")  # how many notes have it
LENGTH = re.compile(r"(\d*)(/*)(\d*)")


def as_lengths(music: str, is_compound: bool) -> str:
    """The line with each of these tuplets as the lengths of its notes; without a number they take the time of two, or
    of three in compound meters."""
    out, at = "", 0
    while found := MANY.search(music, at):
        notes, time, affected = found.groups()
        factor = Fraction(int(time or 0) or (3 if is_compound else 2), int(notes) or 1)
        out, at = out + music[at : found.start()], found.end()
        left = int(affected or 0) or int(notes)
        while left and (event := EVENT.search(music, at)):
            out, at = out + music[at : event.start()] + _times(event, factor), event.end()
            left -= not any(event.group(1, 2, 3))
            if event[3] and not affected:
                break
    return out + music[at:]


def within_bars(music: str) -> str:
    """The line with tuplets that end with their bar, where it has too few notes for them."""

    def ended(found: re.Match[str]) -> str:
        left = int(found[1])
        for event in EVENT.finditer(music, found.end()):
            if event[3]:
                return f"({found[1]}:{found[2] or ''}:{int(found[1]) - left}"
            left -= not any(event.group(1, 2))
            if not left:
                break
        return found[0]

    return UNSAID.sub(ended, music)


def _times(event: re.Match[str], factor: Fraction) -> str:
    """A note, a chord or a rest with another length; other words as they are."""
    word, rest, chord, length, tie = event.group(0, 4, 5, 6, 7)
    if any(event.group(1, 2, 3)):
        return word
    if rest is not None:
        return word[0] + _length(rest, factor)
    if chord is not None:
        return f"[{chord}]{_length(length, factor)}{tie}"
    accidental, letter, marks, length, tie = event.groups()[-5:]
    return f"{accidental}{letter}{marks}{_length(length, factor)}{tie}"


def _length(said: str, factor: Fraction) -> str:
    found = LENGTH.match(said)
    assert found is not None  # each of its parts may be missing
    times, slashes, parts = found.groups()
    length = factor * int(times or 1) / (int(parts or 0) or 2 ** len(slashes))
    return f"{length.numerator}/{length.denominator}"
