"""The music of seeds, as a model hears it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from musictx.errors import ConfigError, UserError
from musictx.music.grid import N_VOICES, PIANO, one_piano, quantise, thin_to_voices
from musictx.music.project import Project
from musictx.music.read import notation_in, read_bytes, read_tracks, whole
from musictx.music.score import DRUMS, Meter, Score
from musictx.music.ticks import Tracks
from musictx.music.upbeat import with_usual_meter
from musictx.tokenizers import Tokenizer, knows_one_piano

DRUMS_ALONE = "drums=true takes them, or give one with other instruments"
T = TypeVar("T")


class Seed(NamedTuple):
    """The notes of a file that the model has, and the file, into which new notes go."""

    score: Score
    meter: Meter
    project: Project | None = None
    remarks: tuple[str, ...] = ()


def read_each(seeds: Sequence[Path], read: Callable[[Path], T]) -> tuple[dict[Path, T], list[UserError]]:
    """The results of `read`, and the errors of the other seeds."""
    results, errors = dict[Path, T](), list[UserError]()
    for seed in seeds:
        try:
            results[seed] = read(seed)
        except UserError as error:
            errors.append(error)
    return results, errors


def read_seed(
    path: Path,
    tokenizer: Tokenizer,
    drums: bool = False,
    part: str | None = None,
    goes_on: bool = False,
    joins: bool = False,
) -> Seed:
    """Reads a seed, or one `part` of it, with remarks; one that `goes_on` fills its last bar, one that `joins` another
    keeps it, and has the meter before that behind it. Raises MidiError for a
    file without music, UserError for no notes that the model has."""
    tracks = read_tracks(data := read_bytes(path), path, one_tempo=tokenizer.metrical)
    written = notation_in(data, path)
    data = whole(data, path)
    if goes_on or joins:
        tracks, data = with_usual_meter(tracks, data, fills=goes_on)
    project = Project(data, tracks.tempo_map, part, drums, written)
    if part is not None:
        tracks = heard_part(project, path, tokenizer.metrical)
    score = tracks.merge(drums)
    check_sounds(tracks, drums, path)
    remarks = list[str]()
    score = fit_instruments(score, tracks, tokenizer, path, drums, remarks.append)
    score = fit_range(score, tokenizer, path, remarks.append)
    return Seed(score, tracks.meter(), project, tuple(remarks))


def check_sounds(tracks: Tracks, drums: bool, path: Path) -> None:
    """Raises UserError for a file without notes, or with those of drums that are not asked for."""
    if len(tracks.merge(drums)):
        return
    if len(tracks.merge(drums=True)):
        raise UserError(f"{path}: the seed has only drums", DRUMS_ALONE)
    raise UserError(f"{path}: it has no notes", "give a file with notes")


def heard_part(project: Project, path: Path, one_tempo: bool) -> Tracks:
    """The tracks of a file with the notes of its one part alone. Raises ConfigError, which names the file."""
    try:
        return read_tracks(project.alone(), path, one_tempo=one_tempo)
    except ConfigError as error:
        raise error.of(path) from None


def fit_drums(score: Score, tokenizer: Tokenizer, drums: bool, source: object, say: Callable[[str], None]) -> Score:
    """A score in the model's instruments, without its drums unless `drums`; says so. Raises UserError for drums
    alone."""
    is_drum = score.program == DRUMS
    if is_drum.any() and not drums:
        say(f"{source}: its drums are left out, drums=true takes them")
        score = score.select(~is_drum)
        if not len(score):
            raise UserError(f"{source}: the seed has only drums", DRUMS_ALONE)
    elif is_drum.any() and not tokenizer.programs:
        say(f"{source}: its drums are heard as {'voices' if tokenizer.voices else 'piano keys'}")
    return score


def fit_instruments(
    score: Score, tracks: Tracks, tokenizer: Tokenizer, source: object, drums: bool, say: Callable[[str], None]
) -> Score:
    """The score in the model's instruments; says how instruments, drums, pedal and tempo change."""
    sounding = [track for track in tracks.tracks if len(track.score)]
    parts = [track for track in sounding if drums or not track.is_drums]
    remarks = []
    if knows_one_piano(tokenizer):
        score = one_piano(score)
        if len(parts) > 1:
            remarks.append(f"its {len(parts)} tracks are heard as one piano")
        if (program := int(score.program[0])) not in (PIANO, DRUMS):
            remarks.append(f"its instrument, program {program}, is heard as a piano, and kept in what is written")
    if any(track.is_drums for track in parts) and not tokenizer.programs:
        remarks.append(f"its drums are heard as {'voices' if tokenizer.voices else 'piano keys'}")
    elif len(parts) < len(sounding):
        remarks.append("its drums are left out, drums=true takes them")
    if pedal := tracks.remark(drums):
        remarks.append(pedal)
    if tokenizer.metrical and tracks.tempo_map.changes:
        remarks.append("it is heard at its first tempo, since the model counts beats")
    if remarks:
        say(f"{source}: {'; '.join(remarks)}")
    return score


def fit_range(score: Score, tokenizer: Tokenizer, source: object, say: Callable[[str], None]) -> Score:
    """The notes `in_range`; says which others are left out."""
    try:
        score, remark = in_range(score, tokenizer)
    except UserError as error:
        raise error.of(source) from None
    if remark:
        say(f"{source}: {remark}")
    return score


def in_range(score: Score, tokenizer: Tokenizer) -> tuple[Score, str]:
    """The notes of the vocabulary, and a remark on the others. Raises UserError for none."""
    inside = (score.pitch >= tokenizer.lo) & (score.pitch <= tokenizer.hi)
    if inside.all():
        return score, ""
    if not inside.any():
        raise UserError(f"no note lies within the model's range, {tokenizer.lo} to {tokenizer.hi}", "transpose it")
    pitches = ", ".join(map(str, np.unique(score.pitch[~inside]).tolist()))
    share = f"{int((~inside).sum())} of {len(score)}"
    reach = f"the model's range {tokenizer.lo} … {tokenizer.hi}"
    return score.select(inside), f"notes of pitch {pitches} ({share}) lie outside {reach}: left out"


def fit_grid(score: Score, tokenizer: Tokenizer, source: object, say: Callable[[str], None]) -> Score:
    """The notes on the grid of a chorale model, all for other models; says which ones it changes."""
    if not tokenizer.voices:
        return score
    on_grid = quantise(score)
    if remark := on_grid.remark():
        say(f"{source}: {remark}")
    return on_grid.score


def fit_voices(score: Score, tokenizer: Tokenizer, source: object, say: Callable[[str], None]) -> Score:
    """The notes `in_voices`; says how many others are left out."""
    score, remarks = in_voices(score, tokenizer)
    for remark in remarks:
        say(f"{source}: {remark}")
    return score


def in_voices(score: Score, tokenizer: Tokenizer) -> tuple[Score, list[str]]:
    """The notes of a chorale model's voices, the outer and newest of more, all for other models; and remarks."""
    remarks = list[str]()
    if not tokenizer.voices:
        return score, remarks
    on_grid = quantise(score)
    if remark := on_grid.remark():
        remarks.append(remark)
    thin, lost = thin_to_voices(score := on_grid.score)
    if not lost:
        return score, remarks
    more = f"{lost} of its {len(score)} notes are more than the model's {N_VOICES} voices: left out or cut short"
    return thin, [*remarks, more]
