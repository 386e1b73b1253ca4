"""What a report begins with: whose figures these are."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from musictx.proof.rows import Unable
from musictx.training.record import git_commit

PACKAGES = ("musictx", "torch", "triton", "lightning", "numpy")
SWITCHES = ("TRITON_INTERPRET", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF")
BF16_FROM = (8, 0)  # compute capability


def facts(device: str) -> list[str]:
    """Versions, machine and device, a line each."""
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
    """Linux tells its name in a file alone."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
