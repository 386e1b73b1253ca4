"""Checks each attention kernel on the device, output and gradients, against the definition in float64 on the CPU.

The tolerance comes from data: twice the error that plain PyTorch attention makes in the same dtype on the same device.
Plain attention on a GPU is itself compared with the CPU's. Sizes are odd on purpose: single steps, prefill behind a
cache, heads of other sizes than powers of two, tables shorter and longer than the music.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention import IMPLEMENTATIONS
from musictx.model.attention.fused import triton_attention
from musictx.model.attention.plain import causal_attention
from musictx.model.attention.relative import reference
from musictx.proof.facts import wait
from musictx.proof.machine import Check, CheckConfig, Outcome, Unable, check_dtype, near_exact, worst

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# (Tq, Tk, D, M)
SIZES = [
    *((1, 1, 8, 1), (2, 2, 59, 5), (7, 7, 128, 7), (1, 9, 59, 20), (5, 12, 16, 40), (1, 70, 32, 30), (33, 33, 64, 19)),
    *((20, 75, 32, 30), (113, 113, 59, 64), (129, 129, 128, 64), (129, 300, 64, 300), (257, 257, 32, 400)),
    *((300, 300, 8, 37), (300, 300, 64, 130)),
]
BATCH, HEADS, WIDER = 2, 2, 32  # WIDER: keys beyond their head, as relative_fourier makes them
OTHER_FORM = "model.position=relative attention=chunked"
TIMED = (2, 4, 64)  # B, H, D
NAMES = ("the output", "the gradient of q", "the gradient of k", "the gradient of v", "the gradient of rel")

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Size = tuple[int, int, int, int]


class Case(NamedTuple):
    """One size in one dtype: the inputs, and output and gradients in float64 and by plain attention."""

    tensors: list[Tensor]
    exact: list[Tensor]
    plain: list[Tensor]


def by_pytorch(q: Tensor, k: Tensor, v: Tensor, rel: Tensor) -> Tensor:
    """PyTorch's fused attention, which all forms but the table use. The table is zeros, and no kernel reads it."""
    return causal_attention(q, k, v, 0.0, 1 / math.sqrt(q.shape[-1])) + 0 * rel.sum()


def dtypes(device: str) -> list[str]:
    """The dtypes that models compute in: CPUs have no fast products of float16."""
    return list(DTYPES) if device == "cuda" else ["float32", "bfloat16"]


def checks(config: CheckConfig) -> Iterator[Check]:
    """All kernels but Triton's. On a CPU plain attention is skipped, since it would be compared with itself."""
    cases, on_cpu = cache(partial(case, config.device)), partial(case, "cpu", then=config.device)
    skew, chunked = IMPLEMENTATIONS["skew"], IMPLEMENTATIONS["chunked"]
    no_table = partial(cases, table=False)
    for dtype in dtypes(config.device):
        for name, attend, given, safe, proof in (
            ("reference", reference, on_cpu, "device=cpu trainer=cpu", ""),
            ("skew", skew, cases, "attention=chunked", "chunked"),
            ("chunked", chunked, cases, "attention=skew", "skew"),
            ("none, rope", by_pytorch, no_table, OTHER_FORM, "chunked"),
            ("relative_fourier", by_pytorch, partial(no_table, wider=WIDER), OTHER_FORM, "chunked"),
        ):
            if (name, config.device) == ("reference", "cpu"):
                continue
            proof = proof and f"attention {proof}, {dtype}"
            if dtype != "float32" and attend in (reference, by_pytorch):
                safe, proof = "trainer.precision=32-true weights=float32", f"attention {name}, float32"
            yield Check(f"attention {name}, {dtype}", safe, _held(config, [attend], dtype, given), proof)


def triton_checks(config: CheckConfig) -> Iterator[Check]:
    """The Triton kernels, with both ways to the table's gradient: added by atomics, and deterministic."""
    cases = cache(partial(case, config.device))
    attends = [partial(triton_attention, deterministic=d) for d in (False, True)]
    for dtype in dtypes(config.device):
        measure = _held(config, attends, dtype, cases)
        yield Check(f"attention triton, {dtype}", "attention=chunked", measure, f"attention chunked, {dtype}")


def _held(
    config: CheckConfig, attends: Sequence[Attend], dtype: str, cases: Callable[[Size, str], Case]
) -> Callable[[], Outcome]:
    """The worst of all sizes; with a ConfigError a kernel says that it cannot run here."""

    def measure() -> Outcome:
        check_dtype(config.device, dtype)
        sizes = [size for size in SIZES if size[1] <= config.longest]
        try:
            found = worst(o for attend in attends for size in sizes for o in compare(attend, cases(size, dtype), size))
            ms = 1000 * min(seconds(attend, config, DTYPES[dtype]) for attend in attends)
        except ConfigError as reason:
            raise Unable(str(reason)) from None
        return replace(found, note=f"{ms:,.1f} ms at T={config.timed_length}")

    return measure


def case(device: str, size: Size, dtype: str, wider: int = 0, table: bool = True, then: str | None = None) -> Case:
    """Plain attention runs on `device`, and the kernel compared with it on `then` (None: there too)."""
    tq, tk, d, m = size
    g = torch.Generator().manual_seed(tq * 1000 + tk)
    shapes = [(BATCH, HEADS, tq, d + wider), (BATCH, HEADS, tk, d + wider), (BATCH, HEADS, tk, d)]
    drawn = [torch.randn(s, generator=g, dtype=torch.float64) for s in (*shapes, (HEADS, m, d + wider))]
    if not table:
        drawn[3].zero_()
    rounded = [x.to(DTYPES[dtype]) for x in drawn]
    exact = results(reference, [x.double() for x in rounded])
    plain = results(reference, [x.to(device) for x in rounded])
    if not table:  # the kernel does not compute its gradient
        exact, plain = exact[:4], plain[:4]
    return Case([x.to(then or device) for x in rounded], exact, plain)


def results(attend: Attend, tensors: list[Tensor]) -> list[Tensor]:
    """The output and the gradients of q, k, v and rel."""
    leaves = [x.detach().requires_grad_() for x in tensors]
    out = attend(*leaves)
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), leaves)]


def compare(attend: Attend, given: Case, size: Size) -> list[Outcome]:
    """Compares a kernel with float64. A float32 sum of D products is rounded D times, by sqrt(D) roundings in all; in
    half precision only the last rounding counts. What cancels in a gradient is as large as an output: a query
    with a single key has a gradient of exactly zero, the difference of two numbers of that size."""
    tq, tk, d, m = size
    got = results(attend, given.tensors)
    roundings = math.sqrt(d) if got[0].dtype == torch.float32 else 1.0
    cancelled = max(1.0, float(given.exact[0].abs().max()))
    where = f"queries {tq}, keys {tk}, heads of {d}, table {m}"
    return [
        near_exact(f"{name} at {where}", g, e, p, roundings, cancelled)
        for name, g, e, p in zip(NAMES, got, given.exact, given.plain, strict=False)
    ]


def seconds(attend: Attend, config: CheckConfig, dtype: torch.dtype) -> float:
    """Seconds of a pass forward and backward; the median of three, after one to warm up."""
    b, h, d = TIMED
    new = torch.zeros((), device=config.device, dtype=dtype)
    q, k, v = (torch.randn_like(new.expand(b, h, config.timed_length, d)) for _ in range(3))
    rel, taken = torch.randn_like(new.expand(h, config.timed_length, d)), []
    for _ in range(4):
        start = perf_counter()
        results(attend, [q, k, v, rel])
        wait(config.device)
        taken.append(perf_counter() - start)
    return median(taken[1:])
