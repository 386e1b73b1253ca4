"""The settings of the benches and of `musictx check`."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import TokenizerConfig
from musictx.setting import setting


@dataclass
class BenchTokensConfig:
    """musictx bench tokens: files/s and events/s of reading, encoding and decoding."""

    path: str | None = setting(None, "a folder or zip of MIDI files; null: random performances")
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    max_files: int = setting(100, "read this many files from the start")
    repeats: int = setting(5, "runs of each measurement")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


@dataclass
class BenchPrepareConfig:
    """musictx bench prepare: a corpus to a store, beside MidiTok, and for 1, 4 and 16 times the files."""

    path: str = setting(MISSING, "a folder or zip of MIDI files")
    max_files: int = setting(80, "read this many files from the start")
    repeats: int = setting(3, "runs of each measurement")
    workers: int | None = setting(None, "readers at once; null: one per core")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


@dataclass
class BenchAttentionConfig:
    """musictx bench attention: time and memory of the attention kernels, and of whole models."""

    device: str = setting("cpu", "cpu or cuda")
    dtype: str = setting("float32", "type of queries, keys and values")
    lengths: list[int] = setting([512, 1024, 2048], "lengths of the input, in tokens")
    batch_tokens: int = setting(4096, "batch size times length")
    n_heads: int = setting(8, "heads of attention")
    d_head: int = setting(64, "width of a head")
    max_distance: int | None = setting(None, "longest distance in the relative table; null: as long as the input")
    n_frequencies: int = setting(16, "position=relative_fourier: frequencies in each head")
    model_length: int | None = setting(2048, "window length of a whole model's training step; null: skip it")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures, the plot goes beside it; null: none")


@dataclass
class BenchPositionsConfig:
    """musictx bench positions: forms of position compared by training."""

    store: str = setting(MISSING, "chorales, from `musictx prepare chorales`")
    experiment: str = setting("demo", "the experiment of `musictx train` whose settings all forms share")
    overrides: list[str] = setting([], "further settings of `musictx train`, for all forms")
    steps: int = setting(500, "optimizer steps of each run")
    random_seeds: int = setting(3, "runs of each form, each with its own random seed")
    validations: int = setting(4, "validations in each run; whole pieces take long")
    work: str = setting(MISSING, "the folder for the runs")
    out: str = setting(MISSING, "a JSON file for the figures; the plot goes beside it")


@dataclass
class BenchSamplingConfig:
    """musictx bench sampling: tokens per second of our engine, our rewrite of the public code and Hugging Face."""

    device: str = setting("cpu", "cpu or cuda")
    d_model: int = setting(512, "width of the models")
    n_layers: int = setting(6, "layers of the models")
    n_heads: int = setting(8, "heads of attention")
    d_ff: int = setting(2048, "width inside the feed-forward layers")
    max_distance: int = setting(1024, "longest distance in the relative table; the public model's is its longest input")
    length: int = setting(1024, "new tokens in each row")
    batches: list[int] = setting([16], "rows at once, beside one stream")
    public_points: int = setting(5, "lengths at which a step of the uncached loop is timed; 0: run the whole loop")
    context: int | None = setting(512, "tokens that the rolling cache shows; null: no curve")
    contexts: int = setting(10, "the curve ends at this many times `context`")
    repeats: int = setting(3, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures, the curve goes beside it; null: none")


@dataclass
class BenchTrainingConfig:
    """musictx bench training: tokens per second of a training step beside our rewrite of the public code."""

    device: str = setting("cpu", "cpu or cuda")
    d_model: int = setting(512, "width of the models")
    n_layers: int = setting(6, "layers of the models")
    n_heads: int = setting(8, "heads of attention")
    d_ff: int = setting(2048, "width inside the feed-forward layers")
    dropout: float = setting(0.1, "dropout everywhere but on the attention weights")
    attention_dropouts: list[float] = setting(
        [0.1, 0.0], "dropout on the attention weights: with it, as the public code has it, and without"
    )
    length: int = setting(2048, "tokens in a window, as in the public code and the paper")
    batch: int = setting(2, "windows at once")
    precisions: list[str] = setting(["32-true", "bf16-mixed"], "precisions that our code trains in")
    positions: list[str] = setting(["relative", "relative_fourier"], "forms of position of our models")
    impl: str = setting("auto", "the kernel of position=relative")
    compile: bool = setting(False, "measure ours once more under torch.compile")
    workers: list[int] = setting([0, 1], "processes that load data, for the idle share")
    loader_steps: int = setting(8, "steps over which the idle share is measured")
    peak_size: int = setting(2048, "width of the square matrices whose product gives the machine's peak")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


@dataclass
class CheckConfig:
    """musictx check: check kernels, training and sampling on this machine's device, and print a report to paste."""

    device: str = setting("cpu", "cpu or cuda")
    parts: list[str] = setting(["kernels", "training", "steps", "generation", "triton"], "what to check")
    longest: int = setting(300, "keys in the largest attention check")
    timed_length: int = setting(1024, "tokens in the timed attention")
    steps: int = setting(50, "optimizer steps of each training")
    store: str | None = setting(
        None, "a store of chorales to train on; null: the one chorale inside musictx, in all keys"
    )
    overrides: list[str] = setting([], "further settings of `musictx train`, for each training")
    tokens: int = setting(192, "new tokens in each variation")
    variations: int = setting(4, "continuations to draw")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a text file for the report; null: none")
