"""A linear layer on what a model hears: its fit, its figures of held-out files, and its file."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from safetensors.numpy import save_file

from musictx.analysis.bootstrap import Interval
from musictx.analysis.folds import (
    Figures,
    LabelledVectors,
    choose_strength,
    cross_validate,
    deal,
    in_words,
    macro_f1,
    share_interval,
)
from musictx.analysis.probe import KEY, About, Layer, Probe, fit, load_probe
from musictx.errors import BundleError

ABOUT = About(["mine", "yours"], "piano", "0" * 64, 1, 10.0, "good")


def heard(files, labels, apart, passages=3, width=6, seed=0):
    """Files of `labels` in turn, whose passages lie around their label's point, `apart` from the others."""
    rng = np.random.default_rng(seed)
    label = np.arange(files) % labels
    points = rng.normal(size=(labels, width)) * apart
    file = np.repeat(np.arange(files), passages)
    vectors = points[label[file]] + rng.normal(size=(files, width))[file] + rng.normal(size=(len(file), width)) * 0.3
    return LabelledVectors(vectors.astype(np.float32), file, label, np.arange(files))


def test_strong_l2_says_how_common_labels_are_and_weak_l2_knows_them():
    vectors = np.array([[0.0], [1.0], [2.0], [9.0]], np.float32)
    label = np.array([0, 0, 0, 1])
    strong, weak = fit(vectors, label, np.ones(4), 2, [1e4, 1e-3])
    shares = np.exp(strong.logits(vectors))
    np.testing.assert_allclose(shares / shares.sum(1, keepdims=True), [[4 / 6, 2 / 6]] * 4, atol=1e-3)
    assert weak.logits(vectors).argmax(1).tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(weak.logits(vectors).mean(0), weak.logits(vectors.mean(0)), atol=1e-6)


def test_every_file_counts_the_same_however_many_passages_it_has():
    vectors = np.array([[0.0], [0.0], [0.0], [0.0]], np.float32)
    (layer,) = LabelledVectors(vectors, np.array([0, 0, 0, 1]), np.array([0, 1]), np.arange(2)).fit(2, [1.0])
    assert layer.bias[0] == pytest.approx(layer.bias[1], abs=1e-6)


def test_folds_have_whole_groups_and_all_labels():
    label, group = np.repeat([0, 1, 2], 10), np.arange(30) // 2 * 2
    fold = deal(label, group)
    for g in group:
        assert len(set(fold[group == g])) == 1
    for k in range(5):
        assert set(label[fold == k]) == {0, 1, 2}
    assert len(set(deal(np.array([0, 0, 1, 1]), np.arange(4)).tolist())) == 4


def test_labels_that_are_there_are_found_in_held_out_files():
    found = cross_validate(heard(30, 3, 3.0), 3)
    assert found.accuracy.mean > 0.9
    assert found.accuracy.low > found.commonest_accuracy == pytest.approx(1 / 3)
    assert found.commonest_f1 == pytest.approx((2 * 10 / (30 + 10)) / 3)
    assert choose_strength(heard(30, 3, 3.0), 3) < choose_strength(heard(30, 3, 0.0), 3)


def test_files_that_are_nearly_the_same_do_not_flatter():
    """Pairs of the same music, whose label is chance: the twin in another fold would give it away."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(20, 60)).astype(np.float32)
    vectors, label = np.repeat(one, 2, axis=0), np.repeat(rng.permutation(20) % 2, 2)
    flattered = cross_validate(LabelledVectors(vectors, np.arange(40), label, np.arange(40)), 2)
    honest = cross_validate(LabelledVectors(vectors, np.arange(40), label, np.arange(40) // 2 * 2), 2)
    assert flattered.accuracy.mean > 0.9
    assert honest.accuracy.mean < 0.75
    assert honest.accuracy.low < 0.5


@pytest.mark.parametrize(
    ("low", "end"), [(0.6, "macro F1 0.33"), (0.4, "not surely better than always saying a, so give more files")]
)
def test_a_sentence_says_whether_labels_are_known(low, end):
    figures = Figures(np.zeros(8, np.int64), Interval(0.8, low, 0.9), 0.8, 0, 0.5, 1 / 3)
    assert in_words(figures, ["a", "b"], "8 files").endswith(end)


def test_known_intervals_of_shares():
    """Newcombe 1998, table I, method 4."""
    for right, n, low, high in ((81, 263, 0.2535, 0.3682), (15, 148, 0.0598, 0.1644), (0, 20, 0.0, 0.2005)):
        found = share_interval(right / n, n)
        assert (found.mean, round(found.low, 4), round(found.high, 4)) == (right / n, low, high)
    assert share_interval(1.0, 20).low == pytest.approx(1 - 0.2005, abs=1e-4)


def test_macro_f1_of_known_answers():
    assert macro_f1(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2) == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_a_file_of_labels_comes_back_and_a_damaged_one_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "weight": rng.normal(size=(2, 5)).astype(np.float32),
        "bias": rng.normal(size=2).astype(np.float32),
        "mean": np.zeros(5, np.float32),
        "scale": np.ones(5, np.float32),
    }
    path, head = tmp_path / "labels.safetensors", asdict(ABOUT)
    Probe(Layer(**tensors), ABOUT).save(path)
    probe = load_probe(path)
    assert probe.about == ABOUT
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(getattr(probe.layer, name), tensor)

    def refused(changes=None, text=None, **other):
        save_file(tensors | other, path, {KEY: text or json.dumps(head | (changes or {}))})
        with pytest.raises(BundleError, match="labels.safetensors is damaged"):
            load_probe(path)

    for changes in (
        {"labels": ["one"]},
        {"labels": ["one", "one"]},
        {"labels": ["a", "b", "c"]},
        {"labels": [1, 2]},
        {"layer": "1"},
        {"passage_seconds": float("nan")},
        {"format": 9},
        {"run": "rm -rf"},
        {"bundle": ["piano"]},
    ):
        refused(changes)
    for text in ("3", "[" * 10**5, "{}"):
        refused(text=text)
    refused(weight=np.zeros((2, 4), np.float32))
    refused(mean=np.zeros((1, 5), np.float32))
    refused(bias=np.zeros(2, np.float64))
    refused(more=np.zeros(3, np.float32))
    refused(weight=np.full((2, 5), np.inf, np.float32))
    path.write_bytes(b"no labels")
    with pytest.raises(BundleError, match="labels.safetensors is damaged"):
        load_probe(path)
    save_file(tensors, path)
    with pytest.raises(BundleError, match="labels.safetensors .*no labels"):
        load_probe(path)
    with pytest.raises(BundleError, match="/none: "):
        load_probe(tmp_path / "none")
