"""How much time the relative term takes, forward and backward, beside attention without it.

All kernels take turns in one run over the same inputs; each figure is the median of the repeats with its range. On a
GPU, peak memory is what a pass needs beyond its inputs, as the allocator counts it.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

import torch
from facts import Turn, begin, take_turns, timed
from torch import Tensor

from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import write_json
from musictx.model.attention import IMPLEMENTATIONS, relative_attention
from musictx.model.attention.plain import causal_attention
from musictx.model.position.fourier import Fourier
from musictx.setting import setting


@dataclass
class BenchAttentionConfig:
    """musictx benchmarks/attention.py: time and memory of the attention kernels."""

    device: str = setting("cpu", "cpu or cuda")
    dtype: str = setting("float32", "type of queries, keys and values")
    lengths: list[int] = setting([512, 1024, 2048], "lengths of the input, in tokens")
    batch_tokens: int = setting(4096, "batch size times length")
    n_heads: int = setting(8, "heads of attention")
    d_head: int = setting(64, "width of a head")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FLOOR = "none (sdpa)"
FREQUENCIES = 16  # of the Fourier form, in each head


@dataclass
class KernelTimes:
    """One kernel at one length; why it failed, if it did."""

    kernel: str
    length: int
    batch: int
    seconds: list[float] = field(default_factory=list)
    peak_mb: float | None = None
    failed: str = ""


def kernels(device: str) -> dict[str, Callable[..., Tensor]]:
    """Each kernel as a function of q, k, v, rel and the Fourier form."""

    def fourier(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, form: Fourier) -> Tensor:
        at = torch.arange(q.shape[2], dtype=torch.float64, device=q.device)[None]
        phase = form.phase(at, q.dtype)
        out: Tensor = form(q, form.keys(k, phase), v, phase, 0.0)
        return out

    def plain(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, form: Fourier) -> Tensor:
        return causal_attention(q, k, v, 0.0, 1 / math.sqrt(q.shape[-1]))

    def relative(impl: str) -> Callable[..., Tensor]:
        return lambda q, k, v, rel, form: relative_attention(q, k, v, rel, impl)

    mine = [name for name in IMPLEMENTATIONS if name != "reference" and (device != "cpu" or name != "triton")]
    return {FLOOR: plain, "fourier": fourier, **{name: relative(name) for name in mine}}


def inputs(config: BenchAttentionConfig, batch: int, length: int) -> tuple[list[Tensor], Fourier, Tensor]:
    """Queries, keys, values and the table; the Fourier form; the gradient of the output."""
    torch.manual_seed(0)
    dtype, h, d = DTYPES[config.dtype], config.n_heads, config.d_head
    new = torch.zeros((), device=config.device, dtype=dtype)
    shapes = [(batch, h, length, d)] * 3 + [(h, length, d)]
    tensors = [torch.randn_like(new.expand(shape)).requires_grad_() for shape in shapes]
    form = Fourier(h, d, FREQUENCIES, (2.0, 2.0 * length)).to(config.device)
    torch.nn.init.normal_(form.basis)
    return tensors, form, torch.randn_like(new.expand(shapes[0]))


def forget(tensors: list[Tensor], form: Fourier) -> None:
    for x in (*tensors, *form.parameters()):
        x.grad = None


def once(kernel: Callable[..., Tensor], tensors: list[Tensor], form: Fourier, d_out: Tensor) -> float:
    """Seconds of one forward and backward pass."""
    forget(tensors, form)
    return timed(lambda: kernel(*tensors, form).backward(d_out), d_out.device.type)


def measure(config: BenchAttentionConfig, length: int) -> list[KernelTimes]:
    """Every kernel at one length, in turn; one that fails says why and gets no turn."""
    batch = max(config.batch_tokens // length, 1)
    given = inputs(config, batch, length)
    rows = {name: KernelTimes(name, length, batch) for name in kernels(config.device)}

    def prepared(name: str, kernel: Callable[..., Tensor]) -> Turn:
        once(kernel, *given)  # the first warms up
        if config.device != "cpu":
            forget(*given[:2])
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            once(kernel, *given)
            rows[name].peak_mb = round((torch.cuda.max_memory_allocated() - before) / 2**20, 1)
        return partial(once, kernel, *given)

    turns = {name: partial(prepared, name, kernel) for name, kernel in kernels(config.device).items()}
    seconds, failed = take_turns(turns, config.repeats)
    return [replace(row, seconds=seconds.get(name, []), failed=failed.get(name, "")) for name, row in rows.items()]


def report(rows: list[KernelTimes]) -> str:
    """One line a kernel and length: milliseconds, ratio to attention without the relative term, memory."""
    lines = [f"{'kernel':<18}{'T':>7}{'batch':>6}{'ms':>10}{'x floor':>9}{'peak MB':>10}   fastest … slowest ms"]
    floors = {row.length: median(row.seconds) for row in rows if row.kernel == FLOOR and row.seconds}
    for row in rows:
        begun = f"{row.kernel:<18}{row.length:>7}{row.batch:>6}"
        if row.failed:
            lines.append(f"{begun}   failed: {row.failed}")
            continue
        middle = median(row.seconds)
        ratio = f"{middle / floors[row.length]:.2f}" if row.length in floors else "-"
        peak = f"{row.peak_mb:,.1f}" if row.peak_mb is not None else "-"
        spread = f"{min(row.seconds) * 1000:.1f} … {max(row.seconds) * 1000:.1f}"
        lines.append(f"{begun}{middle * 1000:>10.1f}{ratio:>9}{peak:>10}   {spread}")
    return "\n".join(lines)


def bench_attention(config: BenchAttentionConfig) -> None:
    where = begin(config, ("lengths", "repeats", "batch_tokens", "n_heads", "d_head"))
    if config.dtype not in DTYPES:
        raise ConfigError("dtype", got=config.dtype, allowed=f"one of {', '.join(DTYPES)}")
    print(f"{where}, {config.dtype}")
    rows = [row for length in config.lengths for row in measure(config, length)]
    print(report(rows))
    if config.out:
        facts = {"where": where, "config": asdict(config), "kernels": [asdict(row) for row in rows]}
        write_json(Path(config.out), facts)


COMMAND = Command("bench_attention", bench_attention, BenchAttentionConfig)
