"""Held-out works for `score_measures.py`: which ones, some of their bars, and these as files.

A file has the hands as a piano and all other parts as voices, at 120 quarters a minute: ids have no tempo.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from alive import spread

from musictx.data.similar import SAME, signature
from musictx.data.store import Split, Store
from musictx.errors import StoreError
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Key, Note
from musictx.music.score import UNITS
from musictx.tokenizers import Ids
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE

SCORE = ScoreTokenizer()
VOICE = 53  # a keyboard's wide part would be read as two hands
UNIT_S = 0.5 / UNITS  # at the tempo of the files
SEED = 8  # bars


class Work(NamedTuple):
    """A piece of the store; `slots` are those of its parts."""

    name: str
    ids: Ids
    notation: Notation
    slots: tuple[int, ...]

    @property
    def corpus(self) -> str:
        return self.name.partition("/")[0]

    @property
    def file_name(self) -> str:
        return self.name.replace("/", "-").rpartition(".")[0] + ".mid"

    @property
    def upbeat(self) -> int:
        """1 if the first bar is an upbeat, 0 if not: bars are counted after it."""
        return int(self.notation.has_upbeat)

    def notes(self, *slots: int) -> list[Note]:
        pairs = zip(self.notation.parts, self.slots, strict=True)
        return sorted(note for part, slot in pairs if slot in slots for note in part.notes)

    def cut(self, first: int, last: int) -> "Work":
        return self._replace(notation=bars_of(self.notation, first, last))

    def only(self, *slots: int) -> "Work":
        """The parts of these slots."""
        kept = [n for n, slot in enumerate(self.slots) if slot in slots]
        parts = tuple(self.notation.parts[n] for n in kept)
        return self._replace(notation=replace(self.notation, parts=parts), slots=tuple(self.slots[n] for n in kept))

    def sounds(self, bar: int) -> bool:
        """Whether a note begins in a bar, counted from 0."""
        if not 0 <= bar < len(self.notation.bars):
            return False
        begin, end = self.notation.spans[bar][0].onset, self.notation.spans[bar][1]
        return any(begin <= note.onset < end for part in self.notation.parts for note in part.notes)

    @property
    def is_song(self) -> bool:
        """Whether it has a tune, and hands beside it."""
        return bool(self.notes(TUNE) and self.notes(RIGHT, LEFT))

    @property
    def is_tune(self) -> bool:
        return self.slots == (TUNE,)

    @property
    def from_tune(self) -> "Work":
        """The bars from that in which the tune begins."""
        first = self.notes(TUNE)[0].onset
        return self.cut(sum(bar.onset <= first for bar in self.notation.bars) - 1, len(self.notation.bars))

    @property
    def is_even(self) -> bool:
        """Whether all bars have one meter and are whole."""
        first, spans = self.notation.bars[0], self.notation.spans
        return all(bar[1:] == first[1:] and end == bar.onset + first.full for bar, end in spans)

    def write(self, path: Path) -> Path:
        """The MIDI file."""
        pairs = zip(self.notation.parts, self.slots, strict=True)
        parts = tuple(replace(part, program=0 if slot in (RIGHT, LEFT) else VOICE) for part, slot in pairs)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(to_midi(replace(self.notation, parts=parts)))
        return path


def bars_of(old: Notation, first: int, last: int) -> Notation:
    """The bars from `first` up to `last`, which counts no more, from time 0 on."""
    last = min(last, len(old.bars))
    begin, end = old.spans[first][0].onset, old.spans[last - 1][1]
    parts = tuple(
        replace(part, notes=tuple(moved(note, begin, end) for note in part.notes if begin <= note.onset < end))
        for part in old.parts
    )
    bars = tuple(bar._replace(onset=bar.onset - begin) for bar in old.bars[first:last])
    signed = [key for key in old.keys if key.onset < end]
    keys = {max(key.onset - begin, 0): key.sharps for key in signed}  # of those before, the last one counts
    return Notation(parts, bars, end - begin, tuple(Key(*each) for each in keys.items()))


def moved(note: Note, begin: int, end: int) -> Note:
    """The note on the clock of an excerpt, in which it ends."""
    return note._replace(onset=note.onset - begin, length=min(note.length, end - note.onset))


def works_of(split: Split) -> list[Work]:
    found = []
    for name, piece in zip(split.names, split, strict=True):
        ids = np.asarray(piece)
        slots = sorted({each.slot for each in SCORE.placed(ids)[0]})
        found.append(Work(name, ids, SCORE.decode_notation(ids), tuple(slots)))
    return found


def check_apart(store: Store, split: str) -> float:
    """How much of its sketch a held-out piece has in common with a training piece, at most. Raises StoreError where the
    two count as one piece."""
    train = store.split("train")
    known = np.stack([signature(SCORE.decode(np.asarray(piece))) for piece in train])  # (P, hashes)
    held_out, most = store.split(split), 0.0
    for name, piece in zip(held_out.names, held_out, strict=True):
        alike = (known == signature(SCORE.decode(np.asarray(piece)))).mean(1)  # (P,)
        n = int(alike.argmax())
        if alike[n] >= SAME:
            what = f"{store.path}: {name} of the {split} split is like {train.names[n]} of the training split"
            raise StoreError(what, "prepare it again")
        most = max(most, float(alike[n]))
    return most


def choose(works: Sequence[Work], most: int, fits: Callable[[Work], bool]) -> list[Work]:
    """So many works that fit, as many of each corpus as it has, evenly; of each corpus spread over the split."""
    by_corpus: dict[str, list[Work]] = {}
    for work in works:
        if fits(work):
            by_corpus.setdefault(work.corpus, []).append(work)
    shares = dict.fromkeys(sorted(by_corpus), 0)
    while sum(shares.values()) < most and (open_ := [name for name in shares if shares[name] < len(by_corpus[name])]):
        shares[min(open_, key=lambda name: shares[name])] += 1
    return [by_corpus[name][n] for name, share in shares.items() for n in spread(len(by_corpus[name]), share)]


def goes_on(work: Work) -> bool:
    """Whether it has a seed and as many bars after it, all of one meter, with notes at either end of the seed and right
    after it."""
    first, last = work.upbeat, work.upbeat + 2 * SEED
    if len(work.notation.bars) < last or not work.cut(first, last).is_even:
        return False
    return all(work.sounds(bar) for bar in (first, first + SEED - 1, first + SEED))
