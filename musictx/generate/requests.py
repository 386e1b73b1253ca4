"""What a person can ask of a continuation, with defaults: how the next token is drawn, how much, under which rules.

The commands' schemas contain `Sampling` and `Rules` too, and `Settings` gives `musictx generate` its defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.setting import setting
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.rules import Rules

DEFAULT_S = 20.0
MOST = {"seconds": 24 * 3600.0, "bars": 100_000.0, "notes": 1_000_000, "tokens": 1_000_000}
MOST_TOKENS = 1_000_000  # of all rows together


@dataclass(frozen=True)
class Length:
    """At most one of the four; none means 20 seconds. Raises ConfigError for more, and for impossible amounts."""

    seconds: float | None = None
    bars: float | None = None
    notes: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        given = {name: value for name in MOST if (value := getattr(self, name)) is not None}
        if len(given) > 1:
            names = ", ".join(f"⟨length_{name}⟩={value}" for name, value in given.items())
            raise ConfigError(f"{names}: give one of them")
        for name, value in given.items():
            if not 0 < value <= MOST[name]:  # refuses NaN too
                raise ConfigError(f"⟨length_{name}⟩={value}: give more than 0 and at most {MOST[name]:g}")

    def in_seconds(self, bar_s: float) -> float | None:
        """The seconds asked for; None for notes or tokens."""
        if self.bars is not None:
            return self.bars * bar_s
        return DEFAULT_S if self.notes is None and self.tokens is None and self.seconds is None else self.seconds


class Progress:
    """How far one row has come, measured at every look; 1 is the length asked for."""

    def __init__(
        self, length: Length, bar_s: float, tokenizer: Tokenizer, prompt: NDArray[np.integer], quarter_s: float
    ) -> None:
        self.length, self.seconds = length, length.in_seconds(bar_s)
        self.tokenizer, self.prompt, self.quarter_s = tokenizer, prompt, quarter_s
        self.start_s = tokenizer.seconds(prompt, quarter_s)
        self.start_notes = len(tokenizer.decode(prompt, quarter_s)) if length.notes is not None else 0
        self.tokens, self.elapsed_s = 0, 0.0
        self.seen: list[tuple[int, float]] = [(0, 0.0)]  # (tokens, share) at every look

    def look(self, row: NDArray[np.integer]) -> float:
        """The share after the ids (T,) drawn so far."""
        share = self._share(row)
        self.tokens = len(row)
        self.seen.append((self.tokens, share))
        return share

    def _share(self, row: NDArray[np.integer]) -> float:
        if self.length.tokens is not None:
            return len(row) / self.length.tokens
        if self.length.notes is not None:
            notes = len(self.tokenizer.decode(np.concatenate([self.prompt, row]), self.quarter_s))
            return (notes - self.start_notes) / self.length.notes
        assert self.seconds is not None
        if self.tokenizer.pace is not None:  # every id moves the clock by itself: measuring the new ones is enough
            whole = self.tokens - self.tokens % self.tokenizer.group
            before = self.tokenizer.seconds(row[whole : self.tokens], self.quarter_s)
            self.elapsed_s += self.tokenizer.seconds(row[whole:], self.quarter_s) - before
        else:
            both = np.concatenate([self.prompt, row])
            self.elapsed_s = self.tokenizer.seconds(both, self.quarter_s) - self.start_s
        return self.elapsed_s / self.seconds

    def at(self, tokens: NDArray[np.integer]) -> NDArray[np.float64]:
        """The share after each number of tokens, interpolated linearly between the looks."""
        at, share = np.array(self.seen).T
        between: NDArray[np.float64] = np.interp(tokens, at, share)
        return between


MOST_GUIDANCE = 10.0
AUTO = "auto"
TOP_P = 0.98  # where neither a person nor the bundle says
Own = Mapping[str, float | None]  # what a bundle says of the sampler: BundleHeader.sampling
UNSAID: Own = MappingProxyType({})
SHARES = ("top_p", "min_p", "typical")


@dataclass  # not frozen: a frozen Hydra schema takes no overrides
class Sampling:
    """How the next token is drawn: the filters act after the temperature, one after the other, from top_k to typical.

    Raises ConfigError for impossible values.
    """

    temperature: float = setting(
        1.0, "below 1 the likely tokens come more often, above 1 the unlikely; 0: always the likeliest"
    )
    temperature_end: float | None = setting(None, "the temperature moves linearly to this over the asked length")
    top_k: int | None = setting(None, "draw from this many likeliest tokens; null: from all")
    top_p: int | float | str | None = setting(
        AUTO,
        "draw from the likeliest tokens that have this probability together; null: from all; auto: as the bundle says, "
        f"with its min_p, else {TOP_P:g}",
    )
    min_p: float | None = setting(
        None, "draw from tokens with at least this share of the likeliest one's probability; null: from all"
    )
    typical: float | None = setting(
        None,
        "draw from the tokens with a surprise nearest to the expected, with this probability together; null: from all",
    )
    guard: bool = setting(True, "the repetition guard: raises the temperature while the music goes in circles")
    beams: int | None = setting(
        None, "search for the likeliest music with this many beams instead of drawing; needs length_tokens"
    )
    seed_guidance: int | float | str | None = setting(
        AUTO,
        "hold on to the seed: 1 or 2 bring its motifs back, 0 only leaves out unlikely tokens; accompany: to the "
        "melody, 0 does nothing; null: off; auto: as the bundle says, which was chosen on validation",
    )
    guidance_tokens: int = setting(17, "guidance does not count this many tokens at the seed's end as the seed")
    guidance_cut: float = setting(
        0.01, "guidance draws only tokens with at least this share of the likeliest one's probability"
    )

    def __post_init__(self) -> None:
        # a smaller divisor makes logits overflow, a far larger one turns -inf into NaN
        if self.temperature != 0 and not 1e-3 <= self.temperature <= 1e3:
            raise ConfigError(f"⟨temperature⟩={self.temperature}: give 0 (greedy) or 0.001 to 1000")
        if self.temperature_end is not None:
            if not 1e-3 <= self.temperature_end <= 1e3:
                raise ConfigError(
                    f"⟨temperature_end⟩={self.temperature_end}: give 0.001 to 1000, or null for no change"
                )
            if self.temperature == 0:
                raise ConfigError(
                    f"⟨temperature_end⟩={self.temperature_end}: ⟨temperature⟩=0 is greedy throughout; "
                    "begin with 0.001 or more"
                )
        for name in ("top_k", "beams"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"⟨{name}⟩={value}: give 1 or more, or null for {_WITHOUT[name]}")
        for name in SHARES:
            value = getattr(self, name)
            if value is None or (name == "top_p" and value == AUTO):
                continue
            if isinstance(value, str) or not 0 < value <= 1:  # refuses NaN too
                auto = ", or auto for the bundle's own" if name == "top_p" else ""
                raise ConfigError(f"⟨{name}⟩={value}: give a share above 0 up to 1, or null for no limit{auto}")
        if self.seed_guidance is not None and self.seed_guidance != AUTO:
            # refuses NaN too
            if isinstance(self.seed_guidance, str) or not 0 <= self.seed_guidance <= MOST_GUIDANCE:
                raise ConfigError(
                    f"⟨seed_guidance⟩={self.seed_guidance}: give 0 to {MOST_GUIDANCE:g}, null for none, or auto "
                    "for the bundle's own"
                )
            if self.beams is not None:
                raise ConfigError("⟨seed_guidance⟩ is for drawing, and ⟨beams⟩ search: leave one of them out")
        if self.guidance_tokens < 1:
            raise ConfigError(f"⟨guidance_tokens⟩={self.guidance_tokens}: give 1 or more")
        if not 0 < self.guidance_cut <= 1:
            raise ConfigError(f"⟨guidance_cut⟩={self.guidance_cut}: give a share above 0 up to 1")

    @property
    def strength(self) -> float | None:
        """The strength of seed guidance; None if it is off, or still left to the bundle."""
        return None if self.seed_guidance is None or isinstance(self.seed_guidance, str) else float(self.seed_guidance)

    @property
    def nucleus(self) -> float | None:
        """The share of top_p; None: draw from all."""
        if self.top_p == AUTO:
            return TOP_P
        return None if self.top_p is None else float(self.top_p)

    def suited(self, own: Own) -> "Sampling":
        """With the bundle's `own` settings where these say auto; a top_p that a person gives goes without the bundle's
        min_p, and beams search without guidance."""
        out = self
        if self.seed_guidance == AUTO:
            out = replace(out, seed_guidance=None if self.beams else own.get("seed_guidance"))
        if self.top_p == AUTO:
            min_p = own.get("min_p") if self.min_p is None else self.min_p
            out = replace(out, top_p=own.get("top_p", TOP_P), min_p=min_p)
        return out

    def temperature_at(self, progress: float) -> float:
        """The temperature at a share of the asked length; beyond it, the temperature of the end."""
        if self.temperature_end is None:
            return self.temperature
        return self.temperature + (self.temperature_end - self.temperature) * min(max(progress, 0.0), 1.0)


_WITHOUT = {"top_k": "no limit", "beams": "drawing"}
PLAIN = Sampling(top_p=None, guard=False, seed_guidance=None)  # the model's own distribution


class Settings(NamedTuple):
    """The settings of all continuations of one call; `continue_primers` explains them."""

    sampling: Sampling = Sampling()
    length: Length = Length()
    rules: Rules = Rules()
    random_seed: int = 0
    max_tokens: int | None = None
    window: int | None = None
    include_seed: bool = True
    forced_ending: bool = False
    device: str = "cpu"
    rows_at_once: int = 16  # in one batch
    own: Own = UNSAID  # from the bundle's header, used where `sampling` says auto
