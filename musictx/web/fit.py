"""Music as the page takes it: shortened to its limits, and as a model hears it."""

import numpy as np

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.music.grid import one_piano, quantise, thin_to_voices
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer, knows_one_piano
from musictx.web.session import PageMusic


def shorten(music: PageMusic, limits: Limits) -> PageMusic:
    """As much of the music as the page takes, and a line if it was longer. Raises UserError if nothing remains."""
    played = music.heard(in_beats=False)
    score, written, left = beginning(played.score, limits), music.written, ""
    if not len(score):
        most = f"{limits.music_s:g} s, or more begin at once than the page takes"
        raise UserError(f"{music.name}: no note begins in its first {most}")
    if len(score) < len(played.score) or score.duration_s < played.score.duration_s:
        left = f"The page takes no longer music: these are the first {score.duration_s:.0f} s."
    if written is not None:
        written = written._replace(score=beginning(written.score, limits))
    written = written if written and len(written.score) else None
    return music._replace(score=score, played=played._replace(score=score), written=written, note=left)


def fit(music: PageMusic, tokenizer: Tokenizer) -> PageMusic:
    """The music as a model hears it, and lines on what is left out or changed. Raises UserError if nothing remains,
    TokenError for anything else beyond the vocabulary."""
    score, meter, left, project = music.heard(tokenizer.metrical)
    inside = (score.pitch >= tokenizer.lo) & (score.pitch <= tokenizer.hi)
    if not inside.any():
        raise UserError(f"{music.name}: no note lies within the model's range, {tokenizer.lo} to {tokenizer.hi}")
    if not inside.all():
        left += f" {int((~inside).sum())} notes outside the model's range are left out."
    score = score.select(inside)
    if tokenizer.voices:
        on_grid = quantise(score)
        if said := on_grid.remark():
            left += f" {said[0].upper()}{said[1:]}."
        thin, lost = thin_to_voices(on_grid.score)
        score = thin if lost else on_grid.score
        if lost:
            left += f" It is heard as four voices: {lost} notes are left out or cut short."
    if knows_one_piano(tokenizer):
        if (instruments := len(set(score.program.tolist()))) > 1:
            left += f" Its {instruments} instruments are heard as one piano."
        score = one_piano(score)
        if program := int(score.program[0]):
            left += f" Its instrument, program {program}, is heard as a piano, and kept in what is written."
    tokenizer.encode(score)
    played = music.heard(in_beats=False)
    return music._replace(score=score, meter=meter, note=left.strip(), played=played, project=project)


def beginning(score: Score, limits: Limits) -> Score:
    """The music up to where it becomes more than the page takes."""
    sounding_s = np.cumsum(np.minimum(score.offset_s, limits.music_s) - score.onset_s)
    few = np.arange(len(score)) < limits.notes
    taken = few & (score.onset_s < limits.music_s) & (sounding_s <= limits.sounding_s)
    end_s = limits.music_s if taken.all() else float(score.onset_s[np.argmin(taken)])
    return score.clip(0.0, min(end_s, limits.music_s))
