"""Which passages of new music occur in a corpus, in any key: the longest runs of notes that both share."""

from typing import NamedTuple

import numpy as np

from musictx.analysis.repeats import CorpusIndex
from musictx.data.store import Store
from musictx.files import printable
from musictx.music.score import Score

MOST = 3


class Passage(NamedTuple):
    """A run of `notes` notes, from `from_s` to its last onset at `to_s`, that `piece` has from `piece_s` on."""

    notes: int
    from_s: float
    to_s: float
    piece: str
    piece_s: float


class Provenance:
    """The training pieces of a store, to search. Raises StoreError, and UserError if no piece has two notes."""

    def __init__(self, store: Store) -> None:
        split = store.split("train")
        self.names, self.corpus = split.names, store.manifest.corpus.name
        self.index = CorpusIndex([store.tokenizer.decode(np.asarray(ids)) for ids in split])

    def passages(self, score: Score, most: int = MOST) -> list[Passage]:
        """The longest first; all music shares short runs, such as scales: compare it with music that is no copy."""
        return [
            Passage(copy.notes, copy.from_s, copy.from_s + copy.seconds, self.names[copy.piece], copy.piece_s)
            for copy in self.index.copies(score, most)
        ]

    def text(self, score: Score) -> str:
        """The same as a line of ASCII, which any MIDI file can have."""
        rows = [
            f"{p.notes} notes at {p.from_s:.1f} to {p.to_s:.1f} s, in {p.piece} from {p.piece_s:.1f} s on"
            for p in self.passages(score)
        ]
        line = f"longest runs shared with {self.corpus}, in any key: {'; '.join(rows) or 'none'}"
        return printable(line).encode("ascii", "backslashreplace").decode()
