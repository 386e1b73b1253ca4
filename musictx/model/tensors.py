"""The tensors of a bundle or a checkpoint in numpy: each is read when it is used, and none for its shape. Of a
checkpoint only tensors and plain values are ever opened."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
MOST = 2**16  # tensors of a file: more of them, though empty, would take memory
WIDE = "<u2"  # bfloat16 is the upper half of a float32, and numpy has no such type
TYPES = {  # by their names in a file: PyTorch's and numpy's
    "F64": ("float64", "<f8"),
    "F32": ("float32", "<f4"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16", WIDE),
    "I64": ("int64", "<i8"),
    "I32": ("int32", "<i4"),
    "I16": ("int16", "<i2"),
    "I8": ("int8", "<i1"),
    "U8": ("uint8", "<u1"),
    "BOOL": ("bool", "<?"),
}


def is_checkpoint(path: Path) -> bool:
    """Whether torch.save wrote the file, as a zip archive."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The content of a checkpoint. Raises UnpicklingError for code, and all of `header.DAMAGE` for damage."""
    import torch  # only its own reader opens such a file safely

    with zipfile.ZipFile(path) as file:  # torch.save packs nothing, so that its tensors can be mapped
        if any(entry.file_size > entry.compress_size for entry in file.infolist()):
            raise ValueError("it is packed, and torch.save packs nothing")
    content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return content if isinstance(content, dict) else {}


def checkpoint_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of its model, by name. Raises all of `header.DAMAGE`."""
    from torch import Tensor

    with zipfile.ZipFile(path) as file:
        if broken := file.testzip():  # compares with the checksums inside, which torch.load does not
            raise ValueError(f"{broken} has changed since it was written")
    tensors = read_checkpoint(path)["state_dict"]
    if not all(isinstance(name, str) and isinstance(x, Tensor) for name, x in tensors.items()):
        raise ValueError("its state_dict is no dict of tensors")
    if (size := sum(x.numel() * x.element_size() for x in tensors.values())) > path.stat().st_size:
        raise ValueError(f"its tensors mean {size:,} bytes")  # one number may stand for a whole tensor
    return {name.removeprefix("model."): x for name, x in tensors.items()}


class TensorEntry(NamedTuple):
    """A tensor of a file."""

    dtype: str
    shape: list[int]
    read: Callable[[], Bytes]


def tensor_entries(path: Path) -> dict[str, TensorEntry]:
    """All tensors of a bundle or a checkpoint. Raises all of `header.DAMAGE`."""
    if is_checkpoint(path):
        names = {f"torch.{name}": code for code, (name, _) in TYPES.items()}
        tensors = checkpoint_tensors(path)
        return {
            n: TensorEntry(names.get(str(x.dtype), str(x.dtype)), [*x.shape], partial(_tensor_bytes, x))
            for n, x in tensors.items()
        }
    with safe_open(path, "np") as file:  # refuses a file whose places of tensors are not all within it
        if (n := len(file.keys())) > MOST:
            raise ValueError(f"{n:,} tensors are more than any model has")
    with open(path, "rb") as file:
        start = 8 + (length := int.from_bytes(file.read(8), "little"))
        entries = json.loads(file.read(length))
    entries.pop("__metadata__", None)
    return {
        name: TensorEntry(
            x["dtype"], x["shape"], partial(_file_bytes, path, *(start + each for each in x["data_offsets"]))
        )
        for name, x in entries.items()
    }


def _file_bytes(path: Path, begin: int, end: int) -> Bytes:
    if not 0 <= begin <= end <= path.stat().st_size:
        raise ValueError(f"a tensor from byte {begin} to {end}")
    return np.fromfile(path, np.uint8, end - begin, offset=begin)


def _tensor_bytes(tensor: Tensor) -> Bytes:
    import torch  # the tensor is its own

    content: Bytes = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return content


def shapes(path: Path) -> dict[str, list[int]]:
    """The shapes of all tensors. No tensor is read: a stranger's file may be larger than the memory."""
    return {name: tensor.shape for name, tensor in tensor_entries(path).items()}


def shape_difference(expected: Mapping[str, Sequence[int]], actual: Mapping[str, Sequence[int]]) -> str:
    """The first difference between the shapes of settings and those of a file, in words; "" if there is none."""
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            claimed, there = (of.get(name, "no such tensor") for of in (expected, actual))
            return f"{name}: its settings mean {claimed}, the file has {there}"
    return ""


def tensors_hash(path: Path) -> str:
    """The SHA-256 of all tensors, by name: a new header does not change it."""
    digest = sha256()
    for name, tensor in sorted(tensor_entries(path).items()):
        digest.update(name.encode())
        digest.update(tensor.read().data)
    return digest.hexdigest()


class Tensors(Mapping[str, Array]):
    """All tensors by name; floating-point numbers of any width are float32."""

    def __init__(self, path: Path) -> None:
        self._entries = tensor_entries(path)
        self.shapes = {name: tensor.shape for name, tensor in self._entries.items()}

    def __getitem__(self, name: str) -> Array:
        tensor = self._entries[name]
        if tensor.dtype not in TYPES:
            raise ValueError(f"{name} is {tensor.dtype}")
        _, dtype = TYPES[tensor.dtype]
        array: Array = tensor.read().view(dtype).reshape(tensor.shape)
        if tensor.dtype == "BF16":
            return (array.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(over="ignore"):  # what is too large becomes infinity, as in PyTorch
            return array.astype(np.float32, copy=False) if tensor.dtype in ("F64", "F16") else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
