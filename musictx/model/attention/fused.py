"""Relative attention as fused kernels on a GPU: no (T, T) matrix in memory, forward or backward.

Importing this needs no Triton; `triton_kernels` is imported at the first use.
"""

import importlib.util
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention.chunked import ANY_ORDER, OUT_OF_ORDER
from musictx.model.attention.relative import Age, Masked
from musictx.model.attention.triton_tuning import LARGEST_D, OLDEST, Card, Tuning, launches

HAS_TRITON = importlib.util.find_spec("triton") is not None
SPLITS = 8  # parts of the batch, for the table's gradient without atomics: more parts run in parallel and take memory


def triton_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rel: Tensor,
    dropout_p: float = 0.0,
    masked: Masked = None,
    age: Age = None,
    *,
    deterministic: bool | None = None,
    tuning: Tuning | None = None,
) -> Tensor:
    """Memory O(T): keeps the output and one number a query. Shapes as in `relative_attention`, one dtype for all.

    With `deterministic` (None: as torch.use_deterministic_algorithms says) the gradient of `rel` is the same in every
    bit; without, atomic additions make its last bits vary. `tuning=None` takes the card's own. Raises ConfigError where
    it cannot run.
    """
    if refusal := _refusal(q, dropout_p, masked, age):
        raise _cannot(*refusal)
    d = q.shape[-1]
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    padded = max(16, 1 << (d - 1).bit_length())
    if padded > d:  # zeros add nothing to a product, and rows of 2ⁿ numbers load 16 bytes at a time
        q, k, v, rel = (F.pad(t, (0, padded - d)) for t in (q, k, v, rel))
    out, _ = attend(q, k, v, rel, 1 / math.sqrt(d), deterministic, list(chain.from_iterable(tuning or ())))
    attended: Tensor = out[..., :d]
    return attended


def suits(q: Tensor, dropout_p: float, masked: Masked, age: Age) -> bool:
    """Whether `impl=auto` means these kernels: in half precision on a CUDA GPU that can run them. On an H100 they are
    3.6 to 6 times as fast as `chunked` in bfloat16 (docs/results.md); float16 and float32 are proven and not timed."""
    if not q.is_cuda or q.dtype == torch.float32 or _refusal(q, dropout_p, masked, age):
        return False
    card = Card.of(q)
    return card is not None and card.capability >= OLDEST


def _cannot(why: str, instead: str) -> ConfigError:
    return ConfigError("impl", got="triton", why=why, allowed=instead)


def _refusal(q: Tensor, dropout_p: float, masked: Masked, age: Age) -> tuple[str, str] | None:
    """The reason why these kernels cannot run, and the alternative; None if they can."""
    if age is not None:
        return OUT_OF_ORDER, ANY_ORDER
    if masked is not None:
        why = "it masks no keys, which prompts of different lengths in one batch need"
        return why, "auto, skew, chunked or reference"
    if dropout_p > 0:
        return "it has no dropout on the attention weights", "chunked, or attention_dropout=0"
    amd = torch.version.hip is not None  # PyTorch calls AMD's GPUs cuda too
    if not HAS_TRITON or amd or not (q.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"):
        here = "an AMD GPU" if amd else q.device.type
        return f"it needs a CUDA GPU and the package triton, this tensor is on {here}", "chunked"
    if q.shape[-1] > LARGEST_D:
        return f"it takes heads of size 1 to {LARGEST_D}, not {q.shape[-1]}", "chunked, or a larger n_heads="
    if q.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return f"it computes in float32, float16 and bfloat16, not {str(q.dtype).removeprefix('torch.')}", "chunked"
    return None


@contextmanager
def _on_its_device(t: Tensor) -> Iterator[None]:
    """Makes the tensor's device current for Triton. Raises ConfigError if a kernel needs more than the device has; a
    smaller batch would not help."""
    from triton.runtime.errors import OutOfResources

    try:
        with torch.cuda.device(t.device) if t.is_cuda else nullcontext():
            yield
    except OutOfResources as error:
        heads = f"heads of {t.shape[-1]} in {str(t.dtype).removeprefix('torch.')}"
        why = f"{heads} need {error.required} of the GPU's {error.name}, and it has {error.limit}"
        raise _cannot(why, "chunked, or a larger n_heads=") from None


def load_kernels() -> ModuleType:
    from musictx.model.attention import triton_kernels

    return triton_kernels


class _Tiles(NamedTuple):
    """Tiles of n × n positions: see `triton_kernels`."""

    lead: int  # positions that the first block of keys begins before key 0
    ahead: int  # blocks of keys before the first query's
    near: int  # blocks of the table that are read; tiles farther from the diagonal see only its last row
    queries: int  # blocks

    @classmethod
    def of(cls, tq: int, tk: int, m: int, n: int) -> "_Tiles":
        lead = (tq - tk) % n
        ahead, queries = (tk - tq + lead) // n, math.ceil(tq / n)
        return cls(lead, ahead, min(1 + math.ceil(max(m - 2, 0) / n), ahead + queries), queries)


def _dense_rows(t: Tensor) -> Tensor:
    return t if t.stride(-1) == 1 else t.contiguous()


def _strides(*tensors: Tensor) -> list[int]:
    return [s for t in tensors for s in t.stride()[:3]]


def _empty(like: Tensor) -> Tensor:
    """(B, H, T, D) stored as (B, T, H, D), like a model's projections around attention."""
    b, h, t, d = like.shape
    return like.new_empty(b, t, h, d).transpose(1, 2)


def _launch(tuning: Sequence[int], kernel: int, d: int) -> tuple[int, dict[str, Any]]:
    n, warps, stages = tuning[3 * kernel : 3 * kernel + 3]
    # round a·b + c once: explicit, because Triton 3.10 will have another default
    return n, {"N": n, "D": d, "num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}


@torch.library.custom_op("musictx::relative_attention", mutates_args=())
def attend(
    q: Tensor, k: Tensor, v: Tensor, rel: Tensor, scale: float, deterministic: bool, tuning: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """The output (B, H, Tq, D) and log₂ of the softmax's denominator (B, H, Tq), D a power of two."""
    (b, h, tq, d), tk, m = q.shape, k.shape[2], rel.shape[1]
    q, k, v, rel = _dense_rows(q), _dense_rows(k), _dense_rows(v), rel.contiguous()
    out, lse = _empty(q), q.new_empty(b, h, tq, dtype=torch.float32)
    n, options = _launch(launches(q, tuning), 0, d)
    tiles = _Tiles.of(tq, tk, m, n)
    sizes = (h, tq, tk, m, *tiles[:3], *_strides(q, k, v))
    with _on_its_device(q):
        load_kernels().forward[tiles.queries * b * h,](q, k, v, rel, out, lse, scale / math.log(2), *sizes, **options)
    return out, lse


@attend.register_fake
def _(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _empty(q), q.new_empty(q.shape[:3], dtype=torch.float32)


@torch.library.custom_op("musictx::relative_attention_backward", mutates_args=())
def backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rel: Tensor,
    out: Tensor,
    lse: Tensor,
    scale: float,
    deterministic: bool,
    tuning: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of q, k, v and rel."""
    (b, h, tq, d), tk, m = q.shape, k.shape[2], rel.shape[1]
    q, k, v, rel = _dense_rows(q), _dense_rows(k), _dense_rows(v), rel.contiguous()
    grad, out = (t.transpose(1, 2).contiguous() for t in (grad, out))  # (B, T, H, D), as `out` is stored: no copy
    dq, dk, dv = _empty(q), _empty(k), _empty(v)
    far, delta = torch.empty_like(lse), torch.empty_like(lse)
    log2_scale = scale / math.log(2)
    inputs, strides, kernels, tuning = (q, k, v, rel, grad), _strides(q, k, v), load_kernels(), launches(q, tuning)
    with _on_its_device(q):
        n, options = _launch(tuning, 1, d)
        tiles = _Tiles.of(tq, tk, m, n)
        dfar = lse.new_empty(b, h, tiles.queries, d)
        rows = lse.new_zeros(h, tiles.near * n, d)
        sizes = (h, tq, tk, m, *tiles[:3])
        kernels.query_gradient[tiles.queries * b * h,](
            *(q, k, v, rel, out, grad, lse, far, delta, dq, dfar, rows, log2_scale, *sizes, *strides),
            ADD_TABLE=not deterministic,
            **options,
        )
        if deterministic:
            splits = min(b, SPLITS)
            parts = lse.new_zeros(splits, 2, h, tiles.near * n, d)
            table_n, options = _launch(tuning, 3, d)
            assert table_n == n, "the table's near tiles end where the queries' do"
            kernels.table_gradient[tiles.near * h * splits,](
                *inputs, lse, delta, parts, log2_scale, b, *sizes, splits, *strides, **options
            )
            rows = parts.sum((0, 1))
        n, options = _launch(tuning, 2, d)
        tiles = _Tiles.of(tq, tk, m, n)
        kernels.key_gradient[(tiles.ahead + tiles.queries) * b * h,](
            *(*inputs, lse, far, delta, dk, dv, log2_scale, h, tq, tk, m, *tiles[:3], *strides), **options
        )
    table = rows.new_zeros(h, m, d)
    table[:, : rows.shape[1]] = rows[:, :m]
    table[:, -1] += rows[:, m:].sum(1) + dfar.sum((0, 2))  # distances past the last row, near and far
    return dq, dk, dv, (table * scale).to(rel.dtype)


@backward.register_fake
def _(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, rel: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _empty(q), _empty(k), _empty(v), rel.new_empty(rel.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, scale, deterministic, tuning = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.options = scale, deterministic, tuning


def _differentiate(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    return (*backward(grad, *ctx.saved_tensors, *ctx.options), None, None, None)


attend.register_autograd(_differentiate, setup_context=_keep)
