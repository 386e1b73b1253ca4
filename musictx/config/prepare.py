"""What the scripts of `data_prep/` can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import TokenizerConfig


@dataclass
class SelectConfig:
    """Which tracks of a MIDI file are the music."""

    tracks: str = "merge"  # merge: all together; piano: General MIDI's pianos alone; longest: the one with most notes
    drums: bool = False
    programs: list[int] | None = None  # General MIDI 0 … 127; null: any
    names: list[str] | None = None  # of tracks; null: any


@dataclass
class FilterConfig:
    """What a piece must be to be kept; null: this filter is off."""

    min_notes: int | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    min_notes_per_second: float | None = None
    max_notes_per_second: float | None = None
    max_silence_seconds: float | None = None
    lowest_pitch: int | None = None
    highest_pitch: int | None = None
    min_pitch_span: int | None = None  # semitones from the lowest pitch to the highest
    max_repeats: int | None = None  # strikes of one pitch in a row


@dataclass
class WorkConfig:
    """Who reads the files, and what one file may use."""

    workers: int | None = None  # null: one per core
    scheduler: str | None = None  # tcp://HOST:PORT of a Dask cluster; null: this machine
    file_seconds: float = 60.0
    memory_mb: int = 1024
    file_mb: float = 32.0


@dataclass
class PrepareConfig(WorkConfig):
    """What every preparation knows."""

    out: str = MISSING  # the store, a folder
    overwrite: bool = False


@dataclass
class PrepareChoralesConfig(PrepareConfig):
    """data_prep/chorales.py: the Bach chorales of the music21 package."""

    pieces: int | None = None  # the first so many by number, for a quick trial; null: all 371
    validation_fraction: float = 0.1
    test_fraction: float = 0.1
    seed: int = 0


@dataclass
class PrepareJsbConfig(PrepareConfig):
    """data_prep/jsb.py: the JSB chorales of the literature, on their official split."""

    path: str | None = None  # Jsb16thSeparated.json; null: download it
    downloads: str = MISSING  # the folder for downloads


@dataclass
class PrepareMidiConfig(PrepareConfig):
    """What every preparation of MIDI files knows."""

    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    filters: FilterConfig = field(default_factory=FilterConfig)


@dataclass
class PrepareFolderConfig(PrepareMidiConfig):
    """data_prep/folder.py: a folder or zip of MIDI files."""

    path: str = MISSING
    corpus: str | None = None  # null: the folder's name
    licence: str = "not stated"
    validation_fraction: float = 0.1
    test_fraction: float = 0.1
    seed: int = 0


@dataclass
class PrepareMaestroConfig(PrepareMidiConfig):
    """data_prep/maestro.py: MAESTRO on its official split."""

    path: str | None = None  # the archive, zip or folder; null: download it
    version: str = "v3"  # v1, v2 or v3: what to download
    downloads: str = MISSING  # the folder for downloads
    allow_missing: bool = False  # go on without files that the table names and the archive lacks


@dataclass
class PreparePop909Config(PrepareMidiConfig):
    """data_prep/pop909.py: POP909, split by song."""

    path: str | None = None  # the archive, zip or folder; null: download it
    downloads: str = MISSING  # the folder for downloads
    versions: bool = False  # the other versions of each song too
    validation_fraction: float = 0.1
    test_fraction: float = 0.1
    seed: int = 0
