"""What a model hears in passages, and how far two sets of passages are apart."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from musictx.analysis.embedding import MOST_IDS, Embedder, batches, passages
from musictx.analysis.frechet import Frechet, compare_passages, frechet
from musictx.errors import ConfigError
from musictx.generate.open_bundle import open_bundle
from musictx.model.build import build_model, model_config
from musictx.model.packaged import bundle_path
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer


def tune(seed, notes=24, step_s=0.25):
    pitch = np.random.default_rng(seed).integers(55, 80, notes)
    onset_s = np.arange(notes) * step_s
    return Score(onset_s, onset_s + step_s, pitch, np.full(notes, 80))


@pytest.fixture(scope="module")
def piano():
    opened = open_bundle(bundle_path("piano"))
    return Embedder(opened.model, opened.tokenizer)


def test_passages_begin_on_quarters_and_have_four_notes():
    score = Score.merge([tune(0, 12), tune(1, 3)], 0.5)  # three seconds
    found = list(passages(score, 2.0, 0.7))
    assert [passage.from_s for passage in found] == [0.0, 0.5]
    assert [len(passage.score) for passage in found] == [11, 9]
    (short,) = passages(tune(0, 4), 10.0, 5.0)
    assert len(short.score) == 4
    assert list(passages(tune(0, 3), 10.0, 5.0)) == []


@given(st.lists(st.integers(1, 9000), max_size=40))
def test_a_batch_has_a_bounded_number_of_ids_or_one_passage(lengths):
    found = batches(lengths)
    assert sorted(n for batch in found for n in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * lengths[batch[0]] <= MOST_IDS for batch in found)
    assert [lengths[n] for batch in found for n in batch] == sorted(lengths, reverse=True)
    assert len(batches([500] * 16)) == 2  # as few as they can be


def test_passages_to_hear_are_spread_over_the_music(piano):
    score = tune(0, 80)  # twenty seconds
    assert [each.from_s for each in piano.passages(score, 4.0, 3)] == [0.0, 8.0, 16.0]
    assert len(piano.passages(score, 4.0)) == 9
    assert piano.passages(tune(0, 3), 4.0) == []
    opened = open_bundle(bundle_path("chorale"))
    five = Score(np.zeros(5), np.ones(5), np.arange(60, 65), np.full(5, 80))  # more than its encoding can write
    assert Embedder(opened.model, opened.tokenizer).passages(five, 4.0) == []


def test_a_passage_is_heard_the_same_whatever_is_beside_it(piano):
    tunes = [tune(0), tune(1, 40), tune(2, 9)]
    together = piano.vectors(tunes)
    assert together.shape == (3, 384)
    for score, vector in zip(tunes, together, strict=True):
        np.testing.assert_allclose(piano.vectors([score])[0], vector, atol=2e-5)


def test_the_piano_finds_tunes_again_in_other_keys_and_tempi(piano):
    tunes = [tune(seed) for seed in range(12)]
    moved = [score.transpose(4 - seed % 8).stretch(1.1) for seed, score in enumerate(tunes)]
    own, other = piano.vectors(tunes), piano.vectors(moved)
    mean, scale = own.mean(0), own.std(0)
    a, b = ((x - mean) / scale for x in (own, other))
    likeness = (b / np.linalg.norm(b, axis=1)[:, None]) @ (a / np.linalg.norm(a, axis=1)[:, None]).T
    assert likeness.argmax(1).tolist() == list(range(12))


def test_the_layer_is_the_stream_before_a_block():
    tokenizer = build_tokenizer("performance")
    sizes = {"vocab_size": tokenizer.vocab.size, "d_model": 16, "n_layers": 3, "n_heads": 2, "d_ff": 32}
    model: Any = build_model(model_config("transformer", sizes)).eval()
    ids = torch.as_tensor(tokenizer.encode(tune(0)).astype(np.int64))[None]
    with torch.inference_mode():
        x, _ = model.blocks[0](model.embed(ids), None, torch.arange(ids.shape[1])[None])
    model.blocks[2].forward = None  # what comes after the layer is not run
    np.testing.assert_allclose(Embedder(model, tokenizer, 1).vectors([tune(0)])[0], x[0].mean(0), atol=1e-6)
    assert Embedder(model, tokenizer).layer == 2
    with pytest.raises(ConfigError, match="layer=3: give 1 to 2"):
        Embedder(model, tokenizer, 3)
    lstm = build_model(model_config("recurrent", {"vocab_size": tokenizer.vocab.size, "d_model": 8}))
    with pytest.raises(ConfigError) as error:
        Embedder(lstm, tokenizer, bundle="my.safetensors")
    assert (error.value.field, error.value.got) == ("bundle", "my.safetensors")
    assert "kind recurrent" in error.value.why


def test_the_frechet_distance_of_known_normals():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(20_000, 3))
    b = rng.normal(size=(20_000, 3)) * [1, 2, 1] + [0, 0, 3]
    assert frechet(a, a) == pytest.approx(0, abs=1e-9)
    assert frechet(a, b) == pytest.approx(9 + (2 - 1) ** 2, rel=0.03)
    assert frechet(a, b) == pytest.approx(frechet(b, a))


def test_sets_apart_are_surely_apart_and_halves_of_one_are_not():
    rng = np.random.default_rng(0)

    def pieces(shift):
        return [rng.normal(size=(5, 30)) + shift for _ in range(12)]

    real = pieces(0)
    same, far, farther = (distance(real, pieces(shift)) for shift in (0, 1.5, 15))
    assert same.p > 0.05
    assert far.p < 0.01
    assert far.low > same.high
    for each in (same, far):
        assert 0 <= each.low < each.mean < each.high
    assert same.floor == far.floor  # that of the composers' own pieces
    assert same.floor > same.mean  # fewer pieces always seem farther apart
    assert same.halved == pytest.approx(same.floor, rel=0.1)
    assert far.halved > 2 * far.floor
    assert farther.mean > 50 * far.mean  # one scale, whatever is compared


def distance(real: Any, generated: Any) -> Frechet:
    found = compare_passages(real, generated)
    assert isinstance(found, Frechet)
    return found


def test_the_noise_floor_is_the_mean_distance_of_halves():
    """Of 0, 0, 2 and 2, a third of the halves are 2 deviations apart, the others are equal."""
    real = [np.full((2, 1), x) for x in (0.0, 0.0, 2.0, 2.0)]
    found = distance(real, real)
    assert found.floor == pytest.approx(4 / 3, abs=0.3)
    assert found.halved == pytest.approx(2 / 36 * 4 + 16 / 36 * 2, abs=0.3)  # the halves are drawn apart
    assert distance([np.array([[0.0], [2.0]])] * 4, real).floor == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("pieces", "each"), [(3, 9), (4, 1), (0, 0)])
def test_too_few_pieces_or_passages_are_said_with_the_number_that_it_needs(pieces, each):
    few: Any = list(np.zeros((pieces, each, 3)))
    many: Any = list(np.zeros((4, 2, 3)))
    said = f"{pieces} of the composers' continuations have passages to hear, {pieces * each} in all; it needs 4 with 8"
    assert compare_passages(few, many) == f"{said} passages: give more pieces= or length_seconds="
    assert f"{pieces} of the model's" in str(compare_passages(many, few))
