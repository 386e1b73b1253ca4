"""The guard of scores: a bar that comes again and again in all parts goes on with another note."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from musictx.tokenizers.score import ScoreTokenizer

FEWEST = 3  # equal bars in a row that any music may have: an accompaniment alone repeats its bars


@dataclass
class Loop:
    """The bars of a row, as the ids up to each BAR, and how many of the last ones are equal.

    Ids have places, lengths and pitches within a bar, so equal bars have equal ids. A tune that is a bar ahead counts
    with the bar where its ids are. A bar without notes is none."""

    tokenizer: ScoreTokenizer
    most: int = FEWEST  # equal bars in a row
    run: int = 0
    longest: int = 0
    bar: tuple[int, ...] = ()  # the last one
    now: tuple[int, ...] = ()  # the one under way

    @classmethod
    def after(cls, before: Iterable[int], later: Iterable[int], tokenizer: ScoreTokenizer) -> Self:
        """That of a score: new music may have one equal bar more in a row than what comes before and `later`."""
        loop, rest = cls(tokenizer), cls(tokenizer)
        for i in before:
            loop.take(i)
        for i in later:
            rest.take(i)
        loop.most = max(FEWEST, loop.longest + 1, rest.longest + 1)
        return loop

    def take(self, i: int) -> None:
        """Moves on by one id."""
        self.now = (*self.now, i)
        if i == self.tokenizer.bar:
            has_notes = bool((self.tokenizer.pitch[list(self.now)] >= 0).any())
            self.run = (self.run + 1 if self.now == self.bar else 1) if has_notes else 0
            self.longest = max(self.longest, self.run)
            self.bar, self.now = self.now, ()

    @property
    def pitch(self) -> int | None:
        """The id of a note with which the bar would go on as the last ones, where they are enough; else None."""
        n = len(self.now)
        if self.run < self.most or self.bar[:n] != self.now:
            return None
        return self.bar[n] if self.tokenizer.pitch[self.bar[n]] >= 0 else None
