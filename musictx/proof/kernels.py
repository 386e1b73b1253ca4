"""Each attention kernel of a device beside its definition in float64 on the CPU: output and gradients, at odd sizes."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention import IMPLEMENTATIONS
from musictx.model.attention.fused import triton_attention
from musictx.model.attention.plain import causal_attention
from musictx.model.attention.relative import reference

# (Tq, Tk, D, M): single steps, a prefill behind a cache, tables shorter and longer than the music
SIZES = [(1, 1, 8, 1), (1, 70, 59, 30), (20, 75, 32, 30), (33, 33, 128, 19), (129, 300, 64, 300), (257, 257, 59, 64)]
WIDER = {"rope, none": 0, "relative_fourier": 32}  # forms without a table, and how much wider keys are than values
NAMES = ("the output", "the gradient of q", "the gradient of k", "the gradient of v", "the gradient of rel")
Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Unable(Exception):
    """The device cannot do it, for the reason of the text; that is no failure."""


class Outcome(NamedTuple):
    error: float
    limit: float
    note: str = ""


Check = tuple[str, Callable[[], Outcome]]  # what is checked, and how; raises Unable


def near_exact(note: str, got: Tensor, exact: Tensor, plain: Tensor) -> Outcome:
    """Allows twice the error of plain PyTorch, a rounding of the result, and those of a float32 sum of 128 products."""
    if (got.shape, got.dtype) != (plain.shape, plain.dtype):
        raise ValueError(f"it is {got.dtype} {tuple(got.shape)}, not {plain.dtype} {tuple(plain.shape)}")
    error, allowed = (float((x.cpu().double() - exact).abs().max()) for x in (got, plain))
    rounding = torch.finfo(got.dtype).eps + 11 * torch.finfo(torch.float32).eps
    # numbers as large as 1 may cancel: a query with a single key has gradients of exactly zero
    return Outcome(error, 2 * allowed + rounding * max(1.0, float(exact.abs().max())), note)


def check_able(device: str, numbers: str) -> None:
    """Raises Unable if the device cannot compute with `numbers`: a dtype, a kind of weights or a precision."""
    if (device, numbers) in {("cuda", "int8"), ("cpu", "16-mixed")}:
        raise Unable(f"{numbers} is not for {device}")
    if device == "cuda" and numbers.startswith("bf") and torch.cuda.get_device_capability() < (8, 0):
        raise Unable("bfloat16 needs a GPU of capability 8.0")  # others imitate it


def kernels(device: str) -> Iterator[Check]:
    """Triton's come last, since they are the most likely to hang a GPU; CPUs have no fast products of float16."""
    ways: dict[str, list[Attend]] = {name: [attend] for name, attend in IMPLEMENTATIONS.items() if name != "triton"}
    ways |= {form: [lambda q, k, v, _: causal_attention(q, k, v, 0.0, 1 / math.sqrt(q.shape[-1]))] for form in WIDER}
    ways["triton"] = [partial(triton_attention, deterministic=each) for each in (False, True)]
    for name, dtype in product(ways, ("float32", "bfloat16", "float16")[: 3 if device == "cuda" else 2]):
        if (name, device) != ("reference", "cpu"):  # it would be compared with itself
            yield f"attention {name}, {dtype}", partial(worst_outcome, device, name, ways[name], dtype)


def worst_outcome(device: str, name: str, attends: Sequence[Attend], dtype: str) -> Outcome:
    """The outcome nearest to its limit or beyond it. Raises Unable where the kernel refuses to run."""
    check_able(device, dtype)
    wider = WIDER.get(name)
    outcomes: list[Outcome] = []
    for attend, (tq, tk, d, m) in product(attends, SIZES):
        tensors = [x.to(getattr(torch, dtype)) for x in random_inputs(tq, tk, d, m, wider=wider or 0)]
        tensors[3] *= wider is None  # without a table it is zero, and its gradient means nothing
        try:
            got = results(attend, leaves(tensors, device))
        except ConfigError as reason:
            raise Unable(reason.why) from None
        place = f" at queries {tq}, keys {tk}, heads of {d}, table {m}"
        compared = against_definition(got, tensors, "cpu" if name == "reference" else device)
        outcomes += [each._replace(note=each.note + place) for each in compared[: 5 if wider is None else 4]]
    return max(outcomes, key=lambda o: o.error / o.limit if o.error <= o.limit else math.inf)  # NaN is beyond it


def random_inputs(
    tq: int, tk: int, d: int, m: int, batch: int = 2, n_heads: int = 2, wider: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q (B, H, Tq, D + wider), k (B, H, Tk, D + wider), v (B, H, Tk, D) and rel (H, M, D + wider) as float64 leaves."""
    g, e = torch.Generator().manual_seed(tq * 1000 + tk), d + wider
    shapes = (batch, n_heads, tq, e), (batch, n_heads, tk, e), (batch, n_heads, tk, d), (n_heads, m, e)
    q, k, v, rel = (torch.randn(shape, generator=g, dtype=torch.float64).requires_grad_() for shape in shapes)
    return q, k, v, rel


def leaves(tensors: Sequence[Tensor], device: str, dtype: torch.dtype | None = None) -> list[Tensor]:
    """Copies that take gradients of their own."""
    return [x.detach().to(device, dtype or x.dtype, copy=True).requires_grad_() for x in tensors]


def results(attend: Callable[..., Tensor], inputs: Sequence[Tensor], **options: Any) -> list[Tensor]:
    """The output, and the gradient of each of the inputs."""
    out = attend(*inputs, **options)
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out)
    return [out.detach(), *torch.autograd.grad(out, inputs, weights, allow_unused=True, materialize_grads=True)]


def against_definition(got: Sequence[Tensor], inputs: Sequence[Tensor], device: str) -> list[Outcome]:
    """`results` of attention beside those of the definition, in float64 and in the inputs' dtype on the device."""
    exact = results(reference, leaves(inputs, "cpu", torch.float64))
    plain = results(reference, leaves(inputs, device))
    return list(map(near_exact, NAMES, got, exact, plain))
