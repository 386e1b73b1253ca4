import re
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from conftest import ROOT, ok, refused
from untrained import write_harmoniser

from musictx.commands.export import export
from musictx.config.app import settings
from musictx.errors import ConfigError, UserError
from musictx.generate.open_bundle import open_bundle
from musictx.model.onnx.file import open_onnx
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.packaged import is_packaged


def test_a_trained_model_becomes_a_file_that_gives_its_logits(world, tmp_path):
    done = ok(["musictx", "export", world.bundle.parent, "out=deep/x.onnx"], tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{world.bundle.parent}: trained on ")
    assert ["in", "ids", "int64", "B", "T"] in [line.split() for line in lines]
    assert ["out", "logits", "float32", "B", "391"] in [line.split() for line in lines]
    assert lines[-1].startswith("deep/x.onnx: 0.")
    assert " MB, weights in float32, licence " in lines[-1]
    opened, (model, tokenizer, header) = open_onnx(tmp_path / "deep/x.onnx"), open_bundle(world.bundle)
    assert (opened.header["licence"], opened.header["tokenizer"]) == (header.licence, header.tokenizer)
    ids = np.array([[tokenizer.vocab.bos, 5, 9]])
    expected = model(torch.from_numpy(ids))[:, -1].detach().numpy()
    np.testing.assert_allclose(OnnxSteps(opened).prefill(ids), expected, atol=1e-4)


@pytest.mark.skipif(not is_packaged("chorale"), reason="built without the chorale model")
def test_weights_of_8_bits_make_a_smaller_file(tmp_path):
    sizes = []
    for weights in ("float32", "int8"):
        out = tmp_path / f"{weights}.onnx"
        export(settings("export", "bundle=chorale", f"out={out}", f"weights={weights}"))
        assert open_onnx(out).weights == weights
        sizes.append(out.stat().st_size)
    assert sizes[1] < 0.4 * sizes[0]


def test_a_model_without_a_graph_is_refused_in_a_line(world, tmp_path):
    bundle = write_harmoniser(tmp_path / "h.safetensors")
    line = refused(["musictx", "export", bundle, "out=h.onnx"], tmp_path)
    why = "encoder_decoder models have two graphs, which musictx plays and does not export"
    assert line.endswith(f"h.safetensors: {why}: give a transformer")
    assert not (tmp_path / "h.onnx").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["out=x.mid"], r"^out=x\.mid: give a name that ends in \.onnx$"),
        (["out=x.onnx", "weights=int4"], "^weights=int4: give float32 or int8$"),
    ],
)
def test_other_words_are_refused_before_the_bundle_is_read(words, line):
    with pytest.raises(ConfigError, match=line):
        export(settings("export", "bundle=none", *words))


def test_a_file_that_is_there_stays(world, tmp_path):
    there = tmp_path / "x.onnx"
    shutil.copy(world.seed, there)
    with pytest.raises(UserError, match="exists already"):
        export(settings("export", f"bundle={world.bundle}", f"out={there}"))
    export(settings("export", f"bundle={world.bundle}", f"out={there}", "overwrite=true"))
    assert open_onnx(there).config.d_model == 16


@pytest.mark.skipif(not is_packaged("piano"), reason="built without the piano model")
def test_the_commands_and_the_python_of_the_page_run_as_they_stand(tmp_path, monkeypatch):
    text = (ROOT / "docs/train/export.md").read_text()
    commands = re.findall(r"^musictx (.*)$", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        ok(["musictx", *command.split()], tmp_path)
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["logits"].shape == (2, 489)
    assert found["rows"].runs[0][1].state["length"].tolist() == [11, 11]
    said = {
        name for names in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", names)
    }
    takes = {each.name for each in found["model"].inputs} | {"clock"}
    assert said == {name for name in takes if not re.search("_[1-9]", name)}
