"""What `musictx prepare` can be told, and the scripts of `data_prep/`."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import TokenizerConfig
from musictx.setting import setting


@dataclass
class SelectConfig:
    """Which tracks of a MIDI file are the music."""

    tracks: str = setting(
        "merge", "merge: all together; piano: General MIDI's pianos alone; longest: the one with most notes"
    )
    drums: bool = setting(False, "the drums too")
    programs: list[int] | None = setting(None, "instruments, General MIDI 0 … 127; null: any")
    names: list[str] | None = setting(None, "of tracks; null: any")
    melody: str = setting("MELODY", "name of the track that tokenizer=performance_melody keeps as the melody")


@dataclass
class FilterConfig:
    """What a piece must be to be kept; null: this filter is off."""

    min_notes: int | None = setting(None, "fewest notes")
    min_seconds: float | None = setting(None, "shortest piece")
    max_seconds: float | None = setting(None, "longest piece")
    min_notes_per_second: float | None = setting(None, "sparsest piece")
    max_notes_per_second: float | None = setting(None, "densest piece")
    max_silence_seconds: float | None = setting(None, "longest silence within a piece")
    lowest_pitch: int | None = setting(None, "no note below it")
    highest_pitch: int | None = setting(None, "no note above it")
    min_pitch_span: int | None = setting(None, "fewest semitones from the lowest pitch to the highest")
    max_repeats: int | None = setting(None, "most strikes of one pitch in a row")


@dataclass
class WorkConfig:
    """Who reads the files, and what one file may use."""

    workers: int | None = setting(None, "readers at once; null: one per core")
    scheduler: str | None = setting(None, "tcp://HOST:PORT of a Dask cluster; null: this machine")
    file_seconds: float = setting(60.0, "for reading one file")
    memory_mb: int = setting(1024, "for reading one file")
    file_mb: float = setting(32.0, "largest file")


@dataclass
class PrepareConfig(WorkConfig):
    """What every preparation knows."""

    out: str = setting(MISSING, "the store, a folder")
    overwrite: bool = setting(False, "take the place of a store that is there")


@dataclass
class SplitConfig:
    """How pieces that have no official split are shared out."""

    validation_fraction: float = setting(0.1, "share of the pieces that validate")
    test_fraction: float = setting(0.1, "share of the pieces that are kept for tests")
    seed: int = setting(0, "of the split: the same one gives the same")


@dataclass
class PrepareChoralesConfig(SplitConfig, PrepareConfig):
    """musictx prepare chorales: Bach's 371 chorales, from the music21 package."""

    pieces: int | None = setting(None, "the first so many by number, for a quick trial; null: all 371")


@dataclass
class PrepareJsbConfig(PrepareConfig):
    """musictx prepare jsb: the JSB chorales of the literature, on their official split; downloads without path=."""

    path: str | None = setting(None, "Jsb16thSeparated.json; null: download it")
    downloads: str = setting(MISSING, "the folder for downloads")


@dataclass
class PrepareMidiConfig(PrepareConfig):
    """What every preparation of MIDI files knows."""

    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    filters: FilterConfig = field(default_factory=FilterConfig)


@dataclass
class PrepareFolderConfig(SplitConfig, PrepareMidiConfig):
    """musictx prepare folder: your own MIDI files, a folder or zip, nested, any names."""

    path: str = setting(MISSING, "a folder or zip of MIDI files")
    corpus: str | None = setting(None, "what it is called; null: the folder's name")
    licence: str = setting("not stated", "what the models trained on it will tell")


@dataclass
class PrepareMaestroConfig(PrepareMidiConfig):
    """musictx prepare maestro: MAESTRO, piano performances, on its official split; downloads without path=."""

    path: str | None = setting(None, "the archive, zip or folder; null: download it")
    version: str = setting("v3", "v1, v2 or v3: what to download")
    downloads: str = setting(MISSING, "the folder for downloads")
    allow_missing: bool = setting(False, "go on without files that the table names and the archive lacks")


@dataclass
class PreparePop909Config(SplitConfig, PrepareMidiConfig):
    """musictx prepare pop909: POP909, pop songs on a piano, split by song; downloads without path=."""

    path: str | None = setting(None, "the archive, zip or folder; null: download it")
    downloads: str = setting(MISSING, "the folder for downloads")
    versions: bool = setting(False, "the other versions of each song too")
