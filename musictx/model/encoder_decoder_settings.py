"""The settings of an encoder-decoder Transformer and what they may be: this file needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from musictx.errors import ConfigError
from musictx.model.transformer_settings import TransformerSettings
from musictx.setting import setting

TABLE_S = 0.1  # seconds of a row of a table of distances from target to source, where time is in seconds


@dataclass(frozen=True)
class EncoderDecoderSettings(TransformerSettings):
    """The settings of an encoder-decoder. Raises ConfigError for what they cannot be."""

    n_layers: int = setting(4, "layers of the decoder")
    clock: str = setting(
        "index", "position=relative_fourier and rope, ids with seconds: index counts tokens, time counts seconds"
    )
    cycle: int = setting(
        1, "each token learns its place in a cycle of so many tokens of both, 16 for a beat; 1: no cycle"
    )
    n_encoder_layers: int = setting(2, "layers of the encoder")
    source_voices: int = setting(1, "tokens of the source that are heard as one, as the voices of a chord")
    source_group: int = setting(1, "tokens of the source that make one step of time")
    target_group: int = setting(1, "tokens of the target that make one step of time")
    pad: int = -1  # the id that fills sources up; -1: none
    paced: bool = False  # the ids themselves count time; False: they are steps of a grid
    keyboard: ClassVar[str] = "none"  # type: ignore[misc] # not a setting here
    conv: ClassVar[int] = 1  # type: ignore[misc] # nor is this: the encoder looks both ways
    norm: ClassVar[str] = "pre"  # type: ignore[misc] # nor is this

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clock != "index" and not self.paced:
            why = "on a grid an encoder-decoder has its own clock"
            raise ConfigError("clock", got=self.clock, why=why, allowed="index")
        if self.paced and self.source_voices > 1:
            why = "tokens that count time are heard one by one"
            raise ConfigError("source_voices", got=self.source_voices, why=why, allowed="1")

    @property
    def group(self) -> int:
        """Ids of one step, source and target together."""
        return self.source_group + self.target_group

    @property
    def per_row(self) -> float:
        """How much time a row of a table of distances from target to source is: seconds, or steps of the grid."""
        return TABLE_S if self.paced else 1

    def check_cycle(self) -> None:
        """Raises ConfigError for a cycle that ends within a step. The config of one stream has another cycle, and is
        not asked."""
        if self.cycle > 1 and self.cycle % self.group:
            why = f"a step has {self.group} ids"
            raise ConfigError("cycle", got=self.cycle, why=why, allowed=f"a multiple of {self.group}, or 1")

    def stream(self, group: int) -> Self:
        """The config of the stream with `group` ids a step, as a Transformer: its cycle counts only these ids."""
        return replace(self, cycle=max(self.cycle // self.group * group, 1))
