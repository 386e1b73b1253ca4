"""How a next token is drawn: what a person can ask for, checked once."""

from dataclasses import dataclass

from musictx.errors import ConfigError

MOST_GUIDANCE = 10.0
SHARES = ("top_p", "min_p", "typical")


@dataclass(frozen=True)
class Sampling:
    """Temperature 0 takes the likeliest. Raises ConfigError for impossible values.

    `temperature_end` makes the temperature a line from one to the other over the asked length. The filters act after
    the temperature, one after the other: the `top_k` likeliest; the nucleus `top_p`; `min_p`, a share of the
    likeliest one's probability; `typical`, the mass of the tokens that surprise as much as expected. `guard` raises
    the temperature while the music is caught in a loop. `beams` searches for the likeliest music instead of drawing.
    `seed_guidance` holds on to the seed (`musictx.sampling.guidance`), before the temperature; `guidance_tokens` is
    how much of its end is no news, `guidance_cut` how unlikely a token may be beside the likeliest.
    """

    temperature: float = 1.0
    temperature_end: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical: float | None = None
    guard: bool = False
    beams: int | None = None
    seed_guidance: float | None = None
    guidance_tokens: int = 17
    guidance_cut: float = 0.01

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
        if self.seed_guidance is not None:
            if not 0 <= self.seed_guidance <= MOST_GUIDANCE:  # refuses NaN too
                raise ConfigError(
                    f"sampler.seed_guidance={self.seed_guidance}: give 0 to {MOST_GUIDANCE:g}, or null for none"
                )
            if self.beams is not None:
                raise ConfigError(
                    "sampler.seed_guidance is for drawing, and sampler.beams search: leave one of them out"
                )
        if self.guidance_tokens < 1:
            raise ConfigError(f"sampler.guidance_tokens={self.guidance_tokens}: give 1 or more")
        if not 0 < self.guidance_cut <= 1:
            raise ConfigError(f"sampler.guidance_cut={self.guidance_cut}: give a share above 0 up to 1")

    def temperature_at(self, progress: float) -> float:
        """The temperature at a share of the asked length; the end's beyond it."""
        if self.temperature_end is None:
            return self.temperature
        return self.temperature + (self.temperature_end - self.temperature) * min(max(progress, 0.0), 1.0)


_WITHOUT = {"top_k": "no limit", "beams": "drawing"}
