"""The settings of `musictx prepare` and of the scripts in `data_prep/`."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import TokenizerConfig
from musictx.setting import setting

STORE = "the store, a folder"


@dataclass
class SelectConfig:
    """Which tracks of a MIDI file are the music."""

    tracks: str = setting(
        "merge", "merge: all together; piano: only General MIDI's pianos; longest: the one with most notes"
    )
    drums: bool = setting(False, "include the drums")
    programs: list[int] | None = setting(None, "instruments, General MIDI 0 … 127; null: any")
    names: list[str] | None = setting(None, "names of tracks; null: any")


@dataclass
class FilterConfig:
    """Which pieces to keep; null: this filter is off."""

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
class PrepareConfig:
    """Settings of every preparation: processes, and limits for a file."""

    workers: int | None = setting(None, "readers at once; null: one per core")
    file_seconds: float = setting(60.0, "most time to read one file")
    memory_mb: int = setting(1024, "most memory to read one file")
    file_mb: float = setting(32.0, "largest file")
    out: str = setting(MISSING, STORE, folder=True)
    overwrite: bool = setting(False, "replace an existing store")


@dataclass
class SplitConfig:
    """How pieces without an official split are split."""

    validation_fraction: float = setting(0.1, "share of the pieces for validation")
    test_fraction: float = setting(0.1, "share of the pieces for the test")
    random_seed: int = setting(0, "random seed of the split: the same one gives the same split")


@dataclass
class PrepareChoralesConfig(SplitConfig, PrepareConfig):
    """musictx prepare chorales: Bach's 371 chorales, from the music21 package."""

    out: str = setting("outputs/stores/chorales", STORE, folder=True)
    pieces: int | None = setting(None, "use only the first so many, for a quick trial; null: all 371")


@dataclass
class PrepareJsbConfig(PrepareConfig):
    """musictx prepare jsb: the JSB chorales of the literature, on their official split; downloads without path=."""

    out: str = setting("outputs/stores/jsb", STORE, folder=True)
    path: str | None = setting(None, "Jsb16thSeparated.json; null: download it", path=True)
    downloads: str = setting("outputs/downloads", "the folder for downloads", folder=True)


@dataclass
class PrepareMidiConfig(PrepareConfig):
    """Settings of every preparation of MIDI files."""

    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    filters: FilterConfig = field(default_factory=FilterConfig)


@dataclass
class OwnFilesConfig(SplitConfig):
    """Settings for a person's own files."""

    path: str = setting(MISSING, "a folder or zip of MIDI files or scores", path=True)
    corpus: str | None = setting(None, "name of the corpus; null: the folder's name")
    licence: str = setting("not stated", "licence, which the models trained on it will show")
    validation: str | None = setting(
        None, "a folder inside path= for validation; null: by validation_fraction", path=True
    )
    test: str | None = setting(None, "a folder inside path= for the test; null: none, or by test_fraction", path=True)


@dataclass
class PrepareFolderConfig(OwnFilesConfig, PrepareMidiConfig):
    """musictx prepare folder: your own MIDI files, a folder or zip, nested, any names."""

    out: str = setting("outputs/stores/performances", STORE, folder=True)


@dataclass
class PrepareScoresConfig(OwnFilesConfig, PrepareConfig):
    """musictx prepare scores: your own scores with bars and parts: MusicXML, Humdrum, MEI, ABC, or MIDI on a grid."""

    out: str = setting("outputs/stores/scores", STORE, folder=True)


@dataclass
class PrepareMaestroConfig(PrepareMidiConfig):
    """musictx prepare maestro: MAESTRO, piano performances, on its official split; downloads without path=."""

    out: str = setting("outputs/stores/maestro", STORE, folder=True)
    path: str | None = setting(None, "the archive, zip or folder; null: download it", path=True)
    version: str = setting("v3", "the version to download: v1, v2 or v3")
    downloads: str = setting("outputs/downloads", "the folder for downloads", folder=True)


@dataclass
class PreparePop909Config(SplitConfig, PrepareMidiConfig):
    """musictx prepare pop909: POP909, pop songs on a piano, without their other versions; downloads without path=."""

    out: str = setting("outputs/stores/pop909", STORE, folder=True)
    path: str | None = setting(None, "the archive, zip or folder; null: download it", path=True)
    downloads: str = setting("outputs/downloads", "the folder for downloads", folder=True)
    select: SelectConfig = field(  # [PIANO] keeps only the accompaniment
        default_factory=lambda: SelectConfig(names=["MELODY", "BRIDGE", "PIANO"])
    )
