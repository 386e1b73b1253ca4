"""A bundle played by ONNX Runtime: its logits are PyTorch's; a damaged one is refused before memory is taken."""

import re
import struct
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from decoders import ALL, close, drawn, every, full, small
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save
from small import V, build

from musictx.errors import BundleError, ConfigError
from musictx.model.build import describe_model
from musictx.model.bundle import save_bundle
from musictx.model.header import BundleHeader
from musictx.model.onnx import player as onnx_player
from musictx.model.onnx.player import open_player
from musictx.model.onnx.settings import can_play
from musictx.model.packaged import BUNDLES, is_packaged, packaged_bundle


def header_of(model: Any, kind: str = "transformer") -> BundleHeader:
    return BundleHeader({"kind": kind, **asdict(model.config)}, "chorale", "0" * 16, "tunes", "MIT", None, "0")


def saved(model, folder, dtype=None) -> Path:
    save_bundle(folder / "model.safetensors", model, header_of(model), dtype)
    return Path(folder / "model.safetensors")


@every
def test_its_logits_are_those_of_pytorch(case, tmp_path):
    model, ids = small(case), drawn(1, 14)
    player, expected = open_player(saved(model, tmp_path)), full(model, ids)
    assert (player.window, player.cycle) == (model.window, model.cycle)
    assert str(player) == describe_model(model).replace(", impl=auto", "")  # it has no choice of kernels
    steps = player.begin(14)
    close(steps.prefill(ids[:, :9]), expected[:, 8])
    for t in range(9, 14):
        close(steps.step(ids[:, t]), expected[:, t])


@every
def test_a_run_that_goes_past_its_window_is_that_of_pytorch(case, tmp_path):
    model, ids = small(case), drawn(1, 30)
    steps, state = open_player(saved(model, tmp_path)).begin(5, rolling=True), model.init_state(1, 5, rolling=True)
    with torch.inference_mode():
        close(steps.prefill(ids[:, :4]), model.prefill(torch.from_numpy(ids[:, :4]), state).numpy())
        for t in range(4, 30):
            close(steps.step(ids[:, t]), model.step(torch.from_numpy(ids[:, t]), state).numpy())


@pytest.mark.parametrize("rolling", [False, True])
def test_rows_go_on_from_their_parts_whatever_these_have_seen(rolling, tmp_path):
    player, then = open_player(saved(small(ALL), tmp_path)), drawn(4, 9)
    of_row, seen = [2, 0, 2, 1], [1, 7, 12]

    def begun(n):
        steps = player.begin(8 if rolling else 30, rolling)
        steps.prefill(drawn(1, 12)[:, :n])
        return steps

    parts = [begun(n) for n in seen]
    joined, alone = player.join(parts, of_row), [begun(seen[of]) for of in of_row]
    for t in range(9):
        expected = [steps.step(then[row : row + 1, t]) for row, steps in enumerate(alone)]
        close(joined.step(then[:, t]), np.concatenate(expected))
    for part, n in zip(parts, seen, strict=True):  # each part is as it was
        close(part.step(then[0, :1]), begun(n).step(then[0, :1]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_weights_of_any_number_of_bits_are_played(dtype, weights, tmp_path):
    model, ids = small(ALL).to(dtype).float(), drawn(1, 9)
    steps, expected = open_player(saved(model, tmp_path, dtype), weights).begin(9), full(model, ids)[:, -1]
    close(steps.prefill(ids), expected, 1e-4 if weights == "float32" else 0.2 * np.abs(expected).max())


def test_a_checkpoint_is_played_too(tmp_path):
    model, ids = small(ALL), drawn(1, 9)
    state = {f"model.{name}": x for name, x in model.state_dict().items()}
    torch.save({"musictx": header_of(model).to_json(), "state_dict": state}, tmp_path / "last.ckpt")
    close(open_player(tmp_path / "last.ckpt").begin(9).prefill(ids), full(model, ids)[:, -1])


def test_settings_that_an_older_bundle_lacks_have_their_defaults(tmp_path):
    model = small({"conv": 1, "keyboard": "none", "norm": "pre"})
    header = header_of(model)
    old = {name: x for name, x in header.model.items() if name not in ("conv", "keyboard", "norm")}
    save_bundle(tmp_path / "old", model, replace(header, model=old))
    close(open_player(tmp_path / "old").begin(9).prefill(drawn(1, 9)), full(model, drawn(1, 9))[:, -1])


def test_what_can_be_played():
    known = header_of(small({}))
    assert can_play(known)
    assert can_play(replace(known, model={"vocab_size": 9}))
    kinds: list[Any] = ["recurrent", "encoder_decoder", "mine", []]
    for kind in kinds:
        assert not can_play(replace(known, model=known.model | {"kind": kind}))
    for position in (*kinds, "fourier"):
        assert not can_play(replace(known, model=known.model | {"position": position}))


@pytest.mark.parametrize("name", ["blocks.0.up.weight", "blocks.1.qkv.bias", "norm.weight"])
@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_weight_that_is_no_number_is_found(name, odd, tmp_path):
    """In the logits, or at once where 8 bits would hide it."""
    model = small({})
    model.state_dict()[name].view(-1)[0] = float(odd)
    path = saved(model, tmp_path)
    assert not np.isfinite(open_player(path).begin(3).prefill(drawn(1, 3))).all()
    with pytest.raises(BundleError, match=f"its weights are damaged .{name} has NaN or infinity"):
        open_player(path, "int8")


def changed(path, settings=None, tensors=None):
    """The bundle under other settings, with other tensors."""
    model = small(ALL)
    header = header_of(model)
    header = replace(header, model=header.model | (settings or {}))
    path.write_bytes(save(model.state_dict() | (tensors or {}), {"musictx": header.to_json()}))
    return path


LIES: dict[str, dict[str, Any]] = {
    "n_layers=100000": {"settings": {"n_layers": 100_000}},
    "blocks.10.*no such tensor": {"settings": {"n_layers": 50}},
    "d_ff=1000000000000": {"settings": {"d_ff": 10**12}},
    "d_ff=48.0": {"settings": {"d_ff": 48.0}},
    r"blocks.0.down.weight: its settings mean \[24, 1048576\], the file has \[24, 48\]": {"settings": {"d_ff": 2**20}},
    "n_heads=true": {"settings": {"n_heads": True}},
    "position=mine": {"settings": {"position": "mine"}},
    "model config is damaged": {"settings": {"position": []}},
    "model config is damaged .*wings": {"settings": {"wings": 2}},
    "trained_length": {"settings": {"trained_length": 10**12}},
    "qk_norm=1": {"settings": {"qk_norm": 1}},
    "clock=time with position=learned": {"settings": {"position": "learned", "clock": "time"}},
    r"embed.weight: .* \[23, 24\], the file has \[99999, 24\]": {"tensors": {"embed.weight": torch.zeros(99_999, 24)}},
    "more: its settings mean no such tensor": {"tensors": {"more": torch.zeros(1)}},
    "keyboard.key names keys that no piano has": {"tensors": {"keyboard.key": torch.full((V,), 128)}},
    "embed.weight is F8_E4M3": {"tensors": {"embed.weight": torch.zeros(V, 24, dtype=torch.float8_e4m3fn)}},
}


@pytest.mark.parametrize("line", LIES)
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_lying_bundle_is_refused_in_a_line(line, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_player, "start", lambda *_: pytest.fail("ONNX Runtime got the weights"))
    if "its settings mean" in line:
        monkeypatch.setattr(onnx_player, "numbers", lambda *_: pytest.fail("a stranger's tensors take memory"))
    with pytest.raises(BundleError, match=line) as caught:
        open_player(changed(tmp_path / "model.safetensors", **LIES[line]), weights)
    assert len(str(caught.value).splitlines()) == 1


@given(st.data())
def test_a_bundle_that_is_cut_or_damaged_anywhere_opens_or_is_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(changed(folder / "whole").read_bytes())
    header = 8 + struct.unpack("<Q", content[:8])[0]
    at = data.draw(st.integers(0, len(content) - 1) | st.integers(0, header))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content[at] ^= data.draw(st.integers(1, 255))
    (folder / "x").write_bytes(content)
    try:
        player = open_player(folder / "x")
    except BundleError as error:
        line = str(error)
        assert len(line.splitlines()) == 1
    else:
        assert player.begin(1).step(np.ones(1, np.int64)).shape == (1, V)


def test_unknown_weights_and_missing_files_are_a_line(tmp_path):
    path = saved(build(), tmp_path)
    with pytest.raises(ConfigError, match="^weights=bfloat16: give one of float32, int8$"):
        open_player(path, "bfloat16")
    with pytest.raises(BundleError, match=f"^{re.escape(str(tmp_path))}/none: no such bundle"):
        open_player(tmp_path / "none")


@pytest.mark.parametrize("name", [name for name in BUNDLES if is_packaged(name)])
def test_a_packaged_decoder_opens_and_plays_without_pytorch(name):
    code = (
        "import sys; from pathlib import Path; import numpy as np; from musictx.model.header import read_header;"
        "from musictx.model.onnx.player import open_player; from musictx.model.onnx.settings import can_play;"
        "path = Path(sys.argv[1]); player = open_player(path, 'int8') if can_play(read_header(path)) else None;"
        "rows = player and player.join([player.begin(9)], [0, 0]);"
        "print(player and rows.step(np.zeros(2, int)).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, packaged_bundle(name)], capture_output=True, text=True)
    shape = {"piano": (2, 489), "chorale": (2, 190), "score": (2, 899), "harmoniser": None}[name]
    assert done.stdout == f"{shape} False\n", done.stderr
