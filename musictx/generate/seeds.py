"""Seeds: their files, the music in these, and the names of the new files."""

import glob
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from musictx.errors import ConfigError, UserError
from musictx.files import check_folder, check_new, stem_of
from musictx.model.packaged import KNOWN_SEEDS, SEEDS, seed_path
from musictx.music.grid import N_VOICES, PIANO, one_piano, quantise, thin_to_voices
from musictx.music.notation.notation import MUSICXML, SCORES
from musictx.music.notation.spelling import check_packages
from musictx.music.other_formats import ways
from musictx.music.project import Project
from musictx.music.read import SUFFIXES, notation_in, read_bytes, read_tracks, whole
from musictx.music.score import DRUMS, Meter, Score
from musictx.music.ticks import Tracks
from musictx.music.upbeat import with_usual_meter
from musictx.music.write import MIDI
from musictx.tokenizers import Tokenizer, knows_one_piano

NEW = Path("new")  # names music that begins from nothing
T = TypeVar("T")


class Seed(NamedTuple):
    """The notes of a file that the model has, and the file, into which new notes go."""

    score: Score
    meter: Meter
    project: Project | None = None
    remarks: tuple[str, ...] = ()


def find_seeds(seed_midi: str | None) -> list[Path]:
    """The files of `seed_midi`: one, all below a folder, or those of a pattern; `NEW` for None. Raises ConfigError for
    none."""
    if seed_midi is not None and not seed_midi.strip():
        raise ConfigError("seed_midi", got="", allowed="a file, a folder or a pattern")
    if seed_midi is None:
        return [NEW]
    path = Path(seed_midi)
    if path.is_dir() and seed_midi not in SEEDS:
        there = list(path.rglob("*"))
        files = [p for p in there if p.name.lower().endswith(SUFFIXES) and p.is_file()]
    elif not path.exists() and glob.has_magic(seed_midi):
        there = files = [p for p in map(Path, glob.glob(seed_midi, recursive=True)) if p.is_file()]
    else:
        return [seed_path(seed_midi)]
    if not files:
        why = f"no {', '.join(SUFFIXES)} file there"
        allowed, hint = f"a file, folder or pattern, or {KNOWN_SEEDS}", ways(p.name for p in there)
        raise ConfigError("seed_midi", got=seed_midi, why=why, allowed=allowed, hint=hint)
    return sorted(files)


def find_sides(infill: str | None, between: str | None) -> list[Path]:
    """The file of `infill=`, or the two of `between=`. Raises ConfigError, MidiError."""
    if infill is not None:
        return [seed_path(infill)]
    assert between is not None
    words = between.split(",")
    splits = [(",".join(words[:k]), ",".join(words[k:])) for k in range(1, len(words))]
    if not all(name.strip() for name in words) or not splits:
        raise ConfigError("between", got=between, allowed="two files with a comma between them, a.mid,b.mid")
    pairs = [pair for pair in splits if all(Path(name).exists() for name in pair)]  # a name may contain commas
    return [seed_path(name.strip()) for name in (pairs or splits)[0]]


DRUMS_ALONE = "drums=true takes them, or give one with other instruments"


class Targets(NamedTuple):
    """The files of one seed: MIDI, sound and score of each variation, and one picture."""

    midi: list[Path]
    wav: list[Path]
    png: Path | None
    musicxml: list[Path]


def name_targets(
    seeds: Sequence[Path],
    out: Path,
    variations: int,
    *,
    wav: bool,
    png: bool,
    overwrite: bool,
    musicxml: bool = False,
) -> list[Targets]:
    """The new files of each seed, in a folder or named after the file `out`. Raises UserError if two have one name, or
    one exists or is a seed, and where packages for scores are asked for and missing."""
    folder, name = split_out(out)
    suffix = out.suffix.lower() if name else ""
    if name and len(seeds) > 1:
        raise ConfigError("out", got=out, why=f"{len(seeds)} seeds need a file each", allowed="a folder")
    wav, png, musicxml = wav or suffix == ".wav", png or suffix == ".png", musicxml or suffix in SCORES
    if musicxml:
        check_packages()
    numbers = [f"-{k + 1}" for k in range(variations)] if variations > 1 or not name else [""]
    midi_suffix, targets = out.suffix if suffix in MIDI else ".mid", []
    score_suffix = out.suffix if suffix in SCORES else MUSICXML
    for seed in seeds:
        stem = name or stem_of(seed)
        midi, sounds, scores = (
            [folder / f"{stem}{number}{each}" for number in numbers] for each in (midi_suffix, ".wav", score_suffix)
        )
        picture = folder / f"{stem}.png" if png else None
        targets.append(Targets(midi, sounds if wav else [], picture, scores if musicxml else []))
    files = [path for t in targets for path in (*t.midi, *t.wav, *t.musicxml, *([t.png] if t.png else []))]
    check_names(files)
    sources = {os.path.realpath(seed) for seed in seeds}
    for path in files:
        if os.path.realpath(path) in sources:
            raise UserError(f"{path} is a seed and would be overwritten", "give another out=")
    check_new(overwrite, *files)
    return targets


BY_NAME = (*MIDI, *SCORES, ".wav", ".png")  # which files new music may have by the name of one


def split_out(out: Path) -> tuple[Path, str]:
    """The folder of new music, and the stem of a file's name: mine/ and tune of mine/tune.mid. Raises ConfigError for a
    file of another kind."""
    if out.suffix.lower() in BY_NAME and not out.is_dir():
        return out.parent, out.stem
    check_folder("out", out, BY_NAME)
    return out, ""


def check_names(files: Sequence[Path]) -> None:
    """Raises UserError for two files of new music with one name."""
    twice, count = Counter(str(path).lower() for path in files).most_common(1)[0]
    if count > 1:
        raise UserError(f"{twice} would be the continuation of two seeds", "rename one, or continue them one by one")


def named_apart(seeds: list[Path]) -> list[Path]:
    """The seeds, whose new music has names of its own. Raises UserError."""
    check_names([Path(f"{stem_of(seed)}-1") for seed in seeds])
    return seeds


def check_apart(seed_midi: str | None, seeds: Sequence[Path], out: Path) -> None:
    """Raises ConfigError for a folder of new music that would be seeds in the next run."""
    if seed_midi is None or seeds == [Path(seed_midi)] or seed_midi in SEEDS:
        return
    place, above = os.path.realpath(split_out(out)[0]), {os.path.realpath(seed.parent) for seed in seeds}
    if os.path.isdir(seed_midi):
        within = os.path.realpath(seed_midi)
    elif "**" in seed_midi:
        within = os.path.realpath(seed_midi[: seed_midi.index("**")].rpartition("/")[0] or ".")
    else:
        within = place if place in above else ""
    if within and os.path.commonpath([within, place]) == within:
        why = f"it is within seed_midi={seed_midi}, which would find the new music as seeds in the next run"
        raise ConfigError("out", got=out, why=why, allowed="another folder")


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
