"""Labels as ids after the notes that they are of, and the loss of a model's answers."""

import numpy as np
import pytest
import torch

from musictx.data.labelled_windows import LabelledCrops
from musictx.data.store import Split
from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.objectives import Example, build_objective
from musictx.objectives.classify import Classify
from musictx.objectives.classify_notes import ClassifyNotes
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.labels import labels_of, marked, strikes, unmarked, with_labels

PLAIN = build_tokenizer("performance")
TOK = with_labels(PLAIN, 3)
VOCAB = TOK.vocab
FIRST = VOCAB.id("LABEL")


def tune(programs=(0, 1, 2, 0, 1), pitch=(60, 64, 60, 67, 60)):
    onset_s = np.arange(len(pitch)) * 0.5
    return Score(onset_s, onset_s + 0.25, pitch, np.full(len(pitch), 80), program=programs)


def stream(score=None):
    score = tune() if score is None else score
    ids = TOK.encode(score)
    return marked(TOK, ids, labels_of(TOK, ids, score))


def test_the_label_of_each_note_follows_its_strike():
    said = [VOCAB.describe(i) for i in stream()]
    notes = [said[n : n + 2] for n, word in enumerate(said) if word.startswith("NOTE_ON")]
    assert notes == [
        ["NOTE_ON 60", "LABEL 0"],
        ["NOTE_ON 64", "LABEL 1"],
        ["NOTE_ON 60", "LABEL 2"],
        ["NOTE_ON 67", "LABEL 0"],
        ["NOTE_ON 60", "LABEL 1"],
    ]
    music, labels = unmarked(TOK, stream())
    np.testing.assert_array_equal(music, PLAIN.encode(tune()))
    assert labels.tolist() == [0, 1, 2, 0, 1]


def test_notes_that_become_one_have_the_smallest_label():
    two = Score([0, 0.001, 1], [0.5, 0.7, 2], [60, 60, 62], [80, 80, 80], program=[2, 1, 0])
    ids = TOK.encode(two)
    assert labels_of(TOK, ids, two).tolist() == [1, 0]


def test_a_window_that_cuts_a_note_from_its_label_leaves_both_out():
    ids = stream()
    at = int(strikes(TOK, ids)[0])
    music, labels = unmarked(TOK, ids[at + 1 : int(strikes(TOK, ids)[3]) + 1])
    assert (music < VOCAB.n_events).all()
    assert labels.tolist() == [1, 2, -1]


def test_stretched_and_transposed_windows_keep_their_labels():
    rng = np.random.default_rng(3)
    pitch = rng.integers(40, 80, 60)
    score = tune(pitch % 3, pitch)
    split = Split(stream(score), np.array([0, len(stream(score))]), ["a"])
    crops = LabelledCrops(split, TOK, 40, 0, transpose=5, stretch=[0.95, 1.05])
    found = set()
    for index in range(30):
        window = crops[index].numpy()
        music, labels = unmarked(TOK, window[window != VOCAB.pad])
        pitches = PLAIN.pitch[music[strikes(TOK, music)]]
        known = labels >= 0
        shift = (labels[known] - pitches[known]) % 3  # the same for all notes of a window
        assert len(set(shift.tolist())) == 1
        assert known[1:-1].all()
        found.add(int(shift[0]))
    assert found == {0, 1, 2}


def test_each_piece_comes_as_often_however_long_it_is():
    short, long = stream(), np.tile(stream(tune((0,) * 5)), 50)
    ids = np.concatenate([short, long])
    crops = LabelledCrops(Split(ids, np.array([0, len(short), len(ids)]), ["a", "b"]), TOK, 20, 0)
    drawn = [crops.draw(np.random.default_rng(n)) for n in range(200)]
    assert 70 < sum(drawn) < 130


class Pitches(torch.nn.Module):
    """Logits that depend on the id alone: 3 for LABEL k at a pitch with this rest by 3."""

    def forward(self, ids):
        logits = torch.zeros(*ids.shape, VOCAB.size)
        pitch = torch.from_numpy(TOK.pitch)[ids]
        for k in range(3):
            logits[..., FIRST + k] = 3.0 * ((pitch >= 0) & (pitch % 3 == k))
        return logits


def window(score, length=60):
    ids = np.concatenate([[VOCAB.bos], stream(score), [VOCAB.eos]]).astype(np.int64)
    return torch.from_numpy(np.pad(ids, (0, length + 1 - len(ids)), constant_values=VOCAB.pad))


def example(objective, *scores):
    made = [objective.example(window(score), np.random.default_rng(0)) for score in scores]
    return Example((torch.stack([each.inputs[0] for each in made]),), torch.stack([each.targets for each in made]))


def test_a_model_reads_no_label():
    for objective in (Classify(TOK), ClassifyNotes(TOK)):
        batch = example(objective, tune())
        assert (batch.inputs[0] < FIRST).all()
        assert batch.inputs[0].shape == batch.targets.shape == (1, 60)
        struck = batch.targets[batch.targets != VOCAB.pad]
        assert (struck - FIRST).tolist() == [0, 1, 2, 0, 1]


def test_the_answer_to_a_piece_is_the_mean_of_its_tokens_and_windows():
    objective = Classify(TOK)
    batch = example(objective, tune((1,) * 4, (60, 60, 60, 61)), tune((1,) * 4, (61,) * 4))
    logits, label, row = objective.answers(Pitches(), batch)
    read = int((batch.inputs[0][0] != VOCAB.pad).sum())
    torch.testing.assert_close(logits[0], torch.tensor([3 * 6 / read, 3 * 2 / read, 0.0]))  # on and off have a pitch
    assert label.tolist() == [1, 1]
    assert row.tolist() == [0, 1]
    piece, one = objective.of_piece(Pitches(), batch)
    torch.testing.assert_close(piece, logits.mean(0, keepdim=True))
    assert one.tolist() == [1]
    nats, count = objective.loss(Pitches(), batch)
    assert count == 2
    rows, counts = objective.loss(Pitches(), batch, by_row=True)
    assert float(rows.sum()) == pytest.approx(float(nats), rel=1e-5)
    assert counts.tolist() == [1, 1]


def test_the_answer_to_a_note_is_that_of_its_strike():
    objective = ClassifyNotes(TOK)
    batch = example(objective, tune(), tune((2, 2), (62, 65)))
    logits, label, row = objective.answers(Pitches(), batch)
    assert logits.argmax(1).tolist() == [0, 1, 0, 1, 0, 2, 2]
    assert label.tolist() == [0, 1, 2, 0, 1, 2, 2]
    assert row.tolist() == [0] * 5 + [1] * 2
    assert objective.loss(Pitches(), batch, by_row=True)[1].tolist() == [5, 2]


def test_a_window_without_notes_has_no_answer():
    objective = Classify(TOK)
    empty = torch.full((1, 20), VOCAB.pad)
    logits, label = objective.of_piece(Pitches(), Example((empty,), empty))
    assert (logits.shape, label.shape) == ((0, 3), (0,))


def test_what_cannot_have_labels():
    with pytest.raises(ConfigError, match=r"^objective=classify: .*data.path="):
        build_objective("classify", None, PLAIN)
    for name in ("chorale", "performance-melody"):
        with pytest.raises(ConfigError, match=f"^name={name}: "):
            with_labels(build_tokenizer(name), 2)
