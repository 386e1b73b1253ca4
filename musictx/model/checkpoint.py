"""A training's checkpoint, as a bundle is read: only tensors and plain values of it are ever opened."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def is_checkpoint(path: Path) -> bool:
    """Whether torch.save wrote the file, as a zip archive."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What is in it. Raises UnpicklingError for what could run code, and all of `header.DAMAGE` for a damaged one."""
    import torch  # only its own reader opens such a file safely

    with zipfile.ZipFile(path) as file:  # torch.save packs nothing, so that its tensors can be mapped
        if any(entry.file_size > entry.compress_size for entry in file.infolist()):
            raise ValueError("it is packed, and torch.save packs nothing")
    content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return content if isinstance(content, dict) else {}


def checkpoint_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of its model, by their names there. Raises all of `header.DAMAGE`."""
    from torch import Tensor

    with zipfile.ZipFile(path) as file:
        if broken := file.testzip():  # compares with the checksums inside, which torch.load does not
            raise ValueError(f"{broken} has changed since it was written")
    found = read_checkpoint(path)["state_dict"]
    if not all(isinstance(name, str) and isinstance(x, Tensor) for name, x in found.items()):
        raise ValueError("its state_dict is no dict of tensors")
    if (size := sum(x.numel() * x.element_size() for x in found.values())) > path.stat().st_size:
        raise ValueError(f"its tensors mean {size:,} bytes")  # one number may stand for a whole tensor
    return {name.removeprefix("model."): x for name, x in found.items()}
