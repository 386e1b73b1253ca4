"""The typed schema under Hydra: what exists, of which type, and what it means.

The YAML files of `conf/` give the values; a key or type that is not here is refused. Config stops at the
builders: nothing below `train.py`, `generate.py`, `evaluate.py` and `data_prep/` sees a config but its own.
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


@dataclass
class ModelConfig:
    d_model: int = MISSING
    n_layers: int = MISSING
    n_heads: int = MISSING
    d_ff: int = MISSING
    dropout: float = MISSING
    max_distance: int = MISSING  # in tokens; farther ones share the last row of the relative table


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
class PrepareChoralesConfig:
    """data_prep/chorales.py: the Bach chorales of the music21 package."""

    out: str = MISSING
    validation_fraction: float = 0.1
    test_fraction: float = 0.1
    seed: int = 0
    workers: int | None = None  # null: one per core
    overwrite: bool = False


@dataclass
class PrepareFolderConfig:
    """data_prep/folder.py: a folder of MIDI files."""

    path: str = MISSING
    out: str = MISSING
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    corpus: str | None = None  # null: the folder's name
    licence: str = "not stated"
    validation_fraction: float = 0.1
    test_fraction: float = 0.1
    seed: int = 0
    workers: int | None = None  # null: one per core
    overwrite: bool = False


@dataclass
class PrepareMaestroConfig:
    """data_prep/maestro.py: the MAESTRO archive, zip or folder."""

    path: str = MISSING
    out: str = MISSING
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    workers: int | None = None  # null: one per core
    overwrite: bool = False


SCHEMAS = {
    "train": TrainConfig,
    "generate": GenerateConfig,
    "evaluate": EvaluateConfig,
    "demo": DemoConfig,
    "bench_tokens": BenchTokensConfig,
    "prepare_chorales": PrepareChoralesConfig,
    "prepare_folder": PrepareFolderConfig,
    "prepare_maestro": PrepareMaestroConfig,
}


def register_schemas() -> None:
    """Makes each schema known to Hydra as `<app>_schema`; the app's YAML names it first in its defaults."""
    for name, schema in SCHEMAS.items():
        ConfigStore.instance().store(name=f"{name}_schema", node=schema)
