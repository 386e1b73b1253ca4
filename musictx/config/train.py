"""The settings of `musictx train`."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from musictx.setting import setting


@dataclass
class DataConfig:
    """The store to learn from, and its windows."""

    path: str = setting(MISSING, "the store, a folder that `musictx prepare` made", path=True)
    length: int = setting(MISSING, "ids in a training window")
    transpose: int = setting(MISSING, "transpose by up to this many semitones, up or down")
    stretch: list[float] = setting(MISSING, "stretch time by one of these factors")
    segment: int | None = setting(MISSING, "ids in a segment for scoring; null: whole pieces")
    stride: int | None = setting(
        None,
        "with data.segment: windows move on by so many ids, and each scores only those; a recurrent model carries its "
        "state through whole pieces instead; null: segments know nothing of what came before",
    )
    windows_per_epoch: int | None = setting(None, "windows in an epoch; null: as many as the split's tokens fill")
    score_batch_tokens: int = setting(4096, "ids scored in one batch")
    workers: int = setting(0, "processes that load data; 0: load in the training process")


@dataclass
class TokenizerConfig:
    """How music is written as ids."""

    name: str = setting(MISSING, "performance, chorale, score, miditok-remi, miditok-tsd or miditok-structured")
    bpe_vocab: int | None = setting(
        None, "learn byte-pair merges up to this many tokens, only with MidiTok's tokenizers; null: none"
    )


@dataclass
class AttentionConfig:
    """How attention is computed; the results are the same."""

    impl: str = setting("auto", "auto: the fastest exact one here; or reference, skew, chunked, triton")


EPOCHS = {"cpu": 20, "cuda": 100}  # where a person gives no limit


@dataclass
class TrainerConfig:
    """How, where and how long to train."""

    accelerator: str = setting(MISSING, "cpu or cuda")
    precision: str = setting(MISSING, "32-true, bf16-mixed, bf16-true or 16-mixed")
    strategy: str = setting("auto", "ddp: several processes; auto: one")
    devices: int = setting(1, "processes on each node")
    num_nodes: int = setting(1, "nodes, as a cluster calls its machines")
    batch_size: int = setting(MISSING, "windows in a batch, on each device")
    max_epochs: int | None = setting(
        None, "passes through the training pieces; null: until max_steps, without it 20 on a CPU, 100 on a GPU"
    )
    max_steps: int = setting(-1, "optimizer steps; -1: until max_epochs")
    accumulate: int = setting(1, "batches per optimizer step")
    optimizer: str = setting("adamw", "adamw; or muon: matrices of linear layers and cells by Muon, the rest by AdamW")
    lr: float = setting(MISSING, "peak learning rate")
    warmup_steps: int = setting(MISSING, "steps until the learning rate reaches its peak")
    schedule: str = setting("cosine", "the rate after warm-up: cosine; or hold: constant, then linearly to zero")
    decay_share: float = setting(
        0.5,
        "schedule=hold: share of all steps, at the end, in which the rate falls; 0: never "
        "(docs/train/all-about-training.md)",
    )
    weight_decay: float = setting(0.01, "how strongly matrices are pulled towards zero")
    grad_clip: float = setting(1.0, "largest norm of the gradient")
    hide_source: float = setting(
        0.0, "share of the examples whose source (a melody) is hidden: accompany can be guided then; in training alone"
    )
    ema_decay: float | None = setting(
        None, "validate and keep a running average of the weights, 0.999 forgets in 1000 steps; null: no average"
    )
    validate_every: int | None = setting(None, "batches from one validation to the next; null: once an epoch")
    patience: int | None = setting(
        None, "stop after so many validations in a row that are no better than the best; null: never"
    )
    keep: str = setting("best", "best: the bundle has the weights of the best validation; last: the last weights")
    checkpoint_every: int = setting(
        500, "optimizer steps from one checkpoint to the next; a stopped run resumes from the last one"
    )
    sample_every: int | None = setting(
        None, "optimizer steps from one sample, a continued held-out beginning, to the next; null: no samples"
    )
    log_every: int = setting(10, "optimizer steps from one logged loss to the next")
    compile: bool = setting(False, "train through torch.compile")
    checkpoint_activations: bool = setting(
        False, "recompute the blocks in the backward pass: less memory, a third slower"
    )
    progress_bar: bool = setting(True, "show progress during the run")

    @property
    def epochs(self) -> int:
        """The most passes through the training pieces; -1: steps alone end the training."""
        if self.max_epochs is None and self.max_steps == -1:
            return EPOCHS[self.accelerator]
        return -1 if self.max_epochs is None else self.max_epochs

    def total_steps(self, batches_per_epoch: int) -> int:
        """Optimizer steps until the first limit."""
        limits = [self.epochs * -(-batches_per_epoch // self.accumulate), self.max_steps]
        return min(limit for limit in limits if limit > 0)


@dataclass
class LoggerConfig:
    """Where the metrics go, beside metrics.csv."""

    name: str = setting(MISSING, "csv, tensorboard or wandb")
    project: str = setting("musictx", "wandb: the project that lists the run")
    mode: str | None = setting(None, "wandb: online, offline or disabled; null: WANDB_MODE, else online")


@dataclass
class TrainConfig:
    """musictx train: fit a model to a store, keep the best as a bundle."""

    name: str = setting(MISSING, "name of the run")
    random_seed: int = setting(0, "random seed")
    out: str = setting(MISSING, "the run's folder; an unfinished run in it is resumed", folder=True)
    overwrite: bool = setting(False, "replace the run in the folder and start again")
    resume: str | None = setting(
        None, "the folder of an unfinished run to resume, with its settings; null: none", path=True
    )
    init_from: str | None = setting(
        None,
        "begin with the weights of this bundle: piano, chorale, a file or a run's folder; null: new weights",
        path=True,
    )
    objective: str = setting(
        "next_token",
        "what the model learns from a window: next_token, infill, voices (of a chorale, around others), or "
        "my_module:MyObjective (docs/extend/objective.md)",
    )
    objective_settings: Any = setting(
        None,
        "settings of the objective, if it has any: 'objective_settings={plain: 0.5}', share of windows without a gap",
    )
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Any = MISSING  # the settings of a kind, by its schema of config/model.py, as the preset names it
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
