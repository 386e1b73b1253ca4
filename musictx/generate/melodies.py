"""The melody of an `Accompany`: one line of notes, or some of four voices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError, UserError, counted
from musictx.files import stem_of
from musictx.generate.primer import borders_s
from musictx.generate.requests import FARTHEST, Accompany
from musictx.generate.seeds import heard_part
from musictx.model.packaged import seed_path
from musictx.music.grid import (
    FULL,
    N_VOICES,
    OPEN,
    REST,
    STEPS_PER_QUARTER,
    VOICE_NAMES,
    VOICES,
    Grid,
    beside_grid,
    by_height,
    fullness,
    in_steps,
    score_to_grid,
)
from musictx.music.melody import on_grid, overlaps, top_line, top_part
from musictx.music.project import Project
from musictx.music.read import notation_in, read_bytes, read_tracks, whole
from musictx.music.score import DRUMS, Meter, Score
from musictx.music.ticks import Tracks
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.rules import VOICE_RANGES


class Rewrite(NamedTuple):
    """Voices to write again: their part of the file by place in SATB, and the other notes of these parts."""

    from_s: float
    to_s: float
    parts: dict[int, int]
    remainder: Score


class Melody(NamedTuple):
    """The notes that stay, and the grid for the model."""

    name: str
    score: Score
    meter: Meter
    file: Path | None
    grid: Grid  # (S, 4) of all voices from step `first` on, OPEN where the model writes
    first: int
    project: Project | None = None  # the file
    rewrite: Rewrite | None = None
    remarks: tuple[str, ...] = ()
    transpose: int = 0  # semitones by which the model hears it higher


def melody_of(melody: object, request: Accompany, tokenizer: Tokenizer) -> Melody:
    """The melody of a score or a MIDI file. Raises ConfigError, and as `read_melody`."""
    if isinstance(melody, str | Path):
        return read_melody(seed_path(str(melody)), request, tokenizer)
    if not isinstance(melody, Score):
        raise ConfigError("melody", got=melody, allowed="a MIDI file or a Score")
    if request.only or request.rewrite or len(request.voices) > 1:
        asked = {"part": request.only, "rewrite": request.rewrite, "voices": request.voices}
        name, value = next((name, value) for name, value in asked.items() if value)
        why, hint = "a Score does not say which voice sings", "give a MIDI file"
        raise ConfigError(name, got=value, why=why, hint=hint)
    remarks = list[str]()
    score = melody.select(melody.program != DRUMS)
    if len(score) < len(melody):
        remarks.append("the melody: its drums are left out")
    taken = take_melody([score], "the melody", request, tokenizer, Meter(melody.quarter_s))
    return taken._replace(remarks=(*remarks, *taken.remarks))


def read_melody(path: Path, request: Accompany, tokenizer: Tokenizer) -> Melody:
    """Reads the melody of a MIDI file, or its voices. Raises MidiError, and as `take_melody`."""
    tracks = read_tracks(data := read_bytes(path), path, one_tempo=True)
    written, remarks = notation_in(data, path), list[str]()
    project = Project(whole(data, path), tracks.tempo_map, request.only, notation=written)
    if request.only is not None:
        tracks = heard_part(project, path, one_tempo=True)
    if tracks.tempo_map.changes:
        remarks.append(f"{path}: it is heard at its first tempo, since the model counts beats")
    if remark := tracks.remark():
        remarks.append(f"{path}: {remark}")
    if request.rewrite is not None or len(request.voices) > 1:
        melody = take_voices(tracks, path, request, tokenizer)
    else:
        melody = take_melody(tracks.parts(), path, request, tokenizer, tracks.meter(), stem_of(path), path)
    return melody._replace(project=project, remarks=(*remarks, *melody.remarks))


def take_voices(tracks: Tracks, path: Path, request: Accompany, tokenizer: Tokenizer) -> Melody:
    """Several voices on the grid. Raises UserError, ConfigError and TokenError."""
    names = VOICES if request.rewrite is not None else request.voices
    meter, rewrite = tracks.meter(), None
    lines, parts = lines_of(tracks, names, path, meter)
    grid, first, unheard = voices_grid(lines, names, path)
    if request.rewrite is not None:
        region = steps_of(request, meter, Score.merge(lines), path)
        within = grid[max(region.start - first, 0) : max(region.stop - first, 0)]
        if (within == REST).all():
            got, why = request.from_bar, "no music in these bars"
            raise ConfigError("from_bar", got=got, why=why, allowed="bars with music").of(path)
        within[:, [VOICES.index(name) for name in request.rewrite]] = OPEN
        lines = [
            cut_region(line, region) if name in request.rewrite else line
            for name, line in zip(names, lines, strict=True)
        ]
        step_s = meter.quarter_s / STEPS_PER_QUARTER
        part_of = {
            VOICES.index(name): part for name, part in zip(names, parts, strict=False) if name in request.rewrite
        }
        stays = [line for name, line in zip(names, lines, strict=True) if not part_of or name in request.rewrite]
        remainder = Score.merge(stays, tracks.quarter_s)
        rewrite = Rewrite(region.start * step_s, region.stop * step_s, part_of, remainder)
    transpose, remarks = heard_at(dict(zip(names, lines, strict=True)), path, request, tokenizer, meter)
    score = Score.merge(lines, tracks.quarter_s)
    request.control.say(path, Score.empty(), meter, 0.0, remarks.append)
    say_beside(score, path, unheard, remarks.append)
    return Melody(
        stem_of(path), score, meter, path, grid, first, rewrite=rewrite, remarks=tuple(remarks), transpose=transpose
    )


def voices_grid(lines: Sequence[Score], names: str, source: object) -> tuple[Grid, int, int]:
    """Lines in their voices of a grid (S, 4), OPEN elsewhere; its first step; the number of notes without a step.
    Raises UserError, which names the source."""
    try:
        parts = [on_grid(line) for line in lines]
    except UserError as error:
        raise error.of(source) from None
    first, last = min(part.first for part in parts), max(part.first + len(part.pitch) for part in parts)
    grid = np.full((last - first, N_VOICES), OPEN, np.int16)
    for name, part in zip(names, parts, strict=True):
        column = grid[:, VOICES.index(name)]
        column[:] = REST
        column[part.first - first :][: len(part.pitch)] = part.pitch
    return grid, first, sum(part.unheard for part in parts)


def cut_region(line: Score, region: range) -> Score:
    """A line without a region of sixteenths, whose borders cut notes."""
    step_s, (onset, end) = line.quarter_s / STEPS_PER_QUARTER, in_steps(line)
    from_s, to_s = region.start * step_s, region.stop * step_s
    stays = line.select((end <= region.start) | (onset >= region.stop))
    before = line.select((onset < region.start) & (end > region.start))
    after = line.select((onset < region.stop) & (end > region.stop))
    cut = replace(before, offset_s=np.full(len(before), from_s)), replace(after, onset_s=np.full(len(after), to_s))
    return Score.merge([stays, *cut], line.quarter_s)


def lines_of(tracks: Tracks, names: str, path: Path, meter: Meter) -> tuple[list[Score], list[int]]:
    """The voices of a file from the highest down: tracks of one line and their parts, or four by height. Raises
    UserError."""
    parts = [track for track in tracks.tracks if len(track.score) and not track.is_drums]
    chords = [
        (k, float(part.score.onset_s[found[0]]))
        for k, part in enumerate(parts, 1)
        if len(found := overlaps(part.score))
    ]
    if len(parts) == len(names) and not chords:
        parts.sort(key=lambda part: -float(part.score.pitch.mean()))
        return [part.score for part in parts], [part.part for part in parts]
    if len(names) < N_VOICES:
        what = f"{path}: {counted(len(parts), 'track')} with notes, and {len(names)} voices are asked for, {names}"
        if len(parts) == len(names):
            (k, at_s), *_ = chords
            what = f"{path}: track {k} of its {len(parts)} with notes has chords, the first {meter.place(at_s)}"
        raise UserError(what, "give each voice a track of one line")
    score = tracks.merge()
    if not len(score):
        raise UserError(f"{path}: no notes to accompany", "give a file with music in it")
    try:
        full = fullness(score_to_grid(score))
        if full < FULL:
            what = f"{path}: all four voices sound in {full:.0%} of it, and rewrite= is for a file with all four"
            hint = "give a file with all four, each on its track, or say with voices= which ones it has, as in SAB"
            raise UserError(what, hint)
        return split_voices(score), []
    except TokenError as error:
        raise error.of(path) from None


def split_voices(score: Score) -> list[Score]:
    """The notes of four voices by height. Raises TokenError for more."""
    grid, (onset, end) = by_height(score_to_grid(score)), in_steps(score)
    voice, busy_until = np.zeros(len(score), np.int64), [0] * N_VOICES
    for i in np.argsort(onset, kind="stable").tolist():
        same = np.flatnonzero(grid[onset[i]] == score.pitch[i]).tolist()  # several in unison
        voice[i] = v = min(same, key=lambda v: busy_until[v])
        busy_until[v] = end[i]
    return [score.select(voice == v) for v in range(N_VOICES)]


def steps_of(request: Accompany, meter: Meter, score: Score, path: Path) -> range:
    """The sixteenths of the bars to write again, all without bars. Raises ConfigError."""
    step_s = meter.quarter_s / STEPS_PER_QUARTER
    if request.from_bar is None or request.to_bar is None:
        return range(round(score.duration_s / step_s) + 1)
    return range(*(round(at_s / step_s) for at_s in borders_s(request.from_bar, request.to_bar, score, meter, path)))


def take_melody(
    parts: Sequence[Score],
    source: object,
    request: Accompany,
    tokenizer: Tokenizer,
    meter: Meter,
    name: str = "melody",
    file: Path | None = None,
) -> Melody:
    """One line of notes of some parts, as one voice of the grid. Raises UserError, ConfigError and TokenError."""
    score = one_line(parts, source)
    n_others = sum(map(len, parts)) - len(score)
    transpose, remarks = heard_at({request.voices[0]: score}, source, request, tokenizer, meter)
    request.control.say(source, Score.empty(), meter, 0.0, remarks.append)
    grid, first, unheard = voices_grid([score], request.voices[0], source)
    if n_others:
        what = "its highest part is" if score in parts else f"its highest {len(score)} notes are"
        are = "is" if n_others == 1 else "are"
        remarks.append(f"{source}: {what} the melody, the other {counted(n_others, 'note')} {are} left out")
    say_beside(score, source, unheard, remarks.append)
    return Melody(name, score, meter, file, grid, first, remarks=tuple(remarks), transpose=transpose)


def say_beside(score: Score, source: object, unheard: int, say: Callable[[str], None]) -> None:
    """Says how many notes the grid moves or lacks."""
    if beside := int(beside_grid(score).sum()):
        say(
            f"{source}: {beside} of its {len(score)} notes begin beside the sixteenths; the voices go by the nearest "
            "one, the melody stays as it is"
        )
    if unheard:
        say(
            f"{source}: {unheard} of its {len(score)} notes share a sixteenth with a longer one; the voices go "
            "with that one, the melody keeps them all"
        )


def one_line(parts: Sequence[Score], source: object) -> Score:
    """The highest notes of the highest part. Raises UserError for none."""
    score = Score.merge(parts)
    if not len(score):
        raise UserError(f"{source}: no notes to accompany", "give a file with a melody in it")
    if not (score.offset_s > score.onset_s).any():
        raise UserError(f"{source}: none of its {len(score)} notes lasts", "give a melody whose notes have lengths")
    part = parts[top_part(parts)]
    return top_line(part) if len(overlaps(part)) else part


def heard_at(
    lines: Mapping[str, Score], source: object, request: Accompany, tokenizer: Tokenizer, meter: Meter
) -> tuple[int, list[str]]:
    """The semitones by which the model hears the lines of voices higher, and a remark on them. Raises TokenError for
    pitches beyond the voices or, without rules.voice_ranges, beyond the vocabulary."""
    sung = {VOICES.index(name): line for name, line in lines.items() if len(line)}
    voices = {voice: line.pitch.astype(int) for voice, line in sung.items()}
    has_range = request.rules.voice_ranges and request.rules.masks
    ranges = {voice: VOICE_RANGES[voice] if has_range else (tokenizer.lo, tokenizer.hi) for voice in voices}
    best = nearest_within([(pitch, *ranges[voice]) for voice, pitch in voices.items()])
    asked = best or 0 if isinstance(request.transpose, str) else request.transpose
    for voice, pitch in voices.items():
        low, high = ranges[voice]
        outside = (pitch + asked < low) | (pitch + asked > high)
        if outside.any():
            pitches = ", ".join(map(str, np.unique(pitch[outside]).tolist()))
            narrower = "give one that is nearer, or narrower" + (", or rules.voice_ranges=false" if has_range else "")
            raise TokenError(
                f"{source}: notes of pitch {pitches} ({int(outside.sum())} of {len(pitch)}), the first "
                f"{meter.place(sung[voice].onset_s[outside].min())}, lie outside the {VOICE_NAMES[voice]}'s range "
                f"{low} … {high}",
                narrower if best is None else f"transpose={best} lets the model hear it there",
            )
    if not asked or not isinstance(request.transpose, str):
        return asked, []
    far = f"{counted(abs(asked), 'semitone')} {'higher' if asked > 0 else 'lower'}"
    return asked, [f"{source}: the model hears it {far}, where voices sing it"]


def nearest_within(parts: Sequence[tuple[NDArray[np.integer], int, int]]) -> int | None:
    """The semitones, octaves first, that move all pitches into their ranges; None where there are none."""
    fits = [
        n
        for n in range(FARTHEST[0], FARTHEST[1] + 1)
        if all(low <= int(pitch.min()) + n and int(pitch.max()) + n <= high for pitch, low, high in parts)
    ]
    return min(fits, key=lambda n: (n % 12 != 0, abs(n)), default=None)
