"""How much time the relative term takes, forward and backward, beside attention without it.

All kernels take turns in one run over the same inputs; each figure is the median of the repeats with its range. Peak
memory is what a pass needs beyond its inputs: on a GPU as the allocator counts it, on a CPU the growth of a separate
process. The last table is a training step of whole models.
"""

import json
import math
import multiprocessing
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.generate.open_bundle import check_device
from musictx.model.attention import IMPLEMENTATIONS, relative_attention
from musictx.model.attention.plain import causal_attention
from musictx.model.position.fourier import Fourier
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.objectives.next_token import NextToken
from musictx.setting import setting
from musictx.tokenizers import build_tokenizer


@dataclass
class BenchAttentionConfig:
    """musictx benchmarks/attention.py: time and memory of the attention kernels, and of whole models."""

    device: str = setting("cpu", "cpu or cuda")
    dtype: str = setting("float32", "type of queries, keys and values")
    lengths: list[int] = setting([512, 1024, 2048], "lengths of the input, in tokens")
    batch_tokens: int = setting(4096, "batch size times length")
    n_heads: int = setting(8, "heads of attention")
    d_head: int = setting(64, "width of a head")
    max_distance: int | None = setting(None, "longest distance in the relative table; null: as long as the input")
    n_frequencies: int = setting(16, "position=relative_fourier: frequencies in each head")
    model_length: int | None = setting(2048, "window length of a whole model's training step; null: skip it")
    repeats: int = setting(5, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures, the plot goes beside it; null: none")


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FLOOR = "none (sdpa)"


@dataclass(frozen=True)
class KernelTimes:
    """One kernel at one length; why it failed, if it did."""

    kernel: str
    length: int
    batch: int
    seconds: list[float] = field(default_factory=list)
    peak_mb: float | None = None
    failed: str = ""


def kernels(config: BenchAttentionConfig) -> dict[str, Callable[..., Tensor]]:
    """Each kernel as a function of q, k, v, rel and the Fourier form. FlexAttention gathers the relative logits from
    q · e, a (T, M) tensor, and needs a compiler; it is measured only on a GPU."""

    def fourier(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, form: Fourier) -> Tensor:
        at = torch.arange(q.shape[2], dtype=torch.float64, device=q.device)[None]
        phase = form.phase(at, q.dtype)
        out: Tensor = form(q, form.keys(k, phase), v, phase, 0.0)
        return out

    def flex(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, form: Fourier) -> Tensor:
        from torch.nn.attention.flex_attention import create_block_mask

        by_distance = q @ rel.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, H, T, M)
        last, t = rel.shape[1] - 1, q.shape[2]

        def score(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + by_distance[b, h, i, (i - j).clamp(0, last)]

        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, t, t, device=q.device.type)
        out: Tensor = _compiled_flex()(q, k, v, score_mod=score, block_mask=mask)
        return out

    def plain(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, form: Fourier) -> Tensor:
        return causal_attention(q, k, v, 0.0, 1 / math.sqrt(q.shape[-1]))

    def relative(impl: str) -> Callable[..., Tensor]:
        return lambda q, k, v, rel, form: relative_attention(q, k, v, rel, impl)

    on_gpu = config.device != "cpu"
    mine = [name for name in IMPLEMENTATIONS if name != "reference" and (on_gpu or name != "triton")]
    found: dict[str, Callable[..., Tensor]] = {FLOOR: plain, "fourier": fourier, **{n: relative(n) for n in mine}}
    return {**found, "flex": flex} if on_gpu else found


def _compiled_flex() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


def inputs(config: BenchAttentionConfig, batch: int, length: int) -> tuple[list[Tensor], Fourier, Tensor]:
    torch.manual_seed(0)
    dtype, h, d = DTYPES[config.dtype], config.n_heads, config.d_head
    new = torch.zeros((), device=config.device, dtype=dtype)
    shapes = [(batch, h, length, d)] * 3 + [(h, min(config.max_distance or length, length), d)]
    tensors = [torch.randn_like(new.expand(shape)).requires_grad_() for shape in shapes]
    form = Fourier(h, d, config.n_frequencies, (2.0, 2.0 * length)).to(config.device)
    torch.nn.init.normal_(form.basis)
    return tensors, form, torch.randn_like(new.expand(shapes[0]))


def once(kernel: Callable[..., Tensor], tensors: list[Tensor], form: Fourier, d_out: Tensor) -> float:
    """Seconds of one forward and backward pass."""
    for x in (*tensors, *form.parameters()):
        x.grad = None
    _wait(d_out)
    start = perf_counter()
    kernel(*tensors, form).backward(d_out)
    _wait(d_out)
    return perf_counter() - start


def _wait(x: Tensor) -> None:
    if x.device.type == "cuda":
        torch.cuda.synchronize()


def peak_mb(config: BenchAttentionConfig, name: str, batch: int, length: int) -> float:
    """Memory of one pass in MB, beyond the tensors that exist before it."""
    if config.device != "cpu":
        tensors, form, d_out = inputs(config, batch, length)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        once(kernels(config)[name], tensors, form, d_out)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_grown_mb, (config, name, batch, length))


def _grown_mb(config: BenchAttentionConfig, name: str, batch: int, length: int) -> float:
    kernel = kernels(config)[name]
    once(kernel, *inputs(config, 1, 16))  # the libraries' own memory comes first
    tensors, form, d_out = inputs(config, batch, length)
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _high_water_mb()
    once(kernel, tensors, form, d_out)
    return _high_water_mb() - before


def _high_water_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(config: BenchAttentionConfig, length: int) -> list[KernelTimes]:
    """Every kernel at one length, in turn; one that fails says why and gets no turn."""
    batch = max(config.batch_tokens // length, 1)
    tensors, form, d_out = inputs(config, batch, length)
    rows = {name: KernelTimes(name, length, batch) for name in kernels(config)}
    able: dict[str, Callable[..., Tensor]] = {}
    for name, kernel in kernels(config).items():
        try:
            once(kernel, tensors, form, d_out)
            peak = round(peak_mb(config, name, batch, length), 1)
            rows[name], able[name] = KernelTimes(name, length, batch, [], peak), kernel
        except (RuntimeError, ConfigError) as error:  # out of memory is a RuntimeError
            rows[name] = KernelTimes(name, length, batch, failed=" ".join(str(error).split())[:120])
    for _ in range(config.repeats):
        for name, kernel in able.items():
            rows[name].seconds.append(once(kernel, tensors, form, d_out))
    return list(rows.values())


def measure_model(config: BenchAttentionConfig, length: int) -> list[KernelTimes]:
    """A training step of the paper's size, 6 layers of width 512, with each form of position, in turn."""
    batch = max(config.batch_tokens // length, 1) if config.device != "cpu" else 1
    objective, rng = NextToken(build_tokenizer("performance")), np.random.default_rng(0)
    vocab = objective.tokenizer.vocab
    ids = torch.randint(vocab.n_events, (batch, length + 1), device=config.device)
    models, rows = {}, {}
    for position in ("none", "relative", "relative_fourier", "rope"):
        sizes = {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048, "max_distance": length}
        kind = TransformerConfig(vocab.size, dropout=0.0, attention="auto", position=position, **sizes)  # type: ignore[arg-type]
        models[position] = Transformer(kind).to(config.device)
        rows[position] = KernelTimes(position, length, batch)
    for turn in range(config.repeats + 1):
        for position, model in models.items():
            _wait(ids)
            start = perf_counter()
            with torch.autocast(config.device, torch.bfloat16, enabled=config.dtype == "bfloat16"):
                total, count = objective.loss(model, objective.example(ids, rng))
            (total / count).backward()
            _wait(ids)
            if turn:  # the first warms up
                rows[position].seconds.append(perf_counter() - start)
            model.zero_grad()
    return list(rows.values())


def report(rows: list[KernelTimes], floor: str) -> str:
    """One line a kernel and length: milliseconds, ratio to the floor, memory."""
    lines = [f"{'kernel':<18}{'T':>7}{'batch':>6}{'ms':>10}{'x floor':>9}{'peak MB':>10}   fastest … slowest ms"]
    for row in rows:
        if row.failed:
            lines.append(f"{row.kernel:<18}{row.length:>7}{row.batch:>6}   failed: {row.failed}")
            continue
        base = next((r for r in rows if r.kernel == floor and r.length == row.length and r.seconds), None)
        ms = median(row.seconds) * 1000
        ratio = f"{ms / (median(base.seconds) * 1000):.2f}" if base else "-"
        peak = f"{row.peak_mb:,.1f}" if row.peak_mb is not None else "-"
        spread = f"{min(row.seconds) * 1000:.1f} … {max(row.seconds) * 1000:.1f}"
        lines.append(f"{row.kernel:<18}{row.length:>7}{row.batch:>6}{ms:>10.1f}{ratio:>9}{peak:>10}   {spread}")
    return "\n".join(lines)


def plot(rows: list[KernelTimes], title: str, path: Path) -> None:
    """Time against length, both on log scales."""
    figure = Figure(figsize=(7, 5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for name in dict.fromkeys(row.kernel for row in rows):
        done = [row for row in rows if row.kernel == name and row.seconds]
        axes.plot([r.length for r in done], [median(r.seconds) * 1000 for r in done], marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="ms, forward and backward", title=title)
    axes.legend()
    with replacing(path) as partial:
        figure.savefig(partial, format="png")


def bench_attention(config: BenchAttentionConfig) -> None:
    check_device(config.device)
    if config.dtype not in DTYPES:
        raise ConfigError("dtype", got=config.dtype, allowed=f"one of {', '.join(DTYPES)}")
    for name in ("repeats", "batch_tokens", "n_heads", "d_head", "n_frequencies"):
        if getattr(config, name) < 1:
            raise ConfigError(name, got=getattr(config, name), allowed="1 or more")
    if config.threads:
        torch.set_num_threads(config.threads)
    where = torch.cuda.get_device_name() if config.device != "cpu" else f"CPU, {torch.get_num_threads()} threads"
    title = f"{where}, {config.dtype}, torch {torch.__version__}"
    print(title)
    rows = [row for length in config.lengths for row in measure(config, length)]
    print(report(rows, FLOOR))
    models = measure_model(config, config.model_length) if config.model_length else []
    if models:
        print(f"a training step of 6 layers, width 512\n{report(models, 'none')}")
    if config.out:
        out = Path(config.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        facts: dict[str, Any] = {"where": title, "python": platform.python_version(), "config": asdict(config)}
        facts |= {"kernels": [asdict(row) for row in rows], "models": [asdict(row) for row in models]}
        with replacing(out) as partial:
            partial.write_text(json.dumps(facts, indent=1), encoding="utf-8")
        plot(rows, title, out.with_suffix(".png"))


COMMAND = Command("bench_attention", bench_attention, BenchAttentionConfig)
