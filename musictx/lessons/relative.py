"""Relative attention three ways, the same numbers: by definition, by skewing, in blocks; memory and time by length.

Each distance has an embedding e, and the scores are s_ij = q_i · k_j + q_i · e_(i - j) for j <= i (Shaw et al. 2018).
For T notes of width D there are T² pairs:

    definition   e_(i - j) is gathered for each pair: T² D numbers
    skewing      q_i · e_d for each i and d, T² numbers; then row i moves to the left until distance 0 stands at j = i.
                 With a column of padding that is a reshape (Huang et al. 2018, section 3.4.1)
    blocks       a tile of n queries and n keys has 2 n - 1 distances: skew the tile, keep the running maximum m and sum
                 of exp(s - m) of each row (Milakov and Gimelshein 2018; Dao et al. 2022): n² numbers at a time
"""

import math
from collections.abc import Callable
from functools import partial
from timeit import repeat
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from musictx.lessons import Finding
from musictx.lessons.hymns import hymns
from musictx.model.attention import relative_attention
from musictx.viz.curves import COLOURS, MARKERS
from musictx.viz.figure import new_figure

LENGTHS, WIDTH, BLOCK, MIB = (128, 256, 512, 1024, 2048, 4096), 64, 64, 2**20
DEFINED = 1024  # the definition takes 4 GiB for 4096 notes
Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # q, k, v, e (T, D) each, e by distance -> (T, D)


def causal(scores: Tensor, v: Tensor) -> Tensor:
    ahead = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return (scores / math.sqrt(v.shape[-1])).masked_fill(ahead, -math.inf).softmax(-1) @ v


def by_definition(q: Tensor, k: Tensor, v: Tensor, e: Tensor) -> Tensor:
    i = torch.arange(len(q))
    pairs = e[(i[:, None] - i).clamp(0)]  # (T, T, D)
    return causal(q @ k.T + (pairs @ q[:, :, None])[:, :, 0], v)


def skewed(by_distance: Tensor) -> Tensor:
    """(R, W) with falling distances, the last one of the last row's own -> (R, W), each row one further to the left
    than the row below it."""
    r, w = by_distance.shape
    padded = torch.cat([by_distance.new_zeros(r, 1), by_distance], 1)  # (R, W + 1)
    return padded.flatten()[r:].view(r, w)


def by_skewing(q: Tensor, k: Tensor, v: Tensor, e: Tensor) -> Tensor:
    return causal(q @ k.T + skewed(q @ e.flip(0).T), v)


def in_blocks(q: Tensor, k: Tensor, v: Tensor, e: Tensor) -> Tensor:
    n, out = BLOCK, torch.empty_like(v)
    ahead = torch.ones(n, n, dtype=torch.bool).triu(1)
    for i in range(0, len(q), n):
        rows = q[i : i + n] / math.sqrt(WIDTH)
        top, total, mean = torch.full((n, 1), -math.inf), torch.zeros(n, 1), torch.zeros(n, WIDTH)
        for j in range(0, i + 1, n):
            near = e[torch.arange(i - j + n - 1, i - j - n, -1).clamp(0)]  # (2 n - 1, D), those ahead are masked
            scores = rows @ k[j : j + n].T + skewed(rows @ near.T)[:, :n]  # (n, n)
            if i == j:
                scores = scores.masked_fill(ahead, -math.inf)
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, fade = (scores - higher).exp(), (top - higher).exp()
            total = total * fade + weights.sum(-1, keepdim=True)
            mean = mean * fade + weights @ v[j : j + n]
            top = higher
        out[i : i + n] = mean / total
    return out


WAYS: dict[str, Attention] = {"definition": by_definition, "skewing": by_skewing, "blocks": in_blocks}


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within it, `bytes` is the size of the largest tensor that PyTorch makes and that is not as large as the input and
    the output."""

    def __init__(self, outside: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.outside, self.bytes = outside.untyped_storage().nbytes(), 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            size = made.untyped_storage().nbytes()
            self.bytes = max(self.bytes, size if size != self.outside else 0)
        return made


def music(length: int) -> tuple[Tensor, ...]:
    """q, k, v, e (T, D) each of the notes of hymns, four voices a sixteenth, as untrained layers make them."""
    notes = torch.cat([torch.from_numpy(grid).long().flatten() for grid in hymns()[:8]])[:length]  # (T,)
    x = torch.randn(129, WIDTH)[notes + 1]  # (T, D); row 0 is a rest
    return (*(x @ torch.randn(WIDTH, WIDTH) / math.sqrt(WIDTH) for _ in range(3)), torch.randn(length, WIDTH))


def lesson(size: float = 1.0) -> Finding:
    lengths = LENGTHS if size > 0.5 else LENGTHS[:3]
    memory: dict[str, list[float]] = {way: [] for way in WAYS}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    apart = 0.0
    for length in lengths:
        qkve = music(length)
        q, k, v, e = (x[None, None] for x in qkve)  # one row, one head
        toolkit = relative_attention(q, k, v, e[0], "chunked")[0, 0]
        for way, attend in WAYS.items():
            if way == "definition" and length > DEFINED:
                continue
            with Largest(qkve[0]) as largest:
                apart = max(apart, float((attend(*qkve) - toolkit).abs().max()))
            memory[way].append(largest.bytes / MIB)
            seconds[way].append(min(repeat(partial(attend, *qkve), number=1, repeat=3)))

    figure = new_figure(11, 3.2, 85)
    before, after, *curves = figure.subplots(1, 4, width_ratios=(1, 1, 1.3, 1.3))
    distance, i = torch.arange(5, -1, -1.0).expand(6, 6), torch.arange(6)
    for axes, table, used, title, label in (
        (before, distance, distance <= i[:, None], "q_i · e_d of each distance", "column"),
        (after, skewed(distance), i <= i[:, None], "skewed: d = i - j", "note j"),
    ):
        axes.imshow(table.where(used, math.nan), cmap="Blues_r", vmin=-2, vmax=8)
        for y, x in used.nonzero().tolist():
            axes.text(x, y, f"{table[y, x]:.0f}", ha="center", va="center")
        axes.set(title=title, xlabel=label, ylabel="note i")
    for axes, values, title, label in (
        (curves[0], memory, "largest tensor", "MiB"),
        (curves[1], seconds, "time on this computer", "seconds"),
    ):
        for way, colour, marker in zip(WAYS, COLOURS, MARKERS, strict=False):
            axes.plot(lengths[: len(values[way])], values[way], marker=marker, color=colour, label=way)
        axes.set(title=title, xlabel="length in notes", ylabel=label, yscale="log")
        axes.set_xscale("log", base=4)
        axes.set_xticks(lengths[1::2], map(str, lengths[1::2]))
    curves[1].legend(frameon=False, loc="lower right")
    cells = [
        [f"{x:.3g}" for x in each[w]] + ["-"] * (len(lengths) - len(each[w]))
        for each in (memory, seconds)
        for w in WAYS
    ]
    return Finding(
        ("length", *(f"{w}, {unit}" for unit in ("MiB", "s") for w in WAYS)),
        [*zip(map(str, lengths), *cells, strict=True)],
        f"All three ways and the toolkit's give the same numbers, within {apart:.0e}. The largest tensor on the way "
        f"takes {memory['definition'][-1]:.3g} MiB for {min(DEFINED, lengths[-1])} notes by definition. For "
        f"{lengths[-1]} it takes {memory['skewing'][-1]:.3g} MiB by skewing and {memory['blocks'][-1]:.2g} in blocks.",
        figure,
        ("model/attention/relative.py", "model/attention/chunked.py", "model/attention/triton_kernels.py"),
    )
