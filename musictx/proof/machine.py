"""A check, its outcome and its line in the report; and the machine that the figures come from."""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor

from musictx.setting import setting
from musictx.training.run_folder import git_commit


@dataclass
class CheckConfig:
    """musictx check: check kernels, training and sampling on this machine's device, and print a report to paste."""

    device: str = setting("cpu", "cpu or cuda")
    parts: list[str] = setting(["kernels", "training", "steps", "generation", "triton"], "what to check")
    longest: int = setting(300, "keys in the largest attention check")
    timed_length: int = setting(1024, "tokens in the timed attention")
    steps: int = setting(50, "optimizer steps of each training")
    store: str | None = setting(
        None, "a store of chorales to train on; null: the one chorale inside musictx, in all keys"
    )
    overrides: list[str] = setting([], "further settings of `musictx train`, for each training")
    tokens: int = setting(192, "new tokens in each variation")
    variations: int = setting(4, "continuations to draw")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a text file for the report; null: none")


PACKAGES = ("musictx", "torch", "triton", "lightning", "numpy")
SWITCHES = ("TRITON_INTERPRET", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF")
BF16_FROM = (8, 0)  # compute capability


def facts(device: str) -> list[str]:
    """Lines on versions, machine and device."""
    lines = [
        f"versions  {', '.join(f'{name} {_version(name)}' for name in PACKAGES)}, Python {platform.python_version()}",
        f"commit    {git_commit() or 'none: installed from a package'}",
        f"machine   {platform.platform()}, {_processor()}, {torch.backends.cpu.get_cpu_capability()}, "
        f"{torch.get_num_threads()} of {os.cpu_count()} CPUs",
    ]
    if device == "cuda":
        card, cudnn = torch.cuda.get_device_properties(0), torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
        lines.append(
            f"device    {card.name}, capability {card.major}.{card.minor}, {card.total_memory / 2**30:.1f} GiB, "
            f"CUDA {torch.version.cuda}, cuDNN {cudnn}, "
            f"float32 products {torch.get_float32_matmul_precision()}"
        )
    else:
        lines.append(f"device    {device}")
    if told := [f"{name}={os.environ[name]}" for name in SWITCHES if name in os.environ]:
        lines.append(f"switches  {', '.join(told)}")
    return lines


def check_dtype(device: str, name: str) -> None:
    """`name` is a dtype or a precision of `musictx train`. Raises Unable for bfloat16 on a GPU that imitates it."""
    if device == "cuda" and name.startswith(("bf16", "bfloat16")):
        found = torch.cuda.get_device_capability()
        if found < BF16_FROM:
            raise Unable(f"bfloat16 needs capability 8.0, this GPU has {found[0]}.{found[1]}: use float16 or float32")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's name; Linux has it only in a file."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


OK, FAILED, NOT_HERE = "ok", "FAILED", "not here"
LONGEST = 300  # letters of an exception: some fill a page
HEAD = f"{'check':<56}{'error':>10}{'limit':>10}{'seconds':>9}"


class Unable(Exception):
    """This device cannot do it, which does not count as a failure; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """It holds if error <= limit, so never for NaN."""

    error: float
    limit: float
    where: str = ""  # the place of the worst error
    note: str = ""  # anything else, such as how fast it was

    @property
    def holds(self) -> bool:
        return self.error <= self.limit

    @property
    def share(self) -> float:
        """The error as a share of its limit; above 1, or NaN, if it does not hold."""
        return self.error / self.limit if self.limit else float("inf") if self.error else 0.0


@dataclass(frozen=True)
class Check:
    """Something to prove, and the settings that avoid it, as a person types them ("": there are none)."""

    what: str
    safe: str
    measure: Callable[[], Outcome]  # raises Unable
    proven_by: str = ""  # the check of those settings, if there is one


@dataclass(frozen=True)
class Row:
    check: Check
    state: str
    seconds: float
    outcome: Outcome | None = None  # None: an exception came first, or it cannot run here
    text: str = ""

    def __str__(self) -> str:
        error, limit = (f"{x:.3g}" for x in (self.outcome.error, self.outcome.limit)) if self.outcome else ("-", "-")
        line = f"{self.check.what:<56}{error:>10}{limit:>10}{self.seconds:>9.1f}  {self.state}"
        return f"{line}: {self.text}" if self.text else line


def run(check: Check) -> Row:
    """Runs a check and makes a row of any outcome or error; only Ctrl-C gets through."""
    start = perf_counter()
    try:
        outcome = check.measure()
    except Unable as reason:
        return Row(check, NOT_HERE, perf_counter() - start, text=str(reason))
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
        return Row(check, FAILED, perf_counter() - start, text=text)
    seconds = perf_counter() - start
    if outcome.holds:
        return Row(check, OK, seconds, outcome, outcome.note)
    return Row(check, FAILED, seconds, outcome, "; ".join(filter(None, (outcome.where, outcome.note))))


def advice(rows: Sequence[Row]) -> list[str]:
    """What to use instead of each check that failed, a line for each; never settings that failed themselves."""
    failed = {row.check.what: row.check for row in rows if row.state == FAILED}
    lines = []
    for what, check in failed.items():
        safe = check.safe if check.proven_by not in failed else ""
        lines.append(f"  {what}: " + (f"use {safe}" if safe else "no setting is known to be safe"))
    return lines


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome nearest to its limit or farthest beyond it; NaN comes before all others."""
    return max(outcomes, key=lambda o: (o.share != o.share, o.share))


def near_exact(
    name: str, got: Tensor, exact: Tensor, plain: Tensor, roundings: float = 1.0, cancelled: float = 1.0
) -> Outcome:
    """Allows twice the error of plain PyTorch in the same dtype, plus a rounding: of the result, or of numbers as large
    as `cancelled` that cancelled in it. `exact` is float64; the tensors may be on different devices. Raises ValueError
    for a shape or dtype other than the plain one's."""
    if (got.shape, got.dtype) != (plain.shape, plain.dtype):
        raise ValueError(f"{name} is {got.dtype} {tuple(got.shape)}, not {plain.dtype} {tuple(plain.shape)}")
    rounding = roundings * torch.finfo(got.dtype).eps * max(cancelled, float(exact.abs().max()))
    error, allowed = (float((x.detach().cpu().double() - exact).abs().max()) for x in (got, plain))
    return Outcome(error, 2 * allowed + rounding, name)
