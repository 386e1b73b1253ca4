"""A piece of music that a model has made: its notes, facts about them, and how to write it to a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.generate.draw import Continuation
from musictx.music.score import Filled, Score
from musictx.music.write import write_midi
from musictx.viz import sound
from musictx.viz.sound import write_wav

MIDI = (".mid", ".midi")


@dataclass(frozen=True)
class Music:
    """A continuation, after its primer unless that was left out; or a piece with its gap filled.

    Shapes:
        `is_new` (N,), for the N notes of `score`.

    Units:
        `new_from_s` and `new_to_s` in seconds from the beginning, `mean_log_p` in nats a token.
    """

    name: str  # of its file from `musictx generate`: elise-1 for the first continuation of elise.mid
    score: Score  # all of its notes
    new_from_s: float  # when the new music begins
    stopped: str  # why it is shorter than asked; "" if it is not
    mean_log_p: float  # nats a token, by the model itself, without filters or guidance
    unheard: int  # how many of the primer's oldest tokens lie further back than the model looks
    signature: tuple[int, int] | None  # beats and the unit of a beat, of the seed
    seed: Path | None  # the file that it continues
    is_new: NDArray[np.bool_] | None = None  # (N,) the notes that fill a gap; None: those from `new_from_s` on are new
    new_to_s: float = np.inf  # when a fill ends
    after: Path | None = None  # the second file, if it goes between two

    @classmethod
    def of(
        cls,
        made: Continuation,
        name: str,
        signature: tuple[int, int] | None,
        seed: Path | None = None,
        after: Path | None = None,
    ) -> Self:
        """What was drawn, with its name and files."""
        known = made.score, made.new_from_s, made.stopped, made.mean_log_p, made.unheard
        return cls(name, *known, signature, seed, made.is_new, made.new_to_s, after)

    def write(self, path: str | Path) -> None:
        """A MIDI file, a picture (.png .svg .pdf), a film (.gif .mp4) or sound (.wav .flac), by the suffix of `path`.

        What is there is replaced, whole or not at all.

        Raises:
            UserError: for another suffix, and for the seed's file.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if path.resolve() in {file.resolve() for file in (self.seed, self.after) if file is not None}:
            raise UserError(f"{path} is the seed and would be overwritten", "give another name")
        if suffix in MIDI:
            write_midi(self.score, path, self.signature)
        elif suffix in sound.FORMATS:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_wav(self.score, path)
        else:
            self._draw(path, suffix)

    def _draw(self, path: Path, suffix: str) -> None:
        from musictx.viz.by_suffix import FORMATS, write_as  # takes 0.4 s, so only those who draw wait for it

        if suffix not in FORMATS:
            raise UserError(f"{path}", f"give a name that ends in one of {', '.join((*MIDI, *FORMATS))}")
        write_as(self.score, path, self.name, self.new)

    @property
    def new(self) -> float | Filled:
        """What is new, in the form that pictures take."""
        return self.new_from_s if self.is_new is None else Filled(self.is_new, self.new_from_s, self.new_to_s)
