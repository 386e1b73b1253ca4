"""What the measurements can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import TokenizerConfig


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
    validations: int = 4  # of each run; whole pieces take long
    work: str = MISSING  # the folder for the runs
    out: str = MISSING  # a JSON file for the figures; the plot goes beside it


@dataclass
class BenchSamplingConfig:
    """musictx bench sampling: tokens per second of our engine, our rewrite of the public code and Hugging Face."""

    device: str = "cpu"
    d_model: int = 512
    n_layers: int = 6
    n_heads: int = 8
    d_ff: int = 2048
    max_distance: int = 1024  # of the relative table; the public model's is as long as its longest input
    length: int = 1024  # new tokens in each row
    batches: list[int] = field(default_factory=lambda: [16])  # beside one stream
    public_points: int = 5  # lengths at which a step of the uncached loop is timed; 0: the whole loop is run
    context: int | None = 512  # tokens that the rolling cache shows; null: no curve
    contexts: int = 10  # how many times as many the curve goes on
    repeats: int = 3
    threads: int | None = None
    out: str | None = None  # a JSON file for the figures; the curve goes beside it


@dataclass
class BenchTrainingConfig:
    """musictx bench training: tokens per second of a training step beside our rewrite of the public code."""

    device: str = "cpu"
    d_model: int = 512
    n_layers: int = 6
    n_heads: int = 8
    d_ff: int = 2048
    dropout: float = 0.1  # everywhere but on the attention weights
    attention_dropouts: list[float] = field(default_factory=lambda: [0.1, 0.0])  # with, as the public code, and without
    length: int = 2048  # tokens of a window, as the public code and the paper train
    batch: int = 2
    precisions: list[str] = field(default_factory=lambda: ["32-true", "bf16-mixed"])  # of ours
    positions: list[str] = field(default_factory=lambda: ["relative", "relative_fourier"])  # of ours
    impl: str = "auto"  # the kernel of position relative
    compile: bool = False  # ours once more under torch.compile
    workers: list[int] = field(default_factory=lambda: [0, 1])  # processes that load data, for the idle share
    loader_steps: int = 8
    peak_size: int = 2048  # of the square matrices whose product gives the machine's peak
    repeats: int = 5
    threads: int | None = None
    out: str | None = None  # a JSON file for the figures
