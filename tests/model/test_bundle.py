import json
import string
import struct
import subprocess
import sys
import zipfile
from dataclasses import asdict, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from musictx.errors import BundleError, ConfigError
from musictx.model import build as build_module
from musictx.model import bundle
from musictx.model.build import KINDS, build_model, model_config
from musictx.model.bundle import add_notes, load_bundle, save_bundle, write_header
from musictx.model.header import KEY, BundleHeader, read_header
from musictx.model.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(vocab_size=11, d_model=16, n_layers=1, n_heads=2, d_ff=16, max_distance=4)
KNOWN = "chorale", "0" * 16, "tunes", "public domain", 0.5, "0.1.0"
TASK = {"name": "infill", "settings": {"share": 0.5}, "added": [["TO", 0, 0]]}
HEADER = BundleHeader(asdict(CONFIG), *KNOWN, notes={"seed": 3}, objective=TASK)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


@pytest.fixture
def path(tmp_path, model):
    save_bundle(tmp_path / "model.safetensors", model, HEADER)
    return tmp_path / "model.safetensors"


def test_what_was_saved_is_loaded_bit_for_bit(path, model):
    bundle = load_bundle(path)
    assert bundle.header == HEADER == read_header(path)
    assert not bundle.model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(bundle.model.state_dict()[name], tensor)
    ids = torch.arange(11)[None]
    assert torch.equal(bundle.model(ids), model(ids))
    assert [p.name for p in path.parent.iterdir()] == ["model.safetensors"]


def test_a_bundle_of_16_bits_is_half_as_large_and_read_back_as_float32(path, model, tmp_path):
    save_bundle(tmp_path / "half.safetensors", model, HEADER, torch.float16)
    half = load_bundle(tmp_path / "half.safetensors").model
    for name, tensor in model.state_dict().items():
        assert half.state_dict()[name].dtype == torch.float32
        torch.testing.assert_close(half.state_dict()[name], tensor, rtol=1e-3, atol=1e-6)
    assert (tmp_path / "half.safetensors").stat().st_size < 0.7 * path.stat().st_size


def test_another_implementation_may_be_named_since_weights_are_shared(path, model):
    named = load_bundle(path, attention="reference").model
    assert isinstance(named, Transformer)
    assert named.config.attention == "reference"
    ids = torch.arange(11)[None]
    torch.testing.assert_close(named(ids), model(ids))
    with pytest.raises(ConfigError, match="^attention=magic: "):
        load_bundle(path, attention="magic")


def rewrite(path, **changes):
    """The same weights under a changed header."""
    tensors = load_bundle(path).model.state_dict()
    header = asdict(read_header(path)) | changes
    save_file(tensors, path, {"musictx": json.dumps(header)})


def refused(path, text=None):
    """Refused in one line."""
    with pytest.raises(BundleError, match=text) as caught:
        load_bundle(path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("keep", [0, 100, -1])
def test_a_truncated_file(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "damaged or not")


def test_no_file_and_files_of_another_kind(tmp_path):
    path = tmp_path / "model.ckpt"
    refused(path, "model.ckpt: no such bundle: `musictx train` writes one")
    path.write_bytes(struct.pack("<Q", 5) + b"hello, this is no safetensors file")
    refused(path, "damaged or not")
    save_file({"x": torch.zeros(1)}, path)
    refused(path, "not a musictx bundle")


ODD_OBJECTIVES = ["infill", {"added": [["TO", 0]]}, {"added": 3}, {"name": 5}, {"name": None}, {"name": ["infill"]}]
ODD_SAMPLERS = [{"top_p": 2}, {"min_p": "much"}, {"temperature": 0.9}, ["top_p"], 0.9]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": 2}, "bundle format 2, .* up to 1"),
        ({"wings": 2}, "header is damaged"),
        *(({"objective": odd}, "header is damaged") for odd in ODD_OBJECTIVES),
        *(({"notes": {"sampler": odd}}, "header is damaged") for odd in ODD_SAMPLERS),
        ({"notes": {"seed_guidance": 10**400}}, "header is damaged"),  # beyond all numbers
        ({"model": {"vocab_size": 11, "d_model": -3}}, r"its model config is damaged \(d_model=-3:"),
        (
            {"model": asdict(replace(CONFIG, d_ff=32))},
            r"damaged \(blocks.0.down.* mean \[16, 32\], the file has \[16, 16\]\)",
        ),
    ],
)
def test_a_header_that_makes_no_sense(path, changes, text):
    rewrite(path, **changes)
    refused(path, text)


@given(st.text(string.ascii_lowercase, min_size=1).filter(lambda kind: kind not in KINDS))
@example("vit")  # kinds that an earlier musictx had
@example("encoder")
@example("recurrent_encoder_decoder")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_kind_that_is_not_here_is_refused_with_what_to_do(path, kind):
    header = read_header(path)
    write_header(path, replace(header, model=header.model | {"kind": kind}))
    refused(
        path, f"has kind={kind}, which is not in musictx: run the script .*, or use the older musictx that made it$"
    )


@given(st.text(string.ascii_lowercase, min_size=1, max_size=40).filter(lambda x: x not in {"kind", *asdict(CONFIG)}))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_setting_that_is_not_here_is_refused_with_what_to_do(path, name):
    header = read_header(path)
    write_header(path, replace(header, model=asdict(CONFIG) | {name: 3}))
    refused(path, f"kind=transformer has no {name}=3 in musictx: use the older musictx that made it$")


def test_an_lstm_of_an_older_musictx_is_read_unless_it_is_more_than_that(path):
    model, header = build_model(model_config("recurrent", {"vocab_size": 11, "d_model": 8})), read_header(path)
    shape = {"kind": "recurrent", **asdict(model.config), "cell": "lstm", "additive": False}
    save_bundle(path, model, replace(header, model=shape))
    ids = torch.arange(11)[None]
    torch.testing.assert_close(load_bundle(path).model(ids), model.eval()(ids))
    for changes, text in (({"cell": "rnn"}, "cell=rnn"), ({"additive": True}, "additive=True")):
        write_header(path, replace(header, model=shape | changes))
        refused(path, f"kind=recurrent has no {text} in musictx: use the older musictx that made it$")


def test_a_header_says_how_its_model_plays_best(path):
    assert read_header(path).sampling == {"seed_guidance": None}
    add_notes(path, sampler={"top_p": None, "min_p": 0.02}, seed_guidance=2)
    assert read_header(path).sampling == {"top_p": None, "min_p": 0.02, "seed_guidance": 2.0}


@pytest.mark.parametrize(
    "claims",
    [
        *({"n_layers": 100_000}, {"n_layers": 50}, {"d_model": 2**20, "n_heads": 2**10}, {"d_ff": 10**12}),
        *({"d_ff": 16.0}, {"vocab_size": 2**20}, {"trained_length": 10**12}, {"n_heads": True}, {"position": []}),
        {"max_positions": 2**40, "position": "learned"},
    ],
)
def test_what_a_bundle_claims_takes_no_memory_before_its_tensors_are_seen(path, claims, monkeypatch):
    def build(config):
        assert torch.empty(0).device.type == "meta", "only shapes"
        return build_model(config)

    rewrite(path, model=asdict(CONFIG) | claims)
    for module in (build_module, bundle):
        monkeypatch.setattr(module, "build_model", build)
    refused(path, "damaged")


SHAPES = """
import sys
from musictx.model.build import KINDS, meta_model, model_config
from musictx.model.position import FORMS

for kind, more in [(kind, {}) for kind in KINDS] + [("transformer", {"position": form}) for form in FORMS]:
    model = meta_model(model_config(kind, {"vocab_size": 9, "d_model": 64, **more}))
    assert not {"sympy", "torch._dynamo"} & set(sys.modules), (kind, more)
"""


def test_tensors_that_do_not_fit_are_not_read(path, monkeypatch):
    tensors, header = bundle._tensors(path), read_header(path)
    tensors["embed.weight"] = torch.zeros(10_000, 16)
    save_file(tensors, path, {KEY: header.to_json()})
    monkeypatch.setattr(bundle, "_tensors", lambda path: pytest.fail("a stranger's tensors take memory"))
    with pytest.raises(BundleError, match=r"embed.weight: .* \[11, 16\], .* \[10000, 16\]"):
        load_bundle(path)


def test_shapes_of_no_kind_of_model_import_the_compiler():
    subprocess.run([sys.executable, "-c", SHAPES], check=True)  # it would take more than a second of each start


@pytest.mark.parametrize("name", [field.name for field in fields(BundleHeader)])
def test_a_header_of_other_types_is_a_line(path, model, name):
    values: list[Any] = [[], "x", None, 3, {"a": 1}, True]
    for value in values:
        right = type(value) is type(getattr(HEADER, name)) or (name == "val_nll" and value in (None, 3))
        header = json.dumps(asdict(HEADER) | {name: value})
        save_file(model.state_dict(), path, {"musictx": header})
        if not right:
            refused(path)


def test_a_deep_header_is_a_line(path, model):
    save_file(model.state_dict(), path, {"musictx": '{"a":' * 100_000})
    refused(path, "header is damaged")


def checkpoint(folder, content) -> Path:
    torch.save(content, folder / "last.ckpt")
    return Path(folder / "last.ckpt")


@pytest.mark.parametrize(
    "content",
    [
        *([1, 2], {}, {"musictx": 3}, {"state_dict": None}, {"state_dict": {1: torch.zeros(1)}}),
        {"state_dict": {"model.embed.weight": "x"}},
    ],
)
def test_a_checkpoint_with_odd_keys_is_a_line(tmp_path, content):
    refused(checkpoint(tmp_path, {"musictx": HEADER.to_json(), **content} if "state_dict" in content else content))


@pytest.mark.parametrize("pickled", [b"\x80\x02(.", b"", b"\x80\x02]]\x86a."])
def test_a_checkpoint_whose_pickle_is_broken_is_a_line(tmp_path, pickled):
    with zipfile.ZipFile(tmp_path / "a.ckpt", "w") as file:
        file.writestr("archive/data.pkl", pickled)
        file.writestr("archive/version", "3")
    refused(tmp_path / "a.ckpt", r"a\.ckpt")


def test_a_checkpoint_whose_tensors_are_one_number_each_is_a_line(tmp_path, model):
    """Small as a file, gigabytes when they are read."""
    state = {name: x.flatten()[:1].clone().squeeze().expand(x.shape) for name, x in model.state_dict().items()}
    refused(checkpoint(tmp_path, {"musictx": HEADER.to_json(), "state_dict": state}), "its tensors mean")


def test_a_checkpoint_that_could_run_code_is_not_opened_and_nothing_advises_to(tmp_path):
    with pytest.raises(BundleError, match=r"last\.ckpt .*code") as caught:
        read_header(checkpoint(tmp_path, {"musictx": PurePosixPath("x")}))
    assert "weights_only" not in str(caught.value)


def test_a_checkpoint_of_which_one_bit_has_changed_is_not_loaded(tmp_path, model):
    state = {f"model.{name}": x for name, x in model.state_dict().items()}
    load_bundle(path := checkpoint(tmp_path, {"musictx": HEADER.to_json(), "state_dict": state}))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refused(path, "weights are damaged")


def test_a_packed_checkpoint_is_not_unpacked(tmp_path):
    path = checkpoint(tmp_path, {"musictx": "x" * 10_000})
    with zipfile.ZipFile(path) as plain, zipfile.ZipFile(tmp_path / "b.ckpt", "w", 8) as packed:
        for entry in plain.infolist():
            packed.writestr(entry.filename, plain.read(entry))
    refused(tmp_path / "b.ckpt", "it is packed")


def test_a_strangers_words_are_one_line_of_limited_length(tmp_path, model):
    corpus = "Bach\nerror: all is lost \u202e" + "x" * 10**6
    save_bundle(tmp_path / "a.safetensors", model, replace(HEADER, corpus=corpus))
    said = read_header(tmp_path / "a.safetensors").corpus
    assert said.startswith(r"Bach\nerror: all is lost \u202ex")
    assert len(said) == 2000
