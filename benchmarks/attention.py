"""How much time the relative term takes, forward and backward, beside attention without it.

All kernels take turns in one run over the same inputs; each figure is the median of the repeats with its range.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from facts import Contestant, Turn, begin, compete, report, timed
from torch import Tensor

from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import write_json
from musictx.model.attention import IMPLEMENTATIONS, relative_attention
from musictx.model.attention.plain import causal_attention
from musictx.model.position.fourier import Fourier
from musictx.setting import setting
from musictx.terminal import say


@dataclass
class BenchAttentionConfig:
    """musictx benchmarks/attention.py: the time of the attention kernels."""

    device: str = setting("cpu", "cpu or cuda")
    dtype: str = setting("float32", "type of queries, keys and values")
    lengths: list[int] = setting([512, 1024, 2048], "lengths of the input, in tokens")
    batch_tokens: int = setting(4096, "batch size times length")
    n_heads: int = setting(8, "heads of attention")
    d_head: int = setting(64, "width of a head")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none", path=True)


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FLOOR = "none (sdpa)"
FREQUENCIES = 16  # of the Fourier form, in each head


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


def measure(config: BenchAttentionConfig, length: int) -> list[Contestant]:
    """Every kernel at one length, in turn; one that fails says why and gets no turn."""
    batch = max(config.batch_tokens // length, 1)
    tensors, form, d_out = inputs(config, batch, length)

    def once(kernel: Callable[..., Tensor]) -> float:
        for x in (*tensors, *form.parameters()):
            x.grad = None
        return timed(lambda: kernel(*tensors, form).backward(d_out), config.device)

    def prepared(kernel: Callable[..., Tensor]) -> Turn:
        once(kernel)  # the first warms up
        return partial(once, kernel)

    size = f"{batch} of {length} tokens"
    names = kernels(config.device)
    rows = {Contestant(f"{name}, {size}", batch * length, f"{FLOOR}, {size}"): names[name] for name in names}
    return compete({row: partial(prepared, kernel) for row, kernel in rows.items()}, config.repeats)


def bench_attention(config: BenchAttentionConfig) -> None:
    where = begin(config, ("lengths", "repeats", "batch_tokens", "n_heads", "d_head"))
    if config.dtype not in DTYPES:
        raise ConfigError("dtype", got=config.dtype, allowed=f"one of {', '.join(DTYPES)}")
    say(f"{where}, {config.dtype}")
    rows = [row for length in config.lengths for row in measure(config, length)]
    say(report(rows))
    if config.out:
        facts = {"where": where, "config": asdict(config), "rows": [row._asdict() for row in rows]}
        write_json(Path(config.out), facts)


COMMAND = Command("bench_attention", bench_attention, BenchAttentionConfig)
