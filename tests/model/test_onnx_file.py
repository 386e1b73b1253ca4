"""An ONNX file of ours says what it is; another, a damaged or a lying one is refused before it is opened."""

import json
import re
from dataclasses import asdict
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import V, build

from musictx.errors import BundleError
from musictx.model.onnx.file import notes, open_onnx, write_onnx
from musictx.model.onnx.graph import quantise
from musictx.model.onnx.session import onnxruntime as runtime
from musictx.model.onnx.steps import OnnxSteps

SAID = {"licence": "CC BY 4.0", "tokenizer": "performance", "corpus": "tunes", "version": "7"}
CASE: dict[str, Any] = {"conv": 3, "keyboard": "head", "mlp": "swiglu"}


@pytest.fixture(scope="module", params=["float32", "int8"])
def path(request, tmp_path_factory):
    model, file = build(**CASE).float(), tmp_path_factory.mktemp("onnx") / "model.onnx"
    header = SAID | {"notes": {"citation": "Us, 2026"}, "model": {"kind": "transformer", **asdict(model.config)}}
    tensors = {name: x.detach().numpy() for name, x in model.state_dict().items()}
    write_onnx(file, model.config, header, tensors, request.param)
    return file


@pytest.fixture
def never_opened(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("ONNX Runtime got the file")

    monkeypatch.setattr(runtime, "InferenceSession", refuse)


def changed(path, tmp_path, change):
    """A copy after `change(model)`."""
    model = onnx.load_model(path)
    change(model)
    copy = tmp_path / "changed.onnx"
    onnx.save_model(model, copy)
    return copy


def test_other_programs_read_what_it_is(path):
    opened, model = open_onnx(path), onnx.load_model(path)
    said = {each.key: each.value for each in model.metadata_props}
    assert said == notes(path)
    assert (said["licence"], said["citation"], said["tokenizer"]) == ("CC BY 4.0", "Us, 2026", "performance")
    assert json.loads(said["musictx"]) == opened.header
    assert [each.name for each in model.graph.input] == [each.name for each in opened.session.get_inputs()]
    assert {each.domain for each in model.opset_import} == {"float32": {""}, "int8": {"", "com.microsoft"}}[
        opened.weights
    ]
    assert opened.window == 12
    onnx.checker.check_model(model)


def lie(**settings):
    """A change of the settings in the header."""

    def change(model):
        (prop,) = (each for each in model.metadata_props if each.key == "musictx")
        header = json.loads(prop.value)
        header["model"] |= settings
        prop.value = json.dumps(header)

    return change


def outside(model):
    """A weight that is in another file."""
    tensor = model.graph.initializer[-1]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../secret")


def larger(model):
    model.graph.initializer[-1].dims[0] = 2**40


def more(model):
    model.graph.node.add(op_type="ConstantOfShape", input=["window"], output=["huge"])


def strange(model):
    model.graph.input[0].type.tensor_type.elem_type = 1


def unheard(model):
    (table,) = (each for each in model.graph.initializer if each.name == "keyboard.key")
    table.raw_data = b"\x80" + table.raw_data[1:]


def silent(model):
    del model.metadata_props[:]


LIES = {
    "its settings are damaged .*n_layers=1000000000": lie(n_layers=10**9),
    r"its settings are damaged .*position=own\.py:Mine": lie(position="own.py:Mine"),
    "its settings are damaged .*d_model=": lie(d_model=True),
    "its settings are damaged .*n_heads=5": lie(n_heads=5),
    "is damaged: its settings mean weights of .* bytes, the whole file has": lie(vocab_size=2**20),
    "its settings mean weights of [0-9,]{15,} bytes": lie(n_layers=2**10, d_ff=2**20),
    "computes something else than its settings mean": lie(max_distance=7, position="none"),
    "is not a model of musictx": silent,
    "has another size": outside,
    "keyboard.key names keys that no piano has": unheard,
    "computes something else": larger,
    "computes something else *than": more,
    "computes something else than *its": strange,
}


@pytest.mark.parametrize("line", LIES)
def test_a_lying_file_is_refused_before_onnx_runtime_gets_it(line, path, tmp_path, never_opened):
    with pytest.raises(BundleError, match=line):
        open_onnx(changed(path, tmp_path, LIES[line]))


@given(st.data())
def test_a_file_that_is_cut_or_damaged_anywhere_opens_or_is_refused(path, tmp_path_factory, data):
    content, damaged = bytearray(path.read_bytes()), tmp_path_factory.mktemp("damaged") / "model.onnx"
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content[at] ^= data.draw(st.integers(1, 255))
    damaged.write_bytes(content)
    try:
        opened = open_onnx(damaged)
    except BundleError as error:
        line = str(error)
        assert len(line.splitlines()) == 1
    else:
        assert len(content) == path.stat().st_size  # only a number of a weight or a word of a note differs
        assert OnnxSteps(opened).step(np.ones(1, np.int64)).shape == (1, V)


@pytest.mark.parametrize("content", [b"", b"\x08", b"MThd\0\0\0\x06", b"\xff" * 99, b"PK\x03\x04" + b"\0" * 99])
def test_other_files_are_named_and_refused(content, tmp_path):
    (tmp_path / "x.onnx").write_bytes(content)
    with pytest.raises(BundleError, match=f"^{re.escape(str(tmp_path))}/x.onnx is "):
        open_onnx(tmp_path / "x.onnx")
    with pytest.raises(BundleError, match="y.onnx: no such file"):
        open_onnx(tmp_path / "y.onnx")


@given(st.integers(1, 4), st.integers(1, 70), st.integers(0, 99))
def test_a_weight_of_8_bits_is_within_half_a_step_of_its_block(n_out, n_in, seed):
    weight = np.random.default_rng(seed).normal(size=(n_out, n_in)).astype(np.float32)
    whole, scale = quantise(weight)
    back = ((whole.astype(np.float32) - 128) * scale[..., None]).reshape(n_out, -1)
    assert (np.abs(back[:, :n_in] - weight) <= np.repeat(scale, 32, 1)[:, :n_in] * 0.5001).all()
    assert (back[:, n_in:] == 0).all()
    assert whole.min() >= 1  # -127: products of two bytes stay symmetric
