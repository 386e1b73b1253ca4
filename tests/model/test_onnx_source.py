"""An encoder-decoder on ONNX Runtime: the logits of PyTorch, in blocks and steps, of several sources."""

from dataclasses import asdict, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from decoders import close
from hypothesis import given
from hypothesis import strategies as st
from small import untrained
from test_encoder_decoder import PAD, build
from test_source_models import CASES as OF_ALL_KINDS

from musictx.errors import BundleError, ConfigError
from musictx.generate.open_bundle import open_bundle
from musictx.model.build import describe_model
from musictx.model.bundle import save_bundle
from musictx.model.header import BundleHeader
from musictx.model.onnx import player as onnx_player
from musictx.model.onnx.player import open_source_player
from musictx.model.onnx.settings import can_play, can_play_source
from musictx.model.packaged import FOLDER, is_packaged, packaged_bundle
from musictx.model.position import FORMS
from musictx.music.grid import VOICES, score_to_grid
from musictx.music.read import read_midi
from musictx.tokenizers.chorale import ChoraleTokenizer

CHORDS: dict[str, Any] = {"source_voices": 4, "target_group": 4, "cycle": 20}
CASES: list[dict[str, Any]] = [*OF_ALL_KINDS]
CASES += [{"position": form, "value_residual": True, **CHORDS} for form in FORMS]  # the last is the harmoniser's shape
every = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
HARMONISER: dict[str, Any] = {"position": "relative_fourier", "mlp": "swiglu", "qk_norm": True, **CHORDS}


def small(case):
    return build(**case).float()


def header_of(model: Any, kind: str = "encoder_decoder") -> BundleHeader:
    return BundleHeader({"kind": kind, **asdict(model.config)}, "chorale", "0" * 16, "tunes", "MIT", None, "0")


def opened(model, folder, weights="float32"):
    save_bundle(folder / "model.safetensors", model, header_of(model))
    return open_source_player(folder / "model.safetensors", weights)


def drawn(*shape, seed=1):
    return np.random.default_rng(seed).integers(0, PAD, shape)


def sources(rows=4, n=24):
    """The second ends early, and the third is hidden."""
    found = drawn(rows, n, seed=2)
    found[1:2, n // 3 * 2 :] = PAD
    found[2:3] = PAD
    return found


@torch.inference_mode()
def full(model, source, ids):
    """Logits (B, T, V) of one pass through PyTorch."""
    return model(torch.from_numpy(source), torch.from_numpy(ids)).numpy()


@every
def test_blocks_and_steps_equal_one_full_pass_of_pytorch(case, tmp_path):
    model, source, ids = small(case), sources(), drawn(4, 30)
    player, expected = opened(model, tmp_path), full(model, source, ids)
    assert str(player) == describe_model(model).replace(", impl=auto", "")  # it has no choice of kernels
    steps = player.begin(source, 30)
    close(steps.prefill(ids[:, :11]), expected[:, 10])
    for t in range(11, 14):
        close(steps.step(ids[:, t]), expected[:, t])
    close(steps.prefill(ids[:, 14:25]), expected[:, 24])
    for t in range(25, 30):
        close(steps.step(ids[:, t]), expected[:, t])


SETTINGS = {
    "position": st.sampled_from([*FORMS]),
    "mlp": st.sampled_from(["gelu", "relu", "swiglu"]),
    "qk_norm": st.booleans(),
    "value_residual": st.booleans(),
    "n_layers": st.integers(1, 3),
    "n_encoder_layers": st.integers(1, 3),
    "n_heads": st.sampled_from([1, 2, 4]),
    "max_distance": st.integers(1, 40),
    "n_frequencies": st.integers(1, 3),
    "source_voices": st.integers(1, 4),
    "source_group": st.integers(1, 3),
    "target_group": st.integers(1, 4),
    "cycle": st.integers(1, 3),
}


@given(st.fixed_dictionaries(SETTINGS), st.integers(1, 3), st.integers(1, 9), st.integers(1, 30))
def test_any_settings_that_a_model_can_have(tmp_path_factory, settings, rows, s, t):
    if settings["cycle"] > 1:
        settings["cycle"] *= settings["source_group"] + settings["target_group"]
    model, ids = small(settings), drawn(rows, t + 1)
    source = sources(rows, s * settings["source_voices"])
    expected = full(model, source, ids)
    steps = opened(model, tmp_path_factory.mktemp("any")).begin(source, t + 1)
    close(steps.prefill(ids[:, :t]), expected[:, t - 1])
    close(steps.step(ids[:, t]), expected[:, t])


@every
def test_what_fills_up_a_source_is_not_seen(case, tmp_path):
    player, source, ids = opened(small(case), tmp_path), sources(2), drawn(2, 9)
    short = player.begin(source, 9).prefill(ids)
    longer = player.begin(np.pad(source, [(0, 0), (0, 12)], constant_values=PAD), 9).prefill(ids)
    close(longer, short)


@every
def test_rows_of_many_sources_go_on_as_they_would_alone(case, tmp_path):
    """`take` gives a state of its own, which `move` changes in place."""
    player, source, ids, of = opened(small(case), tmp_path), sources(), drawn(6, 20), np.array([3, 0, 0, 1, 2, 3])
    ids[:, :5] = ids[of, :5]
    begun = player.begin(source, 20)
    begun.prefill(drawn(6, 20)[:4, :5])
    taken, other = begun.take(of), begun.take(of)
    expected = full(small(case), source[of], ids)
    other.prefill(ids[::-1, 5:9])
    for t, end in ((5, 8), (8, 9), (9, 10)):
        close(taken.prefill(ids[:, t:end]), expected[:, end - 1])
    rows = np.array([5, 2, 2, 3, 4, 5])  # of the same source each
    taken.move(rows)
    ids[:, :10] = ids[rows, :10]
    expected = full(small(case), source[of], ids)
    for t in range(10, 20):
        close(taken.step(ids[:, t]), expected[:, t])


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_row_is_the_same_to_the_last_bit_whatever_others_there_are(weights, tmp_path):
    case = HARMONISER | {"d_model": 96, "d_ff": 160}
    player, source, ids = opened(small(case), tmp_path, weights), sources(2, 200), drawn(2, 30)
    found = []
    for of in ([0, 1], [0, 1, 0, 1], [0, 1] * 5):
        begun = player.begin(source, 30)
        begun.prefill(ids[:, :3])
        steps = begun.take(np.array(of))
        played = [steps.prefill(ids[of, 3:6]), *(steps.step(ids[of, t]) for t in range(6, 30))]
        found += [[each[row : row + 2] for each in played] for row in range(0, len(of), 2)]
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


@every
def test_weights_of_8_bits_are_nearly_those_of_training(case, tmp_path):
    torch.manual_seed(0)
    model, source, ids = untrained("encoder_decoder", pad=PAD, **case).eval(), sources(), drawn(4, 12)
    expected = full(model, source, ids)[:, -1]
    close(opened(model, tmp_path, "int8").begin(source, 12).prefill(ids), expected, 0.05 * np.abs(expected).max())


def test_no_more_tokens_than_learned_positions(tmp_path):
    player = opened(small({"position": "learned", "max_positions": 9, **CHORDS}), tmp_path)
    steps = player.begin(drawn(1, 36), 9)
    steps.prefill(drawn(1, 9))
    with pytest.raises(ConfigError, match="^max_positions=9: 10 tokens are more than this model has positions$"):
        steps.step(drawn(1))
    with pytest.raises(ConfigError, match="^max_positions=9: 10 tokens are more than this model has positions$"):
        player.begin(drawn(1, 40), 9)


def test_memory_that_does_not_suffice_is_one_kind_of_error(tmp_path, capfd):
    """Whatever ONNX Runtime calls it: attention in this source would take more than a processor can address."""
    sizes = {"d_model": 8, "n_heads": 8, "d_ff": 8, "n_layers": 1, "n_encoder_layers": 1}
    player = opened(small({"position": "none", **sizes}), tmp_path)
    with pytest.raises(MemoryError):
        player.begin(drawn(1, 2_200_000), 9)
    assert capfd.readouterr() == ("", "")


def test_what_can_be_played():
    known = header_of(small(HARMONISER))
    assert can_play_source(known)
    assert not can_play(known)
    kinds: list[Any] = ["recurrent", "transformer", "mine", []]
    for kind in kinds:
        assert not can_play_source(replace(known, model=known.model | {"kind": kind}))
    positions: list[Any] = ["mine.py:Mine", "fourier", []]
    for position in positions:
        assert not can_play_source(replace(known, model=known.model | {"position": position}))


LIES: dict[str, dict[str, Any]] = {
    "n_encoder_layers=100000": {"n_encoder_layers": 100_000},
    "encoder.2.*no such tensor|encoder.10.*no such tensor": {"n_encoder_layers": 50},
    r"chord.weight: its settings mean \[24, 72\], the file has \[24, 96\]": {"source_voices": 3},
    "source.beat.weight": {"target_group": 9},
    "cycle=7": {"cycle": 7},
    "paced": {"paced": True},
    "pad=99": {"pad": 99},
    "clock": {"clock": "time"},
    "position=mine": {"position": "mine"},
    "wings": {"wings": 2},
}


@pytest.mark.parametrize("line", LIES)
def test_a_lying_bundle_is_refused_in_a_line(line, tmp_path, monkeypatch):
    model = small(HARMONISER)
    monkeypatch.setattr(onnx_player, "start", lambda *_: pytest.fail("ONNX Runtime got the weights"))
    header = header_of(model)
    save_bundle(tmp_path / "x", model, replace(header, model=header.model | LIES[line]))
    with pytest.raises(BundleError, match=line) as caught:
        open_source_player(tmp_path / "x")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.skipif(not is_packaged("harmoniser"), reason="built without the harmoniser")
@pytest.mark.parametrize(("weights", "nats"), [("float32", 1e-5), ("int8", 0.003)])
def test_the_harmoniser_finds_the_voices_of_a_chorale_as_likely(weights, nats):
    """Two bars that it has not learned, in several keys, below the soprano, above the bass and between both."""
    model: Any
    model, tokenizer, _ = open_bundle(packaged_bundle("harmoniser"), continues=False)
    assert isinstance(tokenizer, ChoraleTokenizer)
    player, grid = (
        open_source_player(packaged_bundle("harmoniser"), weights),
        score_to_grid(read_midi(FOLDER / "chorale.mid")),
    )
    grid, means = -np.sort(-grid, axis=1), []
    for given_voices, higher in product(("S", "B", "SB"), (-2, 0, 2)):
        ids = tokenizer.encode_grid(grid + higher).astype(np.int64)
        free = np.tile([voice not in given_voices for voice in VOICES], len(grid))
        source, heard = np.where(free, tokenizer.vocab.pad, ids)[None], np.append(tokenizer.vocab.bos, ids)[None, :-1]
        expected = full(model, source, heard)[0, free]
        steps = player.begin(source, len(ids))
        got = np.concatenate([steps.step(heard[:, t]) for t in range(len(ids))])[free]
        means.append([nll(logits, ids[free]) for logits in (got, expected)])
    ours, theirs = np.mean(means, 0)
    assert abs(ours - theirs) < nats
    assert theirs < 0.5


def nll(logits, ids):
    """Mean nats a token, of logits (T, V)."""
    return torch.nn.functional.cross_entropy(torch.from_numpy(logits), torch.from_numpy(ids)).item()
