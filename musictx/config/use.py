"""What generating, evaluating and the demo can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig, DataConfig


@dataclass
class SamplerConfig:
    temperature: float = MISSING
    top_k: int | None = MISSING
    top_p: float | None = MISSING


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
