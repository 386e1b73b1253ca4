"""studies/hand_made.py: the SVM separates and knows no units, the highest note, and what depends on the key."""

import hand_made
import labels
import numpy as np
import pytest
import torch

from musictx.music.score import Score
from musictx.tokenizers.labels import with_labels


def random_score(n=60):
    rng = np.random.default_rng(1)
    onset_s = np.sort(rng.integers(0, 40, n)) / 4
    return Score(onset_s, onset_s + rng.uniform(0.1, 1, n), rng.integers(40, 80, n), rng.integers(30, 90, n))


@pytest.mark.parametrize("balanced", [False, True])
def test_the_svm_separates_and_its_answer_knows_no_units(balanced):
    rng = np.random.default_rng(0)
    label = np.array([0] * 60 + [1] * 30 + [3] * 10)  # the third label is nowhere
    x = np.column_stack([(label == 0) * 4.0, (label == 3) * 4.0, np.ones(100)]) + rng.normal(0, 0.3, (100, 3)) * [
        1,
        1,
        0,
    ]
    assert np.array_equal(hand_made.svm(x, label, 1.0, balanced)(x), label)
    mixed = x + rng.normal(0, 2, x.shape) * [1, 1, 0]
    answer = hand_made.svm(mixed, label, 0.1, balanced)(mixed)
    assert 0.5 < (answer == label).mean() < 1
    unit = np.array([1000.0, 0.01, 1.0])
    assert np.array_equal(hand_made.svm(mixed * unit + 5, label, 0.1, balanced)(mixed * unit + 5), answer)


def test_balanced_finds_more_of_a_rare_label():
    label = np.array([0] * 95 + [1] * 5)
    x = np.random.default_rng(0).normal(0, 1, (100, 1)) + label[:, None] * 1.5
    found = [(hand_made.svm(x, label, 1.0, balanced)(x) == 1).sum() for balanced in (False, True)]
    assert found[0] < found[1]


def test_a_note_is_the_highest_of_those_that_sound():
    #                  held under    in one chord   after 72 ended    under a held one
    onset_s = np.array([0.0, 0.5, 0.52, 2.0, 2.0, 2.5])
    offset_s = np.array([1.9, 0.9, 0.9, 4.0, 2.4, 2.9])
    score = Score(onset_s, offset_s, [60, 64, 72, 67, 55, 65], [64] * 6)
    x = hand_made.note_features(score)
    assert score.pitch.tolist() == [60, 64, 72, 55, 67, 65]
    assert x[:, hand_made.HIGHER].tolist() == [0, 1, 0, 1, 0, 1]
    assert x[:, 3].tolist() == [1, 2, 2, 2, 2, 1]  # begin together
    assert x[:, 7].tolist() == [0, 1, 2, 0, 1, 0]  # sound and are lower


def test_in_another_key_only_pitch_differs():
    score = random_score()
    notes, clip = (
        [f(s) for s in (score, score.transpose(5))] for f in (hand_made.note_features, hand_made.clip_features)
    )
    assert notes[0].shape == (60, 18)
    assert np.allclose(notes[1] - notes[0], [5] + [0] * 17)
    assert clip[0].shape == (132,)
    assert np.allclose(clip[0][:-27], clip[1][:-27])
    assert np.allclose(clip[1][-27:-22] - clip[0][-27:-22], 5)  # the mean and the percentiles


def test_notes_of_a_store(tmp_path):
    grown, onset_s = with_labels(labels.PLAIN, 3), np.repeat(np.arange(60) / 2, 2)
    song = Score(onset_s, onset_s + 0.4, np.tile([50, 70], 60), np.full(120, 64), program=np.tile([2, 1], 60))
    splits = {split: [labels.piece("song", song, grown)] for split in ("train", "validation", "test")}
    labels.written(tmp_path / "notes", splits, ["BRIDGE", "MELODY", "PIANO"])
    study = hand_made.Study(tmp_path / "notes")
    assert study.highest()["whole"]["accuracy"] == [1, 1, 1]
    assert study.svm("notes")["test"]["accuracy"] == [1, 1, 1]
    assert study.most_frequent()["test"]["accuracy"][0] == pytest.approx(0.5, abs=0.01)
    assert [name.partition(", ")[0] for name, _ in study.runs()] == ["notes"] * 5


def test_the_c_with_most_right_answers_aside_is_taken(tmp_path, monkeypatch):
    grown, onset_s = with_labels(labels.PLAIN, 2), np.arange(100) / 2
    song = Score(onset_s, onset_s + 0.4, np.full(100, 60), np.full(100, 64), program=np.zeros(100, int))
    splits = {split: [labels.piece("song", song, grown)] for split in ("train", "validation", "test")}
    labels.written(tmp_path / "notes", splits, ["MELODY", "PIANO"])
    monkeypatch.setattr(hand_made, "learned", lambda _, c, balanced: lambda x: np.full(len(x), int(c != 1e-3)))
    found = hand_made.Study(tmp_path / "notes").svm("notes")
    assert (found["C"], found["set aside"], found["test"]["accuracy"][0]) == (1e-3, 1, 1)


def test_notes_are_judged_where_models_read(tmp_path):
    grown, rng, n = with_labels(labels.PLAIN, 2), np.random.default_rng(0), 700
    onset_s = np.arange(n) / 4
    song = Score(onset_s, onset_s + 0.2, rng.integers(40, 80, n), np.full(n, 64), program=rng.integers(0, 2, n))
    splits = {split: [labels.piece("song", song, grown)] for split in ("train", "validation", "test")}
    study = labels.Labels("notes", labels.written(tmp_path / "notes", splits, ["MELODY", "PIANO"]))
    data = study.data("encoder from nothing", 1)
    (example,) = data.pieces("test")
    size = data.objective.tokenizer.vocab.size
    _, label = data.objective.of_piece(lambda *ids: torch.zeros(*ids[-1].shape, size), example)  # type: ignore[attr-defined]
    (case,) = hand_made.cases(tmp_path / "notes", "test")
    assert case.label[case.read].tolist() == label.tolist()
    assert 0 < case.read.sum() < n


def test_composers_of_a_store(tmp_path):
    grown, onset_s = with_labels(labels.PLAIN, 2), np.arange(100) / 2

    def played(who, n):
        pitch = np.random.default_rng(n).integers(40, 60, 100) + 25 * who
        return labels.piece(
            "AB"[who] + f": {n}", Score(onset_s, onset_s + 0.4, pitch, np.full(100, 64), 0.5, who), grown
        )

    splits = {split: [played(n % 2, n + 10 * i) for n in range(7)] for i, split in enumerate(labels.SPLITS)}
    study = hand_made.Study(labels.written(tmp_path / "composers", splits, ["A", "B"]).path)
    assert [len(study.first(size)) for size in (1, 2, None)] == [2, 4, 7]
    assert study.svm("clips", 1)["test"]["accuracy"][0] == study.svm("pieces")["test"]["accuracy"][0] == 1
    assert study.most_frequent()["always"] == "A"
    assert study.most_frequent()["test"]["accuracy"][0] == pytest.approx(4 / 7)
