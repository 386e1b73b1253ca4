"""A file of several pieces, as a book of ABC or the movements of MEI, cut into files of one piece each."""

import re
from typing import NamedTuple

from musictx.music.notation.abc_tune import TEXTS, TUNE
from musictx.music.notation.text import text_of

BOOKS = ("abc", "mei")  # music21's names of the formats
MOVEMENT = re.compile(r"(?s)<((?:\w+:)?score)(?=[\s>]).*?</\1\s*>")


class Several(NamedTuple):
    """The text of a file, and where each piece is; all have what stands before the first and behind the last."""

    text: str
    spans: list[tuple[int, int]]
    end: str = ""

    def piece(self, n: int) -> bytes:
        """A file of one piece alone."""
        begin, end = self.spans[n]
        return f"{self.text[: self.spans[0][0]]}{self.text[begin:end]}{self.end}".encode()


def several(data: bytes, kind: str, source: object) -> Several:
    """The pieces of a file of a `kind` of `BOOKS`. Raises MidiError where there is no text to read."""
    text = text_of(data, source)
    if kind == "abc":
        text = TEXTS.sub("", re.sub(r"\r\n?", "\n", text))
        begins = [each.start() for each in TUNE.finditer(text)]
        return Several(text, list(zip(begins, [*begins[1:], len(text)], strict=False)))
    spans = [each.span() for each in MOVEMENT.finditer(text)]
    return Several(text, spans, text[spans[-1][1] :] if spans else "")
