"""Which passages of new music occur in a corpus, in any key: the longest runs of notes that both share."""

import numpy as np

from musictx.analysis.repeats import CorpusIndex
from musictx.data.store import Store
from musictx.files import printable
from musictx.music.score import Score

MOST = 3


class Provenance:
    """The training pieces of a store, to search. Raises StoreError, and UserError if no piece has two notes."""

    def __init__(self, store: Store) -> None:
        split = store.split("train")
        self.names, self.corpus = split.names, store.manifest.corpus.name
        self.index = CorpusIndex([store.tokenizer.decode(np.asarray(ids)) for ids in split])

    def text(self, score: Score) -> str:
        """The longest passages of a score, in a line of ASCII, which any MIDI file can have. All music shares short
        runs, such as scales: compare with music that is no copy."""
        rows = [
            f"{copy.notes} notes at {copy.from_s:.1f} to {copy.from_s + copy.seconds:.1f} s, "
            f"in {self.names[copy.piece]} from {copy.piece_s:.1f} s on"
            for copy in self.index.copies(score, MOST)
        ]
        line = f"longest runs shared with {self.corpus}, in any key: {'; '.join(rows) or 'none'}"
        return printable(line).encode("ascii", "backslashreplace").decode()
