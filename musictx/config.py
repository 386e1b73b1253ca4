"""The typed schema under Hydra: what exists, of which type, and what it means.

The YAML files of `conf/` give the values; a key or type that is not here is refused. Config stops at the
builders: training, the preparations and the benches take their own; models, tokenizers and sampling see none.
"""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class DataConfig:
    path: str = MISSING  # the store, a folder made by a script of data_prep/
    length: int = MISSING  # ids in a training window
    transpose: int = MISSING  # up to this many semitones either way
    stretch: list[float] = MISSING  # factors of the clock to choose from
    segment: int | None = MISSING  # validation inputs of this many ids; null: whole pieces
    windows_per_epoch: int | None = None  # null: as many as hold the split's tokens
    score_batch_tokens: int = 4096
    workers: int = 0


@dataclass
class TokenizerConfig:
    name: str = MISSING
    bpe_vocab: int | None = None  # learn byte-pair merges up to this many tokens; MidiTok's tokenizers alone


@dataclass
class ModelConfig:
    d_model: int = MISSING
    n_layers: int = MISSING
    n_heads: int = MISSING
    d_ff: int = MISSING
    dropout: float = MISSING
    max_distance: int = MISSING  # in tokens; farther ones share the last row of the relative table
    position: str = "relative"  # or relative_fourier, rope, sinusoidal, learned, none
    clock: str = "index"  # relative_fourier and rope: index counts tokens, time counts seconds or sixteenths
    n_frequencies: int = 16  # of relative_fourier, in each head
    max_positions: int = 2048  # of learned
    attention_dropout: float = 0.0  # on the attention weights


@dataclass
class AttentionConfig:
    impl: str = MISSING


@dataclass
class TrainerConfig:
    accelerator: str = MISSING
    precision: str = MISSING
    batch_size: int = MISSING
    max_epochs: int = MISSING
    max_steps: int = -1  # -1: until max_epochs
    accumulate: int = 1  # batches per optimizer step
    lr: float = MISSING
    warmup_steps: int = MISSING
    weight_decay: float = 0.01
    grad_clip: float = 1.0
    label_smoothing: float = 0.0
    validate_every: int | None = None  # in batches; null: once an epoch
    progress_bar: bool = True


@dataclass
class LoggerConfig:
    name: str = MISSING  # csv or wandb
    project: str = "musictx"
    mode: str | None = None  # wandb: online, offline, disabled; null: WANDB_MODE, else online


@dataclass
class SamplerConfig:
    temperature: float = MISSING
    top_k: int | None = MISSING
    top_p: float | None = MISSING


@dataclass
class TrainConfig:
    """musictx train: fit a model to a store, keep the best as a bundle."""

    name: str = MISSING
    seed: int = 0
    out: str = MISSING  # the run's folder
    overwrite: bool = False
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)


@dataclass
class GenerateConfig:
    """musictx generate: continue a seed MIDI file."""

    bundle: str = MISSING  # a model file that `musictx train` made
    seed_midi: str = MISSING
    out: str = MISSING  # a folder for the continuations
    seed_seconds: float | None = None  # use this much of the seed's beginning; null: all
    length_seconds: float = 20.0  # how much new music
    max_tokens: int = 4096  # stop here even if length_seconds is not reached
    variations: int = 1
    seed: int = 0
    include_seed: bool = True
    drums: bool = False  # the seed's drums too
    wav: bool = False
    png: bool = False
    overwrite: bool = False
    device: str = "cpu"
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class EvaluateConfig:
    """musictx evaluate: negative log-likelihood of a split under a model, beside simple baselines."""

    bundle: str = MISSING
    data: DataConfig = field(default_factory=DataConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    split: str = "validation"
    device: str = "cpu"


@dataclass
class DemoConfig:
    """musictx demo: Bach chorales prepared, learned, continued."""

    out: str = MISSING
    store: str = MISSING
    max_steps: int | None = None  # null: what experiment=demo says
    variations: int = 3


@dataclass
class BenchTokensConfig:
    """musictx bench tokens: files/s and events/s of reading, encoding and decoding."""

    path: str | None = None  # a folder or zip of MIDI files; null: random performances
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    max_files: int = 100
    repeats: int = 5
    out: str | None = None  # a JSON file for the figures


@dataclass
class BenchPrepareConfig:
    """musictx bench prepare: a corpus to a store, beside MidiTok, and for 1, 4 and 16 times the files."""

    path: str = MISSING  # a folder or zip of MIDI files
    max_files: int = 80
    repeats: int = 3
    workers: int | None = None  # null: one per core
    out: str | None = None  # a JSON file for the figures


@dataclass
class BenchAttentionConfig:
    """musictx bench attention: time and memory of the attention kernels, and of whole models."""

    device: str = "cpu"
    dtype: str = "float32"
    lengths: list[int] = field(default_factory=lambda: [512, 1024, 2048])
    batch_tokens: int = 4096  # batch size times length
    n_heads: int = 8
    d_head: int = 64
    max_distance: int | None = None  # null: as long as the input
    n_frequencies: int = 16
    model_length: int | None = 2048  # of the training step of a whole model; null: none
    repeats: int = 5
    threads: int | None = None
    out: str | None = None  # a JSON file for the figures; the plot goes beside it


@dataclass
class BenchPositionsConfig:
    """musictx bench positions: forms of position compared by training."""

    store: str = MISSING  # chorales, from data_prep/chorales.py
    experiment: str = "demo"
    overrides: list[str] = field(default_factory=list)  # further settings of `musictx train`, for all forms
    steps: int = 500
    seeds: int = 3
    validations: int = 2  # of each run; whole pieces take long
    work: str = MISSING  # the folder for the runs
    out: str = MISSING  # a JSON file for the figures; the plot goes beside it


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


SCHEMAS = {
    "train": TrainConfig,
    "generate": GenerateConfig,
    "evaluate": EvaluateConfig,
    "demo": DemoConfig,
    "bench_tokens": BenchTokensConfig,
    "bench_prepare": BenchPrepareConfig,
    "bench_attention": BenchAttentionConfig,
    "bench_positions": BenchPositionsConfig,
    "prepare_chorales": PrepareChoralesConfig,
    "prepare_folder": PrepareFolderConfig,
    "prepare_jsb": PrepareJsbConfig,
    "prepare_maestro": PrepareMaestroConfig,
    "prepare_pop909": PreparePop909Config,
}


def register_schemas() -> None:
    """Makes each schema known to Hydra as `<app>_schema`; the app's YAML names it first in its defaults."""
    for name, schema in SCHEMAS.items():
        ConfigStore.instance().store(name=f"{name}_schema", node=schema)
