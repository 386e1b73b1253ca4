"""Music as the page takes it: shortened to its limits, and as a model hears it."""

import numpy as np

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.primer import grid_of, say_grid
from musictx.generate.seeds import in_range, in_voices
from musictx.music.grid import one_piano
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer, knows_one_piano
from musictx.tokenizers.rules import Rules
from musictx.web.session import PageMusic, Reading


def shorten(music: PageMusic, limits: Limits) -> PageMusic:
    """As much of the music as the page takes, its file too, and a line if it was longer. Raises UserError if nothing
    remains."""
    whole, written, left = music.reading(in_beats=False), music.written, ""
    played = begun(whole, limits)
    if not len(played.score):
        most = f"{limits.music_s:g} s, or more begin at once than the page takes"
        raise UserError(f"{music.name}: no note begins in its first {most}")
    if played is not whole:
        first = f"first {played.score.duration_s:.0f} s"
        left = f"The page takes no longer music: it shows and downloads the {first}."
    written = begun(written, limits) if written is not None else None
    written = written if written and len(written.score) else None
    return music._replace(score=played.score, played=played, written=written, note=left, project=played.project)


def begun(reading: Reading, limits: Limits) -> Reading:
    """As much as the page takes, of the notes and of their file; the same where that is all."""
    score = beginning(reading.score, limits)
    if score == reading.score:
        return reading
    end_s = end_of(reading.score, limits)
    return reading._replace(score=score, project=reading.project.until(end_s) if reading.project is not None else None)


def fit(music: PageMusic, tokenizer: Tokenizer) -> PageMusic:
    """The music as a model hears it, and remarks on notes that are left out or changed. Raises UserError if nothing
    remains, TokenError for anything else beyond the vocabulary."""
    score, meter, left, project = music.reading(tokenizer.metrical)
    try:
        score, beyond = in_range(score, tokenizer)
    except UserError as error:
        raise error.of(music.name) from None
    score, changes = in_voices(score, tokenizer)
    left += "".join(sentence(remark) for remark in (beyond, *changes) if remark)
    if knows_one_piano(tokenizer):
        if (instruments := len(set(score.program.tolist()))) > 1:
            left += f" Its {instruments} instruments are heard as one piano."
        score = one_piano(score)
        if program := int(score.program[0]):
            left += f" Its instrument, program {program}, is heard as a piano, and kept in what is written."
    tokenizer.encode(score)
    grid = grid_of(Rules(), score, meter, tokenizer)
    if grid is not None:
        left += sentence(say_grid(grid))
    played = music.reading(in_beats=False)
    return music._replace(score=score, meter=meter, note=left.strip(), played=played, project=project)


def sentence(remark: str) -> str:
    return f" {remark[0].upper()}{remark[1:]}."


def beginning(score: Score, limits: Limits) -> Score:
    """The music up to where it becomes more than the page takes."""
    return score.clip(0.0, end_of(score, limits))


def end_of(score: Score, limits: Limits) -> float:
    """The moment at which music becomes more than the page takes, in seconds."""
    sounding_s = np.cumsum(np.minimum(score.offset_s, limits.music_s) - score.onset_s)
    few = np.arange(len(score)) < limits.notes
    taken = few & (score.onset_s < limits.music_s) & (sounding_s <= limits.sounding_s)
    beyond: list[float] = score.onset_s[~taken].tolist()
    return min([limits.music_s, *beyond])
