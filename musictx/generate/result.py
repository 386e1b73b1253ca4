"""A piece of music that a model has made: its notes, facts about them, and how to write it to a file."""

from dataclasses import dataclass
from pathlib import Path

from musictx.errors import UserError
from musictx.generate.draw import Continuation
from musictx.music.write import write_midi
from musictx.viz import sound
from musictx.viz.sound import write_wav

MIDI = (".mid", ".midi")


@dataclass(frozen=True, kw_only=True)
class Music(Continuation):
    """A continuation, after its primer unless that was left out; or a piece with its gap filled.

    Shapes:
        `is_new` (N,), for the N notes of `score`.

    Units:
        `new_from_s` and `new_to_s` in seconds from the beginning, `mean_log_p` in nats a token.
    """

    name: str  # of its file from `musictx generate`: elise-1 for the first continuation of elise.mid
    signature: tuple[int, int] | None  # beats and the unit of a beat, of the seed
    seed: Path | None  # the file that it continues
    after: Path | None = None  # the second file, if it goes between two

    @property
    def title(self) -> str:
        """What a picture says above it."""
        return f"{self.name}: {self.became}" if self.became else self.name

    def write(self, path: str | Path, text: str = "") -> None:
        """A MIDI file, a picture (.png .svg .pdf), a film (.gif .mp4) or sound (.wav .flac), by the suffix of `path`.
        `text` is a remark for people inside the MIDI file.

        What is there is replaced, whole or not at all.

        Raises:
            UserError: for another suffix, and for the seed's file.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if path.resolve() in {file.resolve() for file in (self.seed, self.after) if file is not None}:
            raise UserError(f"{path} is the seed and would be overwritten", "give another name")
        if suffix in MIDI:
            write_midi(self.score, path, self.signature, text)
        elif suffix in sound.FORMATS:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_wav(self.score, path)
        else:
            from musictx.viz.by_suffix import FORMATS, write_as  # takes 0.4 s, so only those who draw wait for it

            if suffix not in FORMATS:
                raise UserError(f"{path}", f"give a name that ends in one of {', '.join((*MIDI, *FORMATS))}")
            write_as(self.score, path, self.title, self.new, chords=self.chords)
