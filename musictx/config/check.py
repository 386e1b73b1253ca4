"""What `musictx check` can be told."""

from dataclasses import dataclass, field


@dataclass
class CheckConfig:
    """musictx check: kernels, training and sampling proved on this machine's device, as a report to paste."""

    device: str = "cpu"
    parts: list[str] = field(default_factory=lambda: ["kernels", "training", "steps", "generation", "triton"])
    longest: int = 300  # keys of the largest attention that is checked
    timed_length: int = 1024  # tokens of the attention that is timed
    steps: int = 50  # of each training
    store: str | None = None  # of chorales, to train on; null: the one chorale inside musictx, in all keys
    overrides: list[str] = field(default_factory=list)  # further settings of `musictx train`, for each training
    tokens: int = 192  # drawn in each variation
    variations: int = 4
    threads: int | None = None
    out: str | None = None  # a text file for the report
