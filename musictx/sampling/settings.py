"""What a person can ask of a continuation, with its defaults: how a next token is drawn, how much, under which rules.

`Sampling` and `Rules` are parts of the commands' schemas too, and `Settings` gives `musictx generate` its defaults.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from musictx.errors import ConfigError
from musictx.sampling.length import Length
from musictx.setting import setting
from musictx.tokenizers.rules import Rules

MOST_GUIDANCE = 10.0
AUTO = "auto"
SHARES = ("top_p", "min_p", "typical")


@dataclass  # not frozen: a schema of Hydra's that is frozen takes no overrides
class Sampling:
    """How a next token is drawn: the filters act after the temperature, one after the other, from top_k to typical.

    Raises ConfigError for impossible values.
    """

    temperature: float = setting(
        1.0, "below 1 the likely tokens come more often, above 1 the unlikely; 0: always the likeliest"
    )
    temperature_end: float | None = setting(None, "the temperature goes in a line to this over the asked length")
    top_k: int | None = setting(None, "of this many likeliest tokens; null: of all")
    top_p: float | None = setting(0.98, "of the likeliest tokens that have this probability together; null: of all")
    min_p: float | None = setting(None, "of tokens with this share of the likeliest one's probability; null: of all")
    typical: float | None = setting(
        None, "of the tokens that surprise as much as expected, with this probability together; null: of all"
    )
    guard: bool = setting(True, "raise the temperature while the music goes in circles")
    beams: int | None = setting(
        None, "search for the likeliest music, so many ways at once, instead of drawing; needs length_tokens"
    )
    seed_guidance: int | float | str | None = setting(
        AUTO,
        "hold on to the seed: 1 or 2 bring its motifs back, 0 leaves out unlikely tokens alone; accompany: to the "
        "melody, 0 does nothing; null: not; auto: as the bundle says, which was chosen on validation",
    )
    guidance_tokens: int = setting(17, "how much of the seed's end guidance does not count as the seed, in tokens")
    guidance_cut: float = setting(0.01, "guidance draws no token with less than this share of the likeliest's chance")

    def __post_init__(self) -> None:
        # logits overflow when divided by less, and -inf becomes NaN when divided by very much more
        if self.temperature != 0 and not 1e-3 <= self.temperature <= 1e3:
            raise ConfigError(f"sampler.temperature={self.temperature}: give 0 (greedy) or 0.001 to 1000")
        if self.temperature_end is not None:
            if not 1e-3 <= self.temperature_end <= 1e3:
                raise ConfigError(
                    f"sampler.temperature_end={self.temperature_end}: give 0.001 to 1000, or null for no change"
                )
            if self.temperature == 0:
                raise ConfigError(
                    f"sampler.temperature_end={self.temperature_end}: temperature=0 is greedy throughout; "
                    "begin with 0.001 or more"
                )
        for name in ("top_k", "beams"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"sampler.{name}={value}: give 1 or more, or null for {_WITHOUT[name]}")
        for name in SHARES:
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ConfigError(f"sampler.{name}={value}: give a share above 0 up to 1, or null for no limit")
        if self.seed_guidance is not None and self.seed_guidance != AUTO:
            # refuses NaN too
            if isinstance(self.seed_guidance, str) or not 0 <= self.seed_guidance <= MOST_GUIDANCE:
                raise ConfigError(
                    f"sampler.seed_guidance={self.seed_guidance}: give 0 to {MOST_GUIDANCE:g}, null for none, or auto "
                    "for the bundle's own"
                )
            if self.beams is not None:
                raise ConfigError(
                    "sampler.seed_guidance is for drawing, and sampler.beams search: leave one of them out"
                )
        if self.guidance_tokens < 1:
            raise ConfigError(f"sampler.guidance_tokens={self.guidance_tokens}: give 1 or more")
        if not 0 < self.guidance_cut <= 1:
            raise ConfigError(f"sampler.guidance_cut={self.guidance_cut}: give a share above 0 up to 1")

    @property
    def strength(self) -> float | None:
        """Of seed guidance; none where it is left to a bundle and none was asked."""
        return None if self.seed_guidance is None or isinstance(self.seed_guidance, str) else float(self.seed_guidance)

    def suited(self, own: float | None) -> "Sampling":
        """With what a bundle says of seed guidance, where that was left to it; beams search without."""
        return self if self.seed_guidance != AUTO else replace(self, seed_guidance=None if self.beams else own)

    def temperature_at(self, progress: float) -> float:
        """The temperature at a share of the asked length; the end's beyond it."""
        if self.temperature_end is None:
            return self.temperature
        return self.temperature + (self.temperature_end - self.temperature) * min(max(progress, 0.0), 1.0)


_WITHOUT = {"top_k": "no limit", "beams": "drawing"}
PLAIN = Sampling(top_p=None, guard=False, seed_guidance=None)  # the model's own distribution


class Settings(NamedTuple):
    """What is asked of every continuation of one call; `continue_motifs` explains them."""

    sampling: Sampling = Sampling()
    length: Length = Length()
    rules: Rules = Rules()
    seed: int = 0
    max_tokens: int | None = None
    window: int | None = None
    include_seed: bool = True
    forced_ending: bool = False
    device: str = "cpu"
    rows_at_once: int = 16  # in one batch
    seed_pinned: bool = False
    own_guidance: float | None = None  # what the bundle's header says, where `sampling` leaves it to that
