"""The settings of a Transformer and what they may be, for all who read them: this file needs no PyTorch."""

from dataclasses import dataclass

from musictx.errors import ConfigError
from musictx.model.sizes import check_numbers, one_of
from musictx.setting import setting

CLOCKS, MLPS, NORMS, KEYBOARDS = ("index", "time"), ("gelu", "relu", "swiglu"), ("pre", "post"), ("none", "head")
WIDEST = 64  # tokens that a convolution reads; each takes a product of the whole input
SEEN = "head: the model sees which keys are down, and since when; or none"


@dataclass(frozen=True)
class TransformerSettings:
    """The settings of a Transformer. Raises ConfigError for impossible sizes and unknown words; whoever knows the forms
    of position checks those."""

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
        for name, known in {"clock": CLOCKS, "mlp": MLPS, "norm": NORMS, "keyboard": KEYBOARDS}.items():
            one_of(name, getattr(self, name), known)
