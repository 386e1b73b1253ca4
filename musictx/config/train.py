"""What `musictx train` can be told."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING


@dataclass
class DataConfig:
    path: str = MISSING  # the store, a folder made by a script of data_prep/
    length: int = MISSING  # ids in a training window
    grow_from: int | None = None  # cut windows to so many ids first, twice as many in each equal part of the run
    transpose: int = MISSING  # up to this many semitones either way
    stretch: list[float] = MISSING  # factors of the clock to choose from
    segment: int | None = MISSING  # validation inputs of this many ids; null: whole pieces
    carry: bool | None = None  # windows go on where the last batch ended; null: for recurrent models
    windows_per_epoch: int | None = None  # null: as many as hold the split's tokens
    score_batch_tokens: int = 4096
    workers: int = 0


@dataclass
class TokenizerConfig:
    name: str = MISSING
    bpe_vocab: int | None = None  # learn byte-pair merges up to this many tokens; MidiTok's tokenizers alone


@dataclass
class ModelConfig:
    kind: str = "transformer"  # or recurrent; a kind refuses the settings below that are another's
    d_model: int = MISSING
    n_layers: int = MISSING
    dropout: float = MISSING
    # recurrent
    cell: str = "lstm"  # or rnn
    additive: bool = False  # attention over the past states of the top layer
    d_attention: int = 128
    window: int = 512  # how many past states that attention sees
    # transformer
    n_heads: int | None = None
    d_ff: int | None = None
    max_distance: int | None = None  # in tokens; farther ones share the last row of the relative table
    position: str = "relative"  # or relative_fourier, rope, sinusoidal, learned, none
    clock: str = "index"  # relative_fourier and rope: index counts tokens, time counts seconds or sixteenths
    n_frequencies: int = 16  # of relative_fourier, in each head
    max_positions: int = 2048  # of learned
    attention_dropout: float = 0.0  # on the attention weights
    cycle: int = 1  # tokens are told their place in every so many: 16 for a beat of four voices; 1: they are not
    mlp: str = "gelu"  # or swiglu, whose d_ff is the width after its gate
    qk_norm: bool = False  # queries and keys of one length, a learned gain for each head
    value_residual: bool = False  # each layer's values mixed with the first layer's: learns faster, docs/log.md


@dataclass
class AttentionConfig:
    impl: str = MISSING


@dataclass
class TrainerConfig:
    accelerator: str = MISSING
    precision: str = MISSING
    strategy: str = "auto"  # or ddp, fsdp: of several processes
    devices: int = 1  # on each node
    num_nodes: int = 1
    batch_size: int | str = MISSING  # of each device; auto: the largest power of two that fits, on CUDA
    max_epochs: int = MISSING
    max_steps: int = -1  # -1: until max_epochs
    accumulate: int = 1  # batches per optimizer step
    optimizer: str = "adamw"  # or muon: the matrices inside the blocks by Muon, the rest by AdamW
    lr: float = MISSING
    warmup_steps: int = MISSING
    schedule: str = "cosine"  # of the learning rate after warm-up; or hold: held, then straight to zero
    decay_share: float = 0.5  # of all steps, at the end of schedule=hold; 0: held for ever, docs/training.md
    weight_decay: float = 0.01
    grad_clip: float = 1.0
    label_smoothing: float = 0.0
    scheduled_sampling: float = 0.0  # share of the inputs that are the model's own guesses
    lora_rank: int | None = None  # with init_from: learn adapters of this rank beside frozen weights; null: all weights
    ema_decay: float | None = None  # validate and keep a running average of the weights; 0.999 forgets in 1000 steps
    validate_every: int | None = None  # in batches; null: once an epoch
    keep: str = "best"  # the bundle is that of the best validation; or last: of the end, whatever validation says
    checkpoint_every: int = 500  # in optimizer steps; what a run that is stopped goes on from
    sample_every: int | None = None  # in optimizer steps: continuations of a held-out seed; null: none
    log_every: int = 10  # in optimizer steps
    compile: bool = False  # torch.compile
    checkpoint_activations: bool = False  # recompute the blocks in the backward pass: less memory, a third slower
    smoke: bool = False  # two steps of everything, then the folder is removed
    progress_bar: bool = True


@dataclass
class LoggerConfig:
    name: str = MISSING  # csv or wandb
    project: str = "musictx"
    mode: str | None = None  # wandb: online, offline, disabled; null: WANDB_MODE, else online


@dataclass
class TrainConfig:
    """musictx train: fit a model to a store, keep the best as a bundle."""

    name: str = MISSING
    seed: int = 0
    out: str = MISSING  # the run's folder; an unfinished run in it is gone on with
    overwrite: bool = False  # begin anew in a folder that holds a run
    resume: str | None = None  # the folder of an unfinished run, with its settings
    init_from: str | None = None  # a bundle whose weights to begin with: piano, chorale or a file
    objective: str = "next_token"  # what is learnt of a window; or my_module:MyObjective, docs/extending.md
    objective_settings: Any = None  # of an objective that has any: 'objective_settings={share: 0.1}'
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
