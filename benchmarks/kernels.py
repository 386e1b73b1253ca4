"""Compiles the Triton kernels for each card with their shipped tuning and reports their use of it, without a GPU.

    make kernels
    python benchmarks/kernels.py --cards 80 90 --dtypes bfloat16 --json outputs/kernels.json

The operators run as on the card, but each launch ends after Triton and ptxas have compiled the kernel. The report gives
registers and spilled bytes of a thread, and shared memory of a block. Exits with status 1 if a kernel needs more shared
memory than its card has.
"""

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from musictx.files import replacing
from musictx.model.attention import fused
from musictx.model.attention.triton_tuning import Card
from musictx.terminal import say

# KB of shared memory that a block may ask for, by compute capability: CUDA programming guide, "Compute Capabilities"
CARDS = {
    80: ("A100", 163),
    86: ("RTX 30, A10", 99),
    89: ("RTX 40, L4", 99),
    90: ("H100, H200", 227),
    100: ("B200", 227),
    120: ("RTX 50", 99),
}
D_HEADS = (16, 32, 64, 128)  # others are padded to the next of these
DTYPES = ("bfloat16", "float32", "float16")  # float16 has bfloat16's tuning and is compiled only on request
KERNELS = {
    "forward": "forward",
    "query_gradient": "queries",
    "query_gradient deterministic": "queries, deterministic",
    "key_gradient": "keys",
    "table_gradient": "table, deterministic",
}


class KernelUse(NamedTuple):
    """One kernel, compiled for one card. Registers and spilled bytes are per thread, shared memory per block."""

    capability: int
    dtype: str
    d_head: int
    kernel: str
    tile: int
    warps: int
    stages: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    shared_limit: int

    @property
    def fits(self) -> bool:
        return self.shared_bytes <= self.shared_limit


class Driver:
    """A driver that names the card to Triton."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_device(self) -> int:
        return self.capability

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)


@contextmanager
def compiled(capability: int, take: Callable[[str, dict[str, Any], Any, str], None]) -> Iterator[None]:
    """Inside the block, a launch compiles for that card and calls `take` with the kernel's name, options, result and
    ptxas' report."""
    import triton

    from musictx.model.attention import triton_kernels

    class Compile:
        def __init__(self, name: str) -> None:
            self.name, self.kernel = name, getattr(triton_kernels, name)

        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            def launch(*args: Any, **options: Any) -> None:
                with redirect_stdout(io.StringIO()) as report:
                    result = self.kernel.warmup(*args, grid=grid, **options)
                if report.getvalue():  # a kernel that is compiled already prints nothing
                    take(self.name, options, result, report.getvalue())

            return launch

    names = {name.split()[0] for name in KERNELS}
    card = Card("a GPU that is not here", capability, CARDS[capability][1] * 1024)
    with (
        TemporaryDirectory() as cache,
        triton.knobs.cache.scope(),
        triton.knobs.nvidia.scope(),
        patch.object(fused, "load_kernels", lambda: SimpleNamespace(**{name: Compile(name) for name in names})),
        patch.object(Card, "of", lambda _: card),
    ):
        triton.knobs.cache.dir = cache  # empty, so that ptxas runs and reports
        triton.knobs.nvidia.dump_ptxas_log = True
        triton.runtime.driver.set_active(Driver(capability))
        yield


def measure(capability: int, dtype: str, d: int) -> list[KernelUse]:
    """The kernels of a training step, with and without atomic additions."""
    rows: list[KernelUse] = []

    def take(name: str, options: dict[str, Any], result: Any, report: str) -> None:
        kernel = name if options.get("ADD_TABLE", True) else f"{name} deterministic"
        registers, spilled = (
            re.search(rf"{words}", report) for words in (r"Used (\d+) registers", r"(\d+) bytes spill stores")
        )
        assert registers, f"ptxas reports otherwise: {report}"
        assert spilled, f"ptxas reports otherwise: {report}"
        launch = options["N"], options["num_warps"], options["num_stages"]
        found = int(registers[1]), int(spilled[1]), result.metadata.shared
        rows.append(KernelUse(capability, dtype, d, KERNELS[kernel], *launch, *found, CARDS[capability][1] * 1024))

    q, k, v = (torch.zeros(1, 2, 64, d, dtype=getattr(torch, dtype)) for _ in range(3))
    rel = q.new_zeros(2, 40, d)
    with compiled(capability, take):
        out, lse = fused.attend(q, k, v, rel, 0.1, False, [])
        for deterministic in (False, True):
            fused.backward(torch.zeros_like(out), q, k, v, rel, out, lse, 0.1, deterministic, [])
    return rows


HEAD = f"{'sm':<5}{'dtype':<10}{'D':>3}  {'kernel':<24}{'tile':>6}{'warps':>6}{'stages':>7}{'registers':>10}"
HEAD += f"{'spill B':>9}{'shared KB':>10}{'of':>5}"


def line(row: KernelUse) -> str:
    """A row of the table under HEAD."""
    tile, misfit = f"{row.tile}x{row.tile}", "" if row.fits else "   DOES NOT FIT"
    launch = f"{row.kernel:<24}{tile:>6}{row.warps:>6}{row.stages:>7}{row.registers:>10}{row.spilled_bytes:>9}"
    shared = f"{row.shared_bytes / 1024:>10.1f}{row.shared_limit // 1024:>5}"
    return f"{row.capability:<5}{row.dtype:<10}{row.d_head:>3}  {launch}{shared}{misfit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, nargs="+", choices=CARDS, default=list(CARDS), help="compute capabilities")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["bfloat16", "float32"])
    parser.add_argument("--d-heads", nargs="+", type=int, choices=D_HEADS, default=D_HEADS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json and options.json.exists():
        parser.error(f"--json {options.json} exists already: give another")
    if not fused.HAS_TRITON:
        parser.error("the package triton is not installed, which is for Linux: pip install triton")
    if os.environ.get("TRITON_INTERPRET") == "1":
        parser.error("with TRITON_INTERPRET=1 nothing is compiled: unset it")
    import triton

    say(f"Triton {triton.__version__}\n{HEAD}")
    rows: list[KernelUse] = []
    for capability in options.cards:
        for dtype in options.dtypes:
            for d in options.d_heads:
                rows += (found := measure(capability, dtype, d))
                say("\n".join(map(line, found)), flush=True)
    fit, spilled = sum(row.fits for row in rows), [row.spilled_bytes for row in rows if row.spilled_bytes]
    say(
        f"{len(rows)} kernels compiled: {fit} fit the shared memory of their card, "
        f"{len(spilled)} spill registers, at most {max(spilled, default=0)} bytes a thread"
    )
    if options.json:
        table = ",\n".join(f"  {json.dumps(row._asdict())}" for row in rows)  # a line a kernel
        options.json.parent.mkdir(parents=True, exist_ok=True)
        with replacing(options.json) as written:
            written.write_text(
                f'{{\n "triton": "{triton.__version__}",\n "rows": [\n{table}\n ]\n}}\n', encoding="utf-8"
            )
    sys.exit(any(not row.fits for row in rows))


if __name__ == "__main__":
    main()
