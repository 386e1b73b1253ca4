"""Transposing instruments: the signs that their players read, also where they change to another instrument."""

from collections.abc import Sequence
from dataclasses import replace

from musictx.music.notation.musicxml import Transposition
from musictx.music.notation.parts import Key, Part

MOST_TRANSPOSED = 36  # semitones; none of a real instrument is farther


def within_signs(part: Part, keys: Sequence[Key]) -> Part:
    """The part; written as it sounds where its player would read more than seven signs, and where no instrument is so
    far away."""
    keys = keys if part.keys is None else part.keys
    onsets = {*(each.onset for each in keys), *(each.onset for each in part.transposed)}
    is_real = all(abs(each.semitones) <= MOST_TRANSPOSED for each in part.transposed)
    is_real &= all(abs(key_at(keys, at).sharps - fifths_at(part, at)) <= 7 for at in onsets)
    return part if is_real else replace(part, transposed=())


def fifths_at(part: Part, onset: int) -> int:
    """The sharps that a signature has more where it sounds than on the page."""
    return Transposition.usual(part.transposed_at(onset)).fifths


def key_at(keys: Sequence[Key], onset: int) -> Key:
    """The key that holds there, as one of there."""
    return next((each for each in reversed(keys) if each.onset <= onset), keys[0])._replace(onset=onset)
