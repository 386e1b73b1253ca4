"""A file of several pieces, as a book of ABC or the movements of MEI, cut into files of one piece each."""

import re
from itertools import accumulate, pairwise
from typing import NamedTuple
from xml.parsers import expat

from musictx.errors import MidiError
from musictx.music.notation.abc_tune import TEXTS, TUNE, in_lines
from musictx.music.notation.text import text_of

BOOKS = ("abc", "mei")  # music21's names of the formats
MOST_PIECES = 2**20  # the largest collections of tunes have some fifty thousand


class Several(NamedTuple):
    """A file's bytes, where each piece is among them, and where it belongs in what all pieces have in common."""

    data: bytes
    spans: list[tuple[int, int]]
    common: bytes
    places: list[int]

    def piece(self, n: int) -> bytes:
        """A file of one piece alone."""
        (begin, end), place = self.spans[n], self.places[n]
        return self.common[:place] + self.data[begin:end] + self.common[place:]

    @property
    def size(self) -> int:
        """The bytes of all pieces, each with what is common."""
        return len(self.data) + len(self.common) * (len(self.spans) - 1)


def several(data: bytes, kind: str, source: object) -> Several:
    """The pieces of a file of a `kind` of `BOOKS`. Raises MidiError where there is no text to read."""
    text = text_of(data, source)
    if kind == "abc":
        head, *tunes = [each.encode() for each in TUNE.split(TEXTS.sub("", in_lines(text)), MOST_PIECES + 1)]
        spans = [*pairwise(accumulate(map(len, tunes), initial=len(head)))]
        return Several(b"".join([head, *tunes]), spans, head, [len(head)] * len(tunes))
    data = re.sub(r"^[^<]+", "", text).encode()  # before what XML has first
    try:
        spans = _movements(data)
    except expat.ExpatError as error:
        raise MidiError(source, f"it cannot be read as notation ({error})", "export it again") from None
    parts, places = [data[: spans[0][0] if spans else None]], list[int]()
    for (_, begin), (end, _) in pairwise([*spans, (len(data), 0)]):
        places.append(sum(map(len, parts[-1:])) + (places[-1] if places else 0))
        parts.append(data[begin:end])
    return Several(data, spans, b"".join(parts), places)


def _movements(data: bytes) -> list[tuple[int, int]]:
    """Where the outermost scores are, without empty ones. Raises ExpatError."""
    parser, spans = expat.ParserCreate("utf-8"), list[tuple[int, int]]()
    opened, are_empty = list[int](), [True]  # where scores begin, and whether the file and each of them is empty so far

    def begin(name: str, _: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "score":
            opened.append(parser.CurrentByteIndex)
            are_empty.append(True)
        else:
            are_empty[-1] = False

    def end(name: str) -> None:
        if name.rpartition(":")[2] == "score":
            first, is_empty = opened.pop(), are_empty.pop()
            are_empty[-1] &= is_empty
            if not opened and not is_empty:
                spans.append((first, data.index(b">", parser.CurrentByteIndex) + 1))

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.Parse(data, True)
    return spans
