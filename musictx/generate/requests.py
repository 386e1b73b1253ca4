"""The requests `Continue`, `Fill` and `Accompany`, which Python, commands and the page share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.primer import Part, only_one
from musictx.model.header import MOST_GUIDANCE
from musictx.music.grid import VOICE_SETS
from musictx.music.score import Meter
from musictx.setting import check_types, setting
from musictx.tokenizers.rules import AUTO, Rules

DEFAULT_S = 20.0
MOST = {"seconds": 24 * 3600.0, "bars": 100_000.0, "tokens": 1_000_000}
MOST_TOKENS = 1_000_000  # of all rows together


@dataclass(frozen=True)
class Length:
    """The length of new music in one unit; none means 20 seconds. Raises ConfigError for more units, and for impossible
    amounts."""

    seconds: float | None = None
    bars: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        check_types(self, {name: f"Length.{name}" for name in MOST})
        for name, value in only_one(self, MOST, "Length.").items():
            if not 0 < value <= MOST[name]:  # refuses NaN too
                raise ConfigError(f"Length.{name}", got=value, allowed=f"more than 0 and at most {MOST[name]:g}")

    def in_seconds(self, meter: Meter, from_s: float = 0.0) -> float | None:
        """The length in seconds, from a moment on; None for tokens."""
        if self.bars is not None:
            return meter.after(from_s, self.bars) - from_s
        return DEFAULT_S if self.tokens is None and self.seconds is None else self.seconds


TOP_P = 0.98  # where neither a person nor the bundle says
Own = Mapping[str, float | None]  # a bundle's settings of the sampler: BundleHeader.sampling
UNSAID: Own = MappingProxyType({})
SHARES = ("top_p", "min_p")


@dataclass(frozen=True)
class Sampling:
    """The temperature of a draw, then its filters from top_k to min_p.

    Raises:
        ConfigError: for impossible values.
    """

    temperature: float = setting(
        1.0, "below 1 the likely tokens come more often, above 1 the unlikely; 0: always the likeliest"
    )
    top_k: int | None = setting(None, "draw from this many likeliest tokens; null: from all")
    top_p: int | float | str | None = setting(
        AUTO,
        "draw from the likeliest tokens that have this probability together; null: from all; auto: as the bundle says, "
        f"with its min_p, else {TOP_P:g}",
    )
    min_p: float | None = setting(
        None, "draw from tokens with at least this share of the likeliest one's probability; null: from all"
    )
    guard: bool = setting(
        True,
        "keep new music from going in circles; where ids say when each key begins and ends, as of the piano, about as "
        "dense, full, high and low as its seed too; false: as the model likes",
    )
    seed_guidance: int | float | str | None = setting(
        AUTO,
        "keep close to the seed: 1 or 2 bring its motifs back, 0 only leaves out unlikely tokens; accompany: to the "
        "melody, 0 does nothing; null: off; auto: as the bundle says",
    )

    def __post_init__(self) -> None:
        check_types(self)
        # a smaller divisor makes logits overflow, a far larger one turns -inf into NaN
        if self.temperature != 0 and not 1e-3 <= self.temperature <= 1e3:
            raise ConfigError("temperature", got=self.temperature, allowed="0 (greedy) or 0.001 to 1000")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError("top_k", got=self.top_k, allowed="1 or more, or null for no limit")
        for name in SHARES:
            value = getattr(self, name)
            if value is None or (name == "top_p" and value == AUTO):
                continue
            if isinstance(value, str) or not 0 < value <= 1:  # refuses NaN too
                auto = ", or auto for the bundle's own" if name == "top_p" else ""
                raise ConfigError(name, got=value, allowed=f"a share above 0 up to 1, or null for no limit{auto}")
        guidance = self.seed_guidance
        if guidance not in (None, AUTO) and (isinstance(guidance, str) or not 0 <= guidance <= MOST_GUIDANCE):
            allowed = f"0 to {MOST_GUIDANCE:g}, null for none, or auto for the bundle's own"
            raise ConfigError("seed_guidance", got=guidance, allowed=allowed)

    @property
    def strength(self) -> float | None:
        """The strength of seed guidance; None if it is off, or the bundle's."""
        return None if self.seed_guidance is None or isinstance(self.seed_guidance, str) else float(self.seed_guidance)

    @property
    def nucleus(self) -> float | None:
        """The share of top_p; None for all."""
        if self.top_p == AUTO:
            return TOP_P
        return None if self.top_p is None else float(self.top_p)

    def suited(self, own: Own) -> "Sampling":
        """Replaces auto by the bundle's `own` settings; a person's top_p excludes its min_p."""
        out = self
        if self.seed_guidance == AUTO:
            out = replace(out, seed_guidance=own.get("seed_guidance"))
        if self.top_p == AUTO:
            min_p = own.get("min_p") if self.min_p is None else self.min_p
            out = replace(out, top_p=own.get("top_p", TOP_P), min_p=min_p)
        return out


PLAIN = Sampling(top_p=None, guard=False, seed_guidance=None)  # the model's own distribution

HUMANIZE = (
    "models of scores: new notes are loud and soft as people play them, and all notes of a notation file, which have "
    "no loudness; given notes of a MIDI file stay"
)
MOST_VARIATIONS = 1000
MAX_SEED = 2**63 - 1
FARTHEST = (-19, 21)  # semitones: every pitch of the grid, moved back, is one of MIDI's


@dataclass(frozen=True, kw_only=True)
class Request:
    """The settings of all requests."""

    sampling: Sampling = field(default_factory=Sampling, kw_only=False)
    rules: Rules = field(default_factory=Rules)
    control: Control = field(default_factory=Control)
    random_seed: int = 0  # the same one gives the same music
    variations: int = 1
    rows_at_once: int = 16  # in one batch
    humanize: bool = False  # loudness as people play

    def __post_init__(self) -> None:
        check_types(self, {"only": "part"})
        amounts = {"variations": (1, MOST_VARIATIONS), "random_seed": (0, MAX_SEED), "rows_at_once": (1, MOST_TOKENS)}
        for name, (least, most) in amounts.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise ConfigError(name, got=value, allowed=f"{least} to {most}")
        rules = self.rules
        if not rules.masks and replace(rules, masks=True, max_still_s=rules.max_still_s or AUTO) != Rules():
            hint = "leave out the other rules, or the masks on"
            raise ConfigError("masks", got=False, why="it forbids nothing", hint=hint)
        self.control.check_rules(rules)

    def refuse_humanize(self) -> None:
        """Raises ConfigError where new notes have a loudness of their own."""
        if self.humanize:
            raise ConfigError("humanize", got=True, why="it is for models of scores", allowed="false")

    @property
    def rows_each(self) -> int:
        """The rows of each variation, as in `Particles`; one where all would be the same."""
        return self.control.rows if self.sampling.temperature else 1


@dataclass(frozen=True, kw_only=True)
class NewMusic(Request):
    """The settings of continuations and fills."""

    length: Length = field(default=Length(), kw_only=False)
    max_tokens: int | None = None  # of one variation, even if it is shorter than requested
    window: int | None = None  # tokens that the model sees at once; None: its own
    drums: bool = False  # the seed's drums are heard
    only: str | None = None  # the name or number of the one part of a file that is heard and written; None: all

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None and self.window < 8:
            allowed = "8 tokens or more, or null for the model's own"
            raise ConfigError("Continue.window", got=self.window, allowed=allowed)


@dataclass(frozen=True, kw_only=True)
class Continue(NewMusic):
    """New music after a seed, or from nothing. Raises ConfigError."""

    part: Part = field(default_factory=Part)  # of the seed, which is the primer
    include_seed: bool = True  # the primer comes before the new music


SECONDS, BARS = ("from_s", "to_s"), ("from_bar", "to_bar")  # a region: begin and end


def given(request: Request, names: tuple[str, ...]) -> dict[str, object]:
    """The fields that have a value."""
    return {name: value for name in names if (value := getattr(request, name)) is not None}


def check_pair(request: Request, pair: tuple[str, str]) -> None:
    """Raises ConfigError for one of two fields without the other."""
    if len(named := given(request, pair)) == 1:
        [(name, value)], (begin, end) = named.items(), pair
        raise ConfigError(name, got=value, allowed=f"{end if name == begin else begin}= too")


@dataclass(frozen=True, kw_only=True)
class Fill(NewMusic):
    """A region of a piece, or `length` of music between two. Raises ConfigError."""

    from_s: float | None = None  # of one piece: seconds
    to_s: float | None = None
    from_bar: int | None = None  # or bars; the first is 1, the last is included
    to_bar: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (guidance := self.sampling.strength) is not None:
            raise ConfigError("seed_guidance", got=guidance, why="a fill has no seed", hint="leave it out")
        if (tokens := self.length.tokens) is not None:
            raise ConfigError("Length.tokens", got=tokens, why="a gap lasts seconds or bars", hint="leave it out")

    def drawing(self, length: Length, window: int | None = None) -> Continue:
        """The request that draws a gap; `window` counts where it has none."""
        common = {each.name: getattr(self, each.name) for each in fields(NewMusic)}
        return Continue(**common | {"length": length, "window": self.window or window})

    def check_region(self) -> None:
        """Raises ConfigError unless the region is in seconds or in bars."""
        seconds, bars = given(self, SECONDS), given(self, BARS)
        if seconds and bars:
            name, value = next(iter(bars.items()))
            why = f"{next(iter(seconds))}= is given too"
            raise ConfigError(name, got=value, why=why, hint="give seconds or bars, and leave the others out")
        if not seconds and not bars:
            allowed = "it with to_s=, or from_bar= with to_bar=, the region to write"
            raise ConfigError("from_s", got=None, allowed=allowed)
        check_pair(self, SECONDS if seconds else BARS)


@dataclass(frozen=True, kw_only=True)
class Accompany(Request):
    """The other voices around those of a file, or the hands that a score lacks. Raises ConfigError."""

    sampling: Sampling = field(default_factory=lambda: Sampling(guard=False), kw_only=False)
    only: str | None = None  # the name or number of the part that is the melody; None: the highest
    voices: str = "S"  # the voices that the file has, of S, A, T and B
    rewrite: str | None = None  # voices of a file with all four, which are written again
    from_bar: int | None = None  # of the rewritten bars; the first is 1, the last is included
    to_bar: int | None = None
    transpose: int | str = AUTO  # semitones by which the model hears the melody higher; auto: where voices sing it

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling.guard:
            raise ConfigError("guard", got=True, why="it is for continuations", allowed="false")
        self.rules.check_free("what goes with a melody")
        for name in ("voices", "rewrite"):
            if (value := getattr(self, name)) is not None and value not in VOICE_SETS:
                raise ConfigError(name, got=value, allowed=f"one of {', '.join(VOICE_SETS)}")
        if self.rewrite is not None and self.voices != Accompany.voices:
            raise ConfigError(
                "voices", got=self.voices, why="rewrite= is for a file with all four", hint="leave it out"
            )
        if self.only is not None and (self.rewrite is not None or len(self.voices) > 1):
            why = "several voices are asked for"
            raise ConfigError("part", got=self.only, why=why, hint="leave it out, or voices= and rewrite=")
        check_pair(self, BARS)
        if self.rewrite is None and self.from_bar is not None:
            raise ConfigError("from_bar", got=self.from_bar, why="it is for bars to rewrite", allowed="rewrite= too")
        far = self.transpose
        if far != AUTO and (isinstance(far, str) or not FARTHEST[0] <= far <= FARTHEST[1]):
            allowed = f"{FARTHEST[0]} to {FARTHEST[1]} semitones, or auto"
            raise ConfigError("transpose", got=self.transpose, allowed=allowed)
