"""The places of a score's parts in its ids: a tune, the right and the left hand, and other parts."""

from collections.abc import Collection

from musictx.errors import TokenError
from musictx.music.notation.hands import KEYBOARDS
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import MIDDLE_C

TUNE, RIGHT, LEFT, OTHER = range(4)
SLOTS = 16
OCTAVE = 12
NAMES = ("tune", "piano", "piano", *(f"part {n}" for n in range(1, SLOTS - OTHER + 1)))  # (SLOTS,)


def slots_of(notation: Notation, first: Collection[int] | None = None, tune: int | None = None) -> list[int | None]:
    """The slot of each part, None for those without notes. Raises TokenError for more than 13 others, unless some are
    `first`: then these have slots, and those with most notes.

    The first keyboard with two staves has the hands, one with music on both before others. Of the parts that sing one
    note at a time the first is the tune, unless another lies an octave higher, or a person names the `tune`: then a
    keyboard beside it is another part."""
    parts = notation.parts
    slots: list[int | None] = [None] * len(parts)
    pairs = sorted(notation.keyboards, key=lambda pair: -sum(bool(parts[n].notes) for n in pair))
    are_hands = bool(pairs) and (tune is None or any(tune in pair for pair in pairs))
    for n, hand in zip(pairs[0], (RIGHT, LEFT), strict=True) if are_hands else ():
        slots[n] = hand if parts[n].notes else None
    left = [n for n, part in enumerate(parts) if part.notes and slots[n] is None]
    tunes = [n for n in left if parts[n].is_line]
    if tune in left:
        slots[tune] = TUNE
    elif tunes:
        highest = max(parts[n].height for n in tunes)
        slots[next(n for n in tunes if parts[n].height > highest - OCTAVE)] = TUNE
    others = [n for n in left if slots[n] is None]
    if RIGHT not in slots and LEFT not in slots and len(others) == 1 and parts[others[0]].program in KEYBOARDS:
        n = others.pop()
        slots[n] = RIGHT if parts[n].height >= MIDDLE_C else LEFT
    if len(others) > SLOTS - OTHER and first is not None:
        others = sorted(sorted(others, key=lambda n: (n not in first, -len(parts[n].notes)))[: SLOTS - OTHER])
    if len(others) > SLOTS - OTHER:
        raise TokenError(f"{len(others)} parts beside a tune and two hands", f"give at most {SLOTS - OTHER}")
    for slot, n in enumerate(others, OTHER):
        slots[n] = slot
    return slots
