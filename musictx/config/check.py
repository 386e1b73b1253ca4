"""What `musictx check` can be told."""

from dataclasses import dataclass

from musictx.setting import setting


@dataclass
class CheckConfig:
    """musictx check: kernels, training and sampling proved on this machine's device, as a report to paste."""

    device: str = setting("cpu", "cpu or cuda")
    parts: list[str] = setting(["kernels", "training", "steps", "generation", "triton"], "what is proved")
    longest: int = setting(300, "keys of the largest attention that is checked")
    timed_length: int = setting(1024, "tokens of the attention that is timed")
    steps: int = setting(50, "of each training")
    store: str | None = setting(None, "of chorales, to train on; null: the one chorale inside musictx, in all keys")
    overrides: list[str] = setting([], "further settings of `musictx train`, for each training")
    tokens: int = setting(192, "drawn in each variation")
    variations: int = setting(4, "continuations that are drawn")
    threads: int | None = setting(None, "of the processor; null: all cores")
    out: str | None = setting(None, "a text file for the report; null: none")
