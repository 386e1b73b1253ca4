"""What `musictx train` can be told."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from musictx.setting import setting


@dataclass
class DataConfig:
    """What is learnt from, and in which windows."""

    path: str = setting(MISSING, "the store, a folder that `musictx prepare` made")
    length: int = setting(MISSING, "ids in a training window")
    grow_from: int | None = setting(
        None,
        "cut windows to so many ids first, twice as many in each equal part of the run; null: whole from the start",
    )
    transpose: int = setting(MISSING, "up to this many semitones either way")
    stretch: list[float] = setting(MISSING, "factors of the clock to choose from")
    segment: int | None = setting(MISSING, "likelihood of inputs of this many ids; null: whole pieces")
    carry: bool | None = setting(None, "windows go on where the last batch ended; null: for recurrent models")
    windows_per_epoch: int | None = setting(None, "windows in an epoch; null: as many as hold the split's tokens")
    score_batch_tokens: int = setting(4096, "ids that are scored together")
    workers: int = setting(0, "processes that load data; 0: none of their own")


@dataclass
class TokenizerConfig:
    """How music is written as ids."""

    name: str = setting(
        MISSING, "performance, chorale, miditok-remi, miditok-tsd, miditok-structured or performance-melody"
    )
    bpe_vocab: int | None = setting(
        None, "learn byte-pair merges up to this many tokens, MidiTok's tokenizers alone; null: none"
    )


@dataclass
class AttentionConfig:
    """How attention is computed: the results are the same."""

    impl: str = setting("auto", "auto: the fastest exact one here; or reference, skew, chunked, triton")


@dataclass
class TrainerConfig:
    """How, where and how long it is trained."""

    accelerator: str = setting(MISSING, "cpu or cuda")
    precision: str = setting(MISSING, "32-true, bf16-mixed, bf16-true or 16-mixed")
    strategy: str = setting("auto", "ddp or fsdp: several processes; auto: one")
    devices: int = setting(1, "processes on each node")
    num_nodes: int = setting(1, "nodes, as a cluster calls its machines")
    batch_size: int | str = setting(
        MISSING, "windows, of each device; auto: the largest power of two that fits, on CUDA"
    )
    max_epochs: int = setting(MISSING, "passes through the training pieces")
    max_steps: int = setting(-1, "optimizer steps; -1: until max_epochs")
    accumulate: int = setting(1, "batches per optimizer step")
    optimizer: str = setting("adamw", "adamw; or muon: the matrices inside the blocks by Muon, the rest by AdamW")
    lr: float = setting(MISSING, "learning rate, at its highest")
    warmup_steps: int = setting(MISSING, "steps until the learning rate is there")
    schedule: str = setting("cosine", "the learning rate after warm-up: cosine; or hold: held, then straight to zero")
    decay_share: float = setting(
        0.5, "schedule=hold: share of all steps, at the end, in which it falls; 0: held for ever, docs/training.md"
    )
    weight_decay: float = setting(0.01, "how strongly matrices are drawn towards zero")
    grad_clip: float = setting(1.0, "largest norm of the gradient")
    label_smoothing: float = setting(0.0, "share of the target that all tokens have alike")
    scheduled_sampling: float = setting(0.0, "share of the inputs that are the model's own guesses")
    lora_rank: int | None = setting(
        None, "with init_from: learn adapters of this rank beside frozen weights; null: all weights"
    )
    ema_decay: float | None = setting(
        None, "validate and keep a running average of the weights, 0.999 forgets in 1000 steps; null: the weights"
    )
    validate_every: int | None = setting(None, "batches from one validation to the next; null: once an epoch")
    keep: str = setting(
        "best", "best: the bundle is that of the best validation; last: of the end, whatever validation says"
    )
    checkpoint_every: int = setting(
        500, "optimizer steps from one checkpoint to the next, from which a run that is stopped goes on"
    )
    sample_every: int | None = setting(
        None, "optimizer steps from one continuation of a held-out seed to the next; null: none"
    )
    log_every: int = setting(10, "optimizer steps from one logged loss to the next")
    compile: bool = setting(False, "train through torch.compile")
    checkpoint_activations: bool = setting(
        False, "recompute the blocks in the backward pass: less memory, a third slower"
    )
    smoke: bool = setting(False, "two steps of everything, then the folder is removed")
    progress_bar: bool = setting(True, "how far it has come, while it runs")


@dataclass
class LoggerConfig:
    """Where the curves go, beside metrics.csv."""

    name: str = setting(MISSING, "csv or wandb")
    project: str = setting("musictx", "of wandb: where the run is listed")
    mode: str | None = setting(None, "of wandb: online, offline, disabled; null: WANDB_MODE, else online")


@dataclass
class TrainConfig:
    """musictx train: fit a model to a store, keep the best as a bundle."""

    name: str = setting(MISSING, "of the run")
    seed: int = setting(0, "of the random numbers")
    out: str = setting(MISSING, "the run's folder; an unfinished run in it is gone on with")
    overwrite: bool = setting(False, "begin anew in a folder that holds a run")
    resume: str | None = setting(None, "the folder of an unfinished run, with its settings; null: none")
    init_from: str | None = setting(
        None, "a bundle whose weights to begin with: piano, chorale, a file or a run's folder; null: new weights"
    )
    objective: str = setting(
        "next_token",
        "what is learnt of a window: next_token, infill, conditional (voices for a melody), or my_module:MyObjective "
        "(docs/extending.md)",
    )
    objective_settings: Any = setting(
        None,
        "of an objective that has any: 'objective_settings={plain: 0.5}', windows that infill leaves whole",
    )
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Any = MISSING  # one of MODELS in config/model.py, which the preset names
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
