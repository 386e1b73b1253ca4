"""ONNX graphs of decoders: the logits of PyTorch, in blocks and steps, of several rows, with and without a window."""

import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from decoders import ALL, close, drawn, every, full, small
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from small import V, build, untrained

from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle
from musictx.model.onnx import rows as in_rows
from musictx.model.onnx import steps as in_steps
from musictx.model.onnx.file import open_onnx, write_onnx
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.packaged import is_packaged, packaged_bundle, seed_path
from musictx.model.position import FORMS, timed_forms
from musictx.music.read import read_bytes, read_tracks
from musictx.tokenizers import build_tokenizer

HEADER = {"licence": "MIT", "tokenizer": "performance", "corpus": "none", "notes": {}, "version": "0"}


def exported(model, folder, weights="float32"):
    path = folder / f"{weights}.onnx"
    tensors = {name: x.detach().numpy() for name, x in model.state_dict().items()}
    settings = {"kind": "transformer", **asdict(model.config)}
    write_onnx(path, model.config, HEADER | {"model": settings}, tensors, weights)
    return open_onnx(path)


@pytest.fixture
def few_slots(monkeypatch):
    """So that short music grows the cache, fills blocks and goes round the ring."""
    monkeypatch.setattr(in_rows, "SLOTS", 4)
    monkeypatch.setattr(in_steps, "BLOCK", 5)
    monkeypatch.setattr(in_steps, "SHORT", 4)


@every
def test_blocks_and_steps_equal_one_full_pass(case, tmp_path, few_slots):
    model, ids = small(case), drawn(2, 33)
    expected, rows = full(model, ids), OnnxSteps(exported(model, tmp_path), 2)
    close(rows.prefill(ids[:, :23]), expected[:, 22])
    for t in range(23, 33):
        close(rows.step(ids[:, t]), expected[:, t])


BROAD: dict[str, Any] = {"d_model": 96, "n_heads": 2, "d_ff": 160}
SETTINGS = {
    "position": st.sampled_from([*FORMS]),
    "clock": st.sampled_from(["index", "time"]),
    "mlp": st.sampled_from(["gelu", "relu", "swiglu"]),
    "norm": st.sampled_from(["pre", "post"]),
    "keyboard": st.sampled_from(["none", "head"]),
    "qk_norm": st.booleans(),
    "value_residual": st.booleans(),
    "n_layers": st.integers(1, 3),
    "n_heads": st.sampled_from([1, 2, 4]),
    "max_distance": st.integers(1, 40),
    "n_frequencies": st.integers(1, 3),
    "conv": st.integers(1, 5),
    "cycle": st.integers(1, 3),
}


@given(st.fixed_dictionaries(SETTINGS), st.integers(1, 3), st.integers(1, 30))
def test_any_settings_that_a_model_can_have(tmp_path_factory, settings, rows, t):
    if settings["position"] not in timed_forms():
        settings["clock"] = "index"
    model, ids = small(settings), drawn(rows, t + 1)
    state = OnnxSteps(exported(model, tmp_path_factory.mktemp("any")), rows)
    first, then, expected = state.prefill(ids[:, :t]), state.step(ids[:, t]), full(model, ids)
    close(first, expected[:, t - 1])
    close(then, expected[:, t])


@every
def test_weights_of_8_bits_are_nearly_those_of_training(case, tmp_path):
    model, ids = untrained(**case).eval(), drawn(2, 12)
    expected = full(model, ids)[:, -1]
    close(OnnxSteps(exported(model, tmp_path, "int8"), 2).prefill(ids), expected, 0.05 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["relative_fourier", "rope", "sinusoidal", "relative", "none"])
def test_after_millions_of_tokens_a_step_is_as_exact(form, tmp_path):
    model, ids, late = small({"position": form, "n_layers": 1}), drawn(1, 9), 3_000_000
    rows, state = OnnxSteps(exported(model, tmp_path), 1, 8), model.init_state(1, 8, rolling=True)
    rows.runs[0][1].state["length"][:] = state.length = late
    with torch.inference_mode():
        for t in range(9):
            close(rows.step(ids[:, t]), model.step(torch.from_numpy(ids[:, t]), state).numpy())


@every
def test_another_runtime_gives_the_same(case, tmp_path):
    """ONNX's own, in numpy: the graph keeps to the standard."""
    model, ids = small(case), drawn(2, 9)
    opened = exported(model, tmp_path)
    other = ReferenceEvaluator(str(tmp_path / "float32.onnx"))
    rows = OnnxSteps(opened._replace(session=other), 2)
    expected = full(model, ids)
    close(rows.prefill(ids[:, :8]), expected[:, 7])
    close(rows.step(ids[:, 8]), expected[:, 8])


@every
@pytest.mark.parametrize("window", [1, 7, 8])
def test_a_window_rolls_as_in_pytorch(case, window, tmp_path, few_slots):
    model, ids = small(case), drawn(2, 41)
    rows, state = OnnxSteps(exported(model, tmp_path), 2, window), model.init_state(2, window, rolling=True)
    with torch.inference_mode():
        for t in range(25):  # its blocks show their first tokens less than a window
            expected = model.step(torch.from_numpy(ids[:, t]), state)
        close(rows.prefill(ids[:, :25]), expected.numpy())
        for t in range(25, 41):
            close(rows.step(ids[:, t]), model.step(torch.from_numpy(ids[:, t]), state).numpy())
    assert rows.runs[0][1].state["keys_0"].shape[-1] == -(-window // 4) * 4


@every
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_later_id_changes_nothing_before_it(case, weights, tmp_path):
    model, one = exported(small(case), tmp_path, weights), drawn(1, 12)
    for at in (1, 7, 11):
        other = one.copy()
        other[0, at:] = (other[0, at:] + 1) % V
        states = [OnnxSteps(model) for _ in range(2)]
        for state, ids in zip(states, (one, other), strict=True):
            state.prefill(ids)
        for name, axis in (("keys", -1), ("values", -2)):
            mine, theirs = (
                np.stack([np.moveaxis(x, axis, 0) for key, x in each.runs[0][1].state.items() if name in key], 1)
                for each in states
            )
            np.testing.assert_array_equal(mine[:at], theirs[:at])
            assert not np.array_equal(mine[at], theirs[at])


LENGTHS, OF_ROW = (3, 14, 11, 1), (1, 0, 2, 1, 0, 3, 1)  # two of them are long


def begun(model, window, lengths=LENGTHS):
    """A part after each prompt."""
    parts = [OnnxSteps(model, 1, window) for _ in lengths]
    for n, part in zip(lengths, parts, strict=True):
        part.prefill(np.random.default_rng(2).integers(0, V, (1, max(lengths)))[:, -n:])
    return parts


@every
@pytest.mark.parametrize("window", [None, 6, 14])
def test_rows_of_any_prompt_continue_as_they_would_alone(case, window, tmp_path, few_slots):
    model, then = exported(small(case), tmp_path), drawn(7, 20)
    alone = [begun(model, window)[of] for of in OF_ROW]
    joined = OnnxSteps.join(begun(model, window), OF_ROW)

    def expected(t, rows=range(7)):
        return np.concatenate([alone[row].step(then[row : row + 1, t]) for row in rows])

    for t in range(9):
        close(joined.step(then[:, t]), expected(t))
    some = np.array([6, 2, 2, 5, 0, 4])
    taken, others = joined.take(some), joined.take(np.arange(7))
    close(taken.step(then[some, 9]), others.step(then[:, 9])[some])
    close(joined.step(then[:, 9]), expected(9))  # taken has a state of its own
    rows = np.array([3, 4, 2, 3, 4, 5, 6])
    joined.move(rows)
    then[:] = then[rows]
    after = dict(zip((2, 3, 4, 5, 6), expected(10, (2, 3, 4, 5, 6)), strict=True))
    close(joined.step(then[:, 10]), [after[row] for row in rows])
    for t in range(11, 20):
        after = dict(zip((2, 3, 4, 5, 6), expected(t, (2, 3, 4, 5, 6)), strict=True))
        close(joined.step(then[:, t]), [after[row] for row in rows])


@every
def test_a_row_after_a_prompt_reads_on_in_blocks(case, tmp_path, few_slots):
    model, then = exported(small(case), tmp_path), drawn(1, 24)
    for window in (None, 6):
        joined, alone = OnnxSteps.join(begun(model, window, [9]), [0]), OnnxSteps(model, 1, window)
        alone.prefill(np.random.default_rng(2).integers(0, V, (1, 9)))
        for start, end in ((0, 3), (3, 14), (14, 15), (15, 24)):
            close(joined.prefill(then[:, start:end]), alone.prefill(then[:, start:end]))


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("lengths", [(200, 17), (300, 100), (17, 50)])
def test_a_row_is_the_same_to_the_last_bit_whatever_others_there_are(weights, lengths, tmp_path):
    model, then = exported(build(**BROAD).float(), tmp_path, weights), drawn(2, 140)
    found: list[list[Any]] = [[], []]
    for of_row in ([0], [1], [0, 1], [1, 0, 1, 0], [0] * 5 + [1] * 4):
        rows = OnnxSteps.join(begun(model, None, lengths), of_row)
        played = np.stack([rows.step(then[of_row, t]) for t in range(140)], 1)
        for of, row in zip(of_row, played, strict=True):
            found[of].append(row)
    for each in found:
        for row in each[1:]:
            np.testing.assert_array_equal(row, each[0])


def test_a_prompt_is_in_memory_once(tmp_path):
    parts = begun(exported(small(ALL), tmp_path), None, (300, 17))
    rows = OnnxSteps.join(parts, [0, 1] * 4)
    ((at, run),) = rows.runs
    assert sorted(at) == list(range(8))
    prompt = parts[0].runs[0][1].state
    for layer in range(2):
        for name in (f"keys_{layer}", f"values_{layer}"):
            assert np.shares_memory(run.shared_feed[f"shared_{name}"], prompt[name])
    rows.step(drawn(8))
    assert run.state["keys_0"].shape[-1] == in_rows.SLOTS


def test_no_more_tokens_than_learned_positions(tmp_path):
    model = exported(small({"position": "learned", "max_positions": 9}), tmp_path)
    state = OnnxSteps(model)
    state.prefill(drawn(1, 9))
    with pytest.raises(ConfigError, match="^max_positions=9: 10 tokens are more than this model has positions$"):
        state.step(drawn(1))


@pytest.mark.skipif(not is_packaged("piano"), reason="built without the piano model")
@pytest.mark.parametrize(("weights", "within", "nats"), [("float32", 1e-4, 1e-5), ("int8", 1.0, 0.02)])
def test_the_piano_plays_on_from_a_real_file(weights, within, nats, tmp_path):
    model: Any
    model, header = load_bundle(packaged_bundle("piano"))
    path = seed_path("elise")
    score = read_tracks(read_bytes(path), path).merge()
    ids = build_tokenizer("performance", "", header.added).encode(score)[None].astype(np.int64)
    steps, dice, t = OnnxSteps(exported(model, tmp_path, weights)), np.random.default_rng(0), ids.shape[1]
    state = model.init_state(1, t + 200)
    got = [steps.prefill(ids)]
    with torch.inference_mode():
        expected = [model.prefill(torch.from_numpy(ids), state).numpy()]
        for _ in range(200):
            shares = np.exp(got[-1][0] - got[-1].max())
            ids = np.append(ids, [[dice.choice(len(shares), p=shares / shares.sum())]], 1)
            got.append(steps.step(ids[:, -1]))
            expected.append(model.step(torch.from_numpy(ids[:, -1]), state).numpy())
    close(got, expected, within)
    means = [nll(np.concatenate(each[:-1]), ids[0, t:]) for each in (got, expected)]
    assert abs(means[0] - means[1]) < nats


def nll(logits, ids):
    """Mean nats a token, of logits (T, V)."""
    return torch.nn.functional.cross_entropy(torch.from_numpy(logits), torch.from_numpy(ids)).item()


def test_it_plays_without_pytorch(tmp_path):
    exported(small(ALL), tmp_path)
    code = (
        "import sys; from pathlib import Path; import numpy as np; from musictx.model.onnx.file import open_onnx;"
        "from musictx.model.onnx.steps import OnnxSteps; model = open_onnx(Path(sys.argv[1]));"
        "print(OnnxSteps(model).prefill(np.ones((1, 3), int)).shape, model.weights, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "float32.onnx"], capture_output=True, text=True)
    assert done.stdout == f"(1, {V}) float32 False\n", done.stderr
