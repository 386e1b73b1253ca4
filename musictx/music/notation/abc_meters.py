"""Meters, units, keys, tempi and bars of rest of ABC."""

import re
from fractions import Fraction

MOST_BEATS = 99  # of a bar: music21 takes seconds for thousands
MOST_RESTS = 1000  # bars
METER = re.compile(r"\s*\(?([\d+ ]{1,40})\)?/(\d{1,3})(?!\d)")


def sum_of(text: str) -> str:
    """A meter as its numerator, which may be a sum, and denominator, also C and (2+3)/8; "" for none."""
    numbers = METER.match({"C": "4/4", "C|": "2/2"}.get(text.strip(), text))
    beats = [int(each) for each in re.findall(r"\d+", numbers[1])] if numbers else []
    is_one = numbers and 0 < sum(beats) <= MOST_BEATS and int(numbers[2])
    return f"{'+'.join(str(each) for each in beats if each)}/{numbers[2]}" if numbers and is_one else ""


def meter_of(text: str) -> str:
    """A meter as numerator and denominator; "" for none."""
    beats, _, unit = sum_of(text).partition("/")
    return f"{sum(map(int, beats.split('+')))}/{unit}" if beats else ""


def whole_notes(text: str) -> Fraction:
    """The length of a meter or unit; 0 where it has none."""
    return Fraction(meter_of(text) or 0)


def is_compound(meter: str) -> bool:
    """Whether beats have three parts, as in 6/8."""
    beats, _, unit = meter_of(meter).partition("/")
    return bool(beats) and int(beats) % 3 == 0 and int(beats) > 3 and int(unit) >= 8


def tempo_of(text: str, unit: Fraction) -> tuple[float, Fraction] | None:
    """How often a minute has a beat, and its quarters, as "Lento" 1/8 3/8=40, or units in an old field; None without a
    number."""
    beats, _, number = re.sub(r'"[^"]*"', "", text).rpartition("=")
    found = re.search(r"\d{1,4}(?:\.\d+)?", number)
    beat = sum(whole_notes(each) for each in re.findall(r"\d+/\d+", beats)) or unit
    return (float(found[0]), 4 * beat) if found else None


def signature_of(key: str, semitones: int) -> tuple[int, str]:
    """How many sharps a key has, so many semitones higher, flats below 0; and its mode, if it has one."""
    from music21.abcFormat import ABCMetadata

    field = ABCMetadata(f"K:{key}")
    field.preParse()
    sharps, mode = int(field.getKeySignatureParameters()[0]), str(field.getKeySignatureParameters()[1] or "")
    mode = "" if key == "none" else mode
    return (sharps + 7 * semitones + 5) % 12 - 5 if semitones % 12 else sharps, mode


class Rests:
    """Whole bars of rest, Z4, as rests, which music21 reads."""

    def __init__(self) -> None:
        self.bar, self.unit, self.count = Fraction(1), Fraction(1, 8), 0

    def of(self, found: re.Match[str]) -> str:
        """The rests of a Z. Raises ValueError for more than any part has."""
        bars = int(found[1] or 1)
        self.count += bars
        if self.count > MOST_RESTS:
            raise ValueError(f"it has more than {MOST_RESTS:,} bars of rests")
        return "|".join([f"z{self.bar / self.unit}"] * bars)
