"""The files of seeds, and the names of the new files."""

import glob
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from musictx.errors import ConfigError, UserError
from musictx.files import check_folder, check_new, stem_of
from musictx.model.packaged import KNOWN_SEEDS, SEEDS, seed_path
from musictx.music.notation.notation import MUSICXML, SCORES
from musictx.music.notation.spelling import check_packages
from musictx.music.other_formats import ways
from musictx.music.read import SUFFIXES
from musictx.music.write import MIDI

NEW = Path("new")  # names music that begins from nothing


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
