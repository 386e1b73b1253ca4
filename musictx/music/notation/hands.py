"""The two staves of a keyboard that a file has as two parts: by their names, and by what they play."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from musictx.music.notation.parts import Part

KEYBOARDS = {*range(8), *range(16, 24), 46}  # programs of pianos, organs and the harp
# words by which programs and people tell the two staves apart
SIDES = "right left rh lh r l rechts links rechte linke droite gauche md mg destra sinistra ms"
OF_HANDS = f"{SIDES} hand hands h upper lower treble bass up down staff track main mano"
WORD = re.compile(r"(?<![&'’]|[^\W\d_])(?:(?:[^\W\d_]\.)+|[^\W\d_]++(?![&'’]))")  # R&B has no right hand
STAFF = re.compile(r"(?i)(?<![^\W\d_])(?:staff|track)[\W_]*\d+")
NUMBER = re.compile(r"(?<![^\W_])\d+(?![^\W_])")
BESIDE = " -_:,./"  # what stands between words


def pairs_of(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """The two staves of each keyboard that the file does not name as one, the higher first: neighbours of one
    instrument, whose names do not differ. Lines of a choir are none, unless their names say hands."""
    pairs: list[tuple[int, int]] = []
    lines, named = [part.is_line for part in parts], [says_hand(part.name) for part in parts]
    for n, (upper, lower) in enumerate(pairwise(parts)):
        is_unsaid = upper.group is None and lower.group is None
        is_played = len(parts) == 2 or named[n] or named[n + 1] or not (lines[n] and lines[n + 1])
        is_one = is_unsaid and is_played and upper.program in KEYBOARDS and upper.program == lower.program
        is_named_apart = upper.name and lower.name and without_hand(upper.name) != without_hand(lower.name)
        if is_one and (not is_named_apart or _are_numbered(n, parts)):
            pairs += [(n, n + 1)] * upper.is_above(lower) + [(n + 1, n)] * lower.is_above(upper)
    taken = set[int]()
    # named hands from the top, then chords first: the line above them is a voice
    for pair in sorted(pairs, key=lambda pair: (not named[pair[0]]) * (1 + lines[pair[0]] + lines[pair[1]])):
        if taken.isdisjoint(pair):
            taken.update(pair)
        else:
            pairs.remove(pair)
    return pairs


def _are_numbered(n: int, parts: Sequence[Part]) -> bool:
    """Whether part `n` and the next are the hands "Piano 1" and "Piano 2": two pianos are each wide, two singers
    lines."""
    pair, name = parts[n : n + 2], without_number(parts[n].name)
    alike = [part for part in parts if without_number(part.name) == name]
    return alike == [*pair] and not all(part.is_wide for part in pair) and not all(part.is_line for part in pair)


def says_hand(name: str) -> bool:
    """Whether it names the right or the left hand."""
    return any(_bare(word) in SIDES.split() for word in WORD.findall(name))


def name_of_staves(names: Sequence[str]) -> str:
    """The name that all staves of an instrument have in common, if they have any."""
    each = [name for name in names if name] or [""]
    ways: list[Callable[[str], str]] = [str, without_hand]
    return next((way(each[0]) for way in ways if len({*map(way, each)}) == 1), without_number(each[0]))


def without_hand(name: str) -> str:
    """The name of a keyboard, without the hand or the staff that it also says; "" for no more than these."""
    rest = WORD.sub(lambda word: "" if _bare(word[0]) in OF_HANDS.split() else word[0], STAFF.sub("", name))
    rest = " ".join(re.sub(r"\([\W_]*\)|\[[\W_]*\]", "", rest).split()).strip(BESIDE)
    return "" if rest.isdecimal() else rest


def without_number(name: str) -> str:
    """The name of an instrument, without its number among several either."""
    return NUMBER.sub("", without_hand(name)).strip(BESIDE)


def _bare(word: str) -> str:
    return word.replace(".", "").lower()
