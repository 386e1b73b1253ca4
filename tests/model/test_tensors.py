"""Tensors of a bundle without PyTorch: its numbers and its hash, of every type, from bundles and checkpoints."""

import json
import struct
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from musictx.model.header import DAMAGE
from musictx.model.packaged import is_packaged, packaged_bundle
from musictx.model.tensors import Tensors, shapes, tensors_hash

FLOATS = {torch.float64, torch.float32, torch.float16, torch.bfloat16}
WHOLE = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
FIRST = [0.0, -0.0, 1.5, -3.25, 0.1, 3e38, 1e-40, float("inf"), float("-inf"), 7.0, 1e300, float("nan")]


def of_every_type():
    """One tensor of each type, a scalar and an empty one; a number that a type has not is the nearest that it has."""
    found = {str(kind): torch.tensor(FIRST, dtype=torch.float64).view(3, 4).to(kind) for kind in FLOATS}
    found |= {str(kind): torch.arange(-3, 3).to(kind) for kind in WHOLE}
    return found | {"scalar": torch.tensor(3.0), "none": torch.zeros(0, 4)}


@pytest.fixture(params=["bundle", "checkpoint"])
def path(request, tmp_path):
    if request.param == "bundle":
        save_file(of_every_type(), tmp_path / "x.safetensors")
        return tmp_path / "x.safetensors"
    torch.save({"state_dict": {f"model.{name}": x for name, x in of_every_type().items()}}, tmp_path / "x.ckpt")
    return tmp_path / "x.ckpt"


def test_numbers_are_those_of_pytorch_and_all_weights_are_float32(path):
    found, expected = Tensors(path), of_every_type()
    assert {*found} == {*expected}
    assert shapes(path) == found.shapes == {name: [*x.shape] for name, x in expected.items()}
    for name, x in expected.items():
        wide = x.float() if x.is_floating_point() else x
        np.testing.assert_array_equal(found[name], wide.numpy())
        assert found[name].dtype == wide.numpy().dtype


def test_the_hash_is_that_of_the_bytes_by_name(path):
    expected = sha256()
    for name, x in sorted(of_every_type().items()):
        expected.update(name.encode() + x.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    assert tensors_hash(path) == expected.hexdigest()


def test_a_type_that_no_bundle_has_is_named(tmp_path):
    save_file({"odd": torch.zeros(2, dtype=torch.float8_e4m3fn)}, tmp_path / "x")
    with pytest.raises(ValueError, match="^odd is F8_E4M3$"):
        _ = Tensors(tmp_path / "x")["odd"]


@pytest.mark.parametrize("place", [[0, 2**40], [-9, 0], [40, 0], [8], ["a", "b"]])
def test_a_place_beyond_the_file_is_refused_before_memory_is_taken(place, tmp_path):
    """Also where a name comes twice, and the one that the library looks at is true."""
    entry = '"x":{"dtype":"F32","shape":[2],"data_offsets":%s}'
    for entries in ([place], [[0, 8], place], [place, [0, 8]]):
        header = ("{" + ",".join(entry % json.dumps(each) for each in entries) + "}").encode()
        (tmp_path / "x").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        try:
            found = Tensors(tmp_path / "x")["x"]
        except DAMAGE:
            continue
        np.testing.assert_array_equal(found, [0, 0])


def test_a_file_of_countless_empty_tensors_is_refused(tmp_path):
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({str(n): entry for n in range(70_000)}).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ValueError, match="^70,000 tensors are more than any model has$"):
        shapes(tmp_path / "x")


@pytest.mark.skipif(not is_packaged("piano"), reason="built without the piano model")
def test_header_numbers_and_hash_take_no_pytorch():
    code = (
        "import sys; from pathlib import Path; from musictx.model.header import read_header;"
        "from musictx.model.tensors import Tensors, tensors_hash; path = Path(sys.argv[1]);"
        "read_header(path); tensors_hash(path);"
        "[x.sum() for x in Tensors(path).values()]; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, packaged_bundle("piano")], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
