"""Music within the limits of the page, in notes that a model has."""

import numpy as np

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.primer import grid_of, say_grid
from musictx.generate.seeds import in_range, in_voices
from musictx.music.grid import one_piano
from musictx.music.notation.notation import Notation
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer, knows_one_piano
from musictx.tokenizers.rules import Rules
from musictx.web.scores import as_score, lines_of, plays_scores
from musictx.web.session import PageMusic, Reading


def shorten(music: PageMusic, limits: Limits) -> PageMusic:
    """The music within the limits, its file too, and a line if it was longer. Raises UserError for no notes."""
    whole, beats_reading, note = music.reading(in_beats=False), music.beats_reading, ""
    end_s, written = end_of(whole.score, limits), music.written
    if written is not None and end_s < whole.score.duration_s:
        written, end_s = whole_bars(written, whole, end_s)
    reading = cut_reading(whole, end_s)
    if not len(reading.score):
        most = f"{limits.music_s:g} s, or more begin at once than the page takes"
        raise UserError(f"{music.name}: no note begins in its first {most}")
    if reading is not whole:
        first = f"first {reading.score.duration_s:.0f} s"
        note = f"The page takes no longer music: it shows and downloads the {first}."
    if beats_reading is not None:
        beats_reading = cut_reading(beats_reading, end_of(beats_reading.score, limits))
        beats_reading = beats_reading if len(beats_reading.score) else None
    return music._replace(
        score=reading.score,
        seconds_reading=reading,
        beats_reading=beats_reading,
        note=note,
        project=reading.project,
        written=written,
    )


def whole_bars(written: Notation, reading: Reading, end_s: float) -> tuple[Notation | None, float]:
    """The bars that end by then, and the second of their end; a first bar that is longer leaves none."""
    assert reading.project is not None
    lines_s = lines_of(written, reading.project)
    count = sum(line_s <= end_s for line_s in lines_s[1:])
    return (written.first_bars(count), lines_s[count]) if count else (None, end_s)


def cut_reading(reading: Reading, end_s: float) -> Reading:
    """A reading until then; the same if it is no longer."""
    score = reading.score.clip(0.0, end_s)
    if score == reading.score:
        return reading
    project = None if reading.project is None else reading.project.until(end_s)
    return reading._replace(score=score, project=project, parts=tuple(each.clip(0.0, end_s) for each in reading.parts))


def fit(music: PageMusic, tokenizer: Tokenizer) -> PageMusic:
    """The music in notes that a model has, and remarks on others. Raises UserError for none, TokenError for anything
    else beyond the vocabulary."""
    if plays_scores(tokenizer):
        return as_score(music, tokenizer)
    score, meter, note, project, _ = music.reading(tokenizer.metrical)
    try:
        score, beyond = in_range(score, tokenizer)
    except UserError as error:
        raise error.of(music.name) from None
    score, changes = in_voices(score, tokenizer)
    note += "".join(sentence(remark) for remark in (beyond, *changes) if remark)
    if knows_one_piano(tokenizer):
        if (instruments := len(set(score.program.tolist()))) > 1:
            note += f" Its {instruments} instruments are heard as one piano."
        score = one_piano(score)
        if program := int(score.program[0]):
            note += f" Its instrument, program {program}, is heard as a piano, and kept in what is written."
    tokenizer.encode(score)
    grid = grid_of(Rules(), score, meter, tokenizer)
    if grid is not None:
        note += sentence(say_grid(grid))
    reading = music.reading(in_beats=False)
    heard = music._replace(score=score, meter=meter, note=note.strip(), notation=None)
    return heard._replace(seconds_reading=reading, project=project)


def sentence(remark: str) -> str:
    return f" {remark[0].upper()}{remark[1:]}."


def end_of(score: Score, limits: Limits) -> float:
    """The second at which music reaches a limit."""
    sounding_s = np.cumsum(np.minimum(score.offset_s, limits.music_s) - score.onset_s)
    few = np.arange(len(score)) < limits.notes
    fits = few & (score.onset_s < limits.music_s) & (sounding_s <= limits.sounding_s)
    beyond: list[float] = score.onset_s[~fits].tolist()
    return min([limits.music_s, *beyond])
