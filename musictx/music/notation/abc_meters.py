"""Meters, tempi and bars of rest of ABC."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from musictx.music.notation.notation import MOST_BARS

FIELD = re.compile(r"^([A-Za-z+]):(.*)")
BARS_OF_REST = re.compile(r"[ZX](\d{0,3})")


def meter_of(text: str) -> str:
    """A meter as numerator and denominator, also C and (2+3)/8; "" for none."""
    numbers = re.match(r"\s*\(?([\d+ ]+)\)?/(\d+)", {"C": "4/4", "C|": "2/2"}.get(text.strip(), text))
    beats = sum(map(int, re.findall(r"\d+", numbers[1]))) if numbers else 0
    return f"{beats}/{numbers[2]}" if numbers and beats and int(numbers[2]) else ""


def whole_notes(text: str) -> Fraction:
    """The length of a meter or unit; 0 where it has none."""
    meter = meter_of(text)
    return Fraction(meter) if meter else Fraction(0)


def is_compound(meter: str) -> bool:
    beats, _, unit = meter_of(meter).partition("/")
    return bool(beats) and int(beats) % 3 == 0 and int(beats) > 3 and int(unit) >= 8


def quarters_a_minute(text: str) -> float | None:
    """The tempo of a field, as "Lento" 1/8 3/8=40; None without a number."""
    beats, equals, number = re.sub(r'"[^"]*"', "", text).rpartition("=")
    found = re.match(r"\s*(\d{1,4}(?:\.\d+)?)", number)
    beat = sum(whole_notes(each) for each in re.findall(r"\d+/\d+", beats)) if equals else Fraction(1, 4)
    return float(4 * beat) * float(found[1]) if found and beat else None


def change_bar(measure: Any, field: str, words: str) -> None:
    """Gives a bar of music21, which knows no changes within ABC, a key or meter."""
    from music21.abcFormat import ABCMetadata
    from music21.key import KeySignature
    from music21.meter import TimeSignature

    if field == "M":
        measure.timeSignature = TimeSignature(words)
        return
    key = ABCMetadata(f"K:{words}")
    key.preParse()
    measure.keySignature = KeySignature(key.getKeySignatureParameters()[0])


def with_rests(music: list[str], head: dict[str, str]) -> Iterator[str]:
    """The lines with rests of a bar in place of Z4, which music21 skips, and without meters, by which it cuts bars.

    Raises ValueError for too many."""
    bar, unit = whole_notes(head.get("M", "")) or Fraction(1), whole_notes(head["L"])
    if sum(int(n or 1) for line in music for n in BARS_OF_REST.findall(line)) > MOST_BARS:
        raise ValueError(f"it has more than {MOST_BARS:,} bars of rests")
    for line in music:
        field = FIELD.match(line)
        if field and field[1] == "M":
            bar = whole_notes(field[2]) or bar
            continue
        if field and field[1] == "L":
            unit = whole_notes(field[2])
        before, *others = BARS_OF_REST.split(line)
        rest = f"z{bar / unit}" if unit else "z"
        counts = [int(n or 1) for n in others[::2]]
        rests = ["|".join([rest] * n) + after for n, after in zip(counts, others[1::2], strict=True)]
        yield line if field else before + "".join(rests)
