"""The settings of models, and their limits: this file needs no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from musictx.errors import ConfigError
from musictx.setting import setting

WEIGHTS, AUTO = ("float32", "bfloat16", "int8"), "auto"  # how a model keeps its weights to generate
LARGEST, MOST_LAYERS = 2**20, 2**10  # no model of any size known comes near
CLOCKS, MLPS, NORMS, KEYBOARDS = ("index", "time"), ("gelu", "relu", "swiglu"), ("pre", "post"), ("none", "head")
WIDEST = 64  # tokens that a convolution reads; each takes a product of the whole input
N_KEYS, N_FEATURES = 128, 4  # of the keyboard that a model sees
STRIKE, RELEASE, CLEAR = 1, 2, 3  # the acts of ids on its keys; CLEAR: other music begins, and all keys are up
LONG_S = 1e4  # a key that was never struck counts as struck so long ago
REACH, HIDDEN, RANK = 12, 32, 16  # of its head: keys on each side, width, numbers that steer each key
SEEN = "head: the model sees which keys are down, and since when; or none"
FORMER = {"clock": "index", "paced": False}  # settings of an encoder-decoder in older files, with the one value left


def check_numbers(config: Any) -> None:
    """Raises ConfigError unless sizes are whole numbers in range and shares are from 0 to below 1. Settings with a
    whole number as default are sizes, those with a fraction shares."""
    for each in fields(config):
        value, size = getattr(config, each.name), type(each.default) is int and "meaning" in each.metadata
        if size or each.name == "vocab_size" or (each.name == "trained_length" and value is not None):
            most = MOST_LAYERS if "layers" in each.name else LARGEST
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ConfigError(each.name, got=value, allowed=f"a whole number from 1 to {most}")
        elif type(each.default) is float and (not isinstance(value, int | float) or not 0 <= value < 1):
            raise ConfigError(each.name, got=value, allowed="a share from 0 up to below 1")


def one_of(field: str, value: str, words: Iterable[str]) -> str:
    """The value. Raises ConfigError for an unknown one."""
    if value not in words:
        raise ConfigError(field, got=value, allowed=f"one of {', '.join(words)}")
    return value


@dataclass(frozen=True)
class TransformerSettings:
    """The settings of a Transformer. Raises ConfigError for impossible sizes and unknown words; `TransformerConfig`
    checks forms of position."""

    vocab_size: int
    d_model: int = setting(256, "width")
    n_layers: int = setting(4, "layers")
    n_heads: int = setting(4, "heads of attention")
    d_ff: int = setting(1024, "width inside the feed-forward layers")
    dropout: float = setting(0.1, "share dropped in training, everywhere but on the attention weights")
    attention_dropout: float = setting(0.0, "dropout on the attention weights")
    position: str = setting("relative", "relative, relative_fourier, rope, sinusoidal, learned or none")
    max_distance: int = setting(
        512, "longest distance in tokens; farther tokens share the outer rows of the relative table"
    )
    clock: str = setting(
        "index", "position=relative_fourier and rope: index counts tokens, time counts seconds or sixteenths"
    )
    n_frequencies: int = setting(16, "position=relative_fourier: frequencies in each head")
    max_positions: int = setting(2048, "position=learned: the longest input, in tokens")
    cycle: int = setting(
        1, "each token learns its place in a cycle of so many tokens, 16 for a beat of four voices; 1: no cycle"
    )
    mlp: str = setting("gelu", "gelu, relu or swiglu; the d_ff of swiglu is the width after its gate")
    norm: str = setting("pre", "pre: before attention and MLP; post: after their sums, as in the first Transformer")
    qk_norm: bool = setting(False, "scale queries and keys to one length, with a learned gain for each head")
    value_residual: bool = setting(False, "mix each layer's values with the first layer's; learns faster")
    conv: int = setting(1, "attention reads each token with those before it, so many in all; 1: alone")
    keyboard: str = setting("none", SEEN)
    attention: str = "auto"  # the kernel of the relative form
    trained_length: int | None = None  # how far it looks back in endless music: its longest training window, or less

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.conv > WIDEST:
            raise ConfigError("conv", got=self.conv, allowed=f"1 to {WIDEST}")
        if self.d_model % self.n_heads:
            raise ConfigError("d_model", got=self.d_model, allowed=f"a multiple of n_heads={self.n_heads}")
        for name, words in {"clock": CLOCKS, "mlp": MLPS, "norm": NORMS, "keyboard": KEYBOARDS}.items():
            one_of(name, getattr(self, name), words)


@dataclass(frozen=True)
class EncoderDecoderSettings(TransformerSettings):
    """The settings of an encoder-decoder. Raises ConfigError for impossible ones."""

    n_layers: int = setting(4, "layers of the decoder")
    cycle: int = setting(
        1, "each token learns its place in a cycle of so many tokens of both, 16 for a beat; 1: no cycle"
    )
    n_encoder_layers: int = setting(2, "layers of the encoder")
    source_voices: int = setting(1, "tokens of the source that are heard as one, as the voices of a chord")
    source_group: int = setting(1, "tokens of the source that make one step of time")
    target_group: int = setting(1, "tokens of the target that make one step of time")
    pad: int = -1  # the id that fills sources up; -1: none
    clock: ClassVar[str] = "index"  # type: ignore[misc] # not a setting here: between the streams it counts steps
    keyboard: ClassVar[str] = "none"  # type: ignore[misc] # nor is this
    conv: ClassVar[int] = 1  # type: ignore[misc] # nor is this: the encoder looks both ways
    norm: ClassVar[str] = "pre"  # type: ignore[misc] # nor is this

    @property
    def group(self) -> int:
        """Ids of one step, source and target together."""
        return self.source_group + self.target_group

    def check_cycle(self) -> None:
        """Raises ConfigError for a cycle that ends within a step. The config of a single stream may have one."""
        if self.cycle > 1 and self.cycle % self.group:
            why = f"a step has {self.group} ids"
            raise ConfigError("cycle", got=self.cycle, why=why, allowed=f"a multiple of {self.group}, or 1")

    def stream(self, group: int) -> Self:
        """The config of the stream with `group` ids a step: its cycle counts only these ids."""
        return replace(self, cycle=max(self.cycle // self.group * group, 1))
