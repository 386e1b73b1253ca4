"""studies/labels.py: no work is in two splits, clips are of the middle, and shares are those of all cases."""

import zipfile

import labels
import numpy as np
import pytest

from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.labels import unmarked

WORKS_OF = {"known": "train", "old": "train", "older": "train", "new": "test", "newer": "test"}


def scale(path, pitch):
    """A note each half second, for a minute: as the bytes of a MIDI file."""
    onset_s = np.arange(120) / 2
    write_midi(Score(onset_s, onset_s + 0.4, np.full(120, pitch), np.full(120, 64)), path)
    return path.read_bytes()


def test_shares_of_all_cases_and_intervals_over_works():
    one, other = [[2, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0], [0, 0, 0]]  # label by answer
    found = labels.accuracy_and_f1(np.array([one, other]))
    assert found["accuracy"] == pytest.approx([3 / 4, 2 / 3, 1])
    assert found["macro F1"][0] == pytest.approx((4 / 5 + 2 / 3) / 2)  # the third label is nowhere


def test_composers_are_split_by_work(tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "FEWEST", 5)
    rows = [(who, title, split) for who in "AB" for title, split in WORKS_OF.items() for _ in "12"]
    rows.append(("A", "known", "validation"))
    rows.append(("A", "Spelled otherwise", "test"))  # the notes of A's first performance
    rows.append(("C", "seldom", "train"))
    rows += [(who, title, "train") for who in "AB" for title in ("known", "old")]  # `older` has the fewest performances
    pitches = [40 + n for n in range(len(rows))]
    pitches[len(WORKS_OF) * 4 + 1] = pitches[0]
    table = "canonical_composer,canonical_title,split,midi_filename\n"
    path = tmp_path / "maestro.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for n, (who, title, split) in enumerate(rows):
            table += f"{who},{title},{split},{n}.midi\n"
            archive.writestr(f"maestro/{n}.midi", scale(tmp_path / "x.mid", pitches[n]))
        archive.writestr("maestro/maestro.csv", table)
    store = labels.composers(path, tmp_path / "store")
    assert store.manifest.extra["labels"] == ["A", "B"]
    work = {f"{who}: {n}.midi": (who, title) for n, (who, title, _) in enumerate(rows)}
    works = {name: [work[piece] for piece in store.split(name).names] for name in labels.SPLITS}
    held_out = [("A", "new"), ("A", "newer"), ("B", "new"), ("B", "newer")]
    assert sorted(works["test"]) == sorted(works["whole"]) == held_out  # one performance of each
    assert sorted(works["validation"]) == [("A", "older"), ("B", "older")]
    assert not set(works["validation"]) & set(works["train"])
    assert len(works["train"]) == 12  # two works of each, three times; no performance of another split
    clip, whole = store.split("test")[0], store.split("whole")[0]
    seconds = [store.tokenizer.seconds(unmarked(store.tokenizer, np.asarray(ids))[0]) for ids in (clip, whole)]
    assert seconds[0] == pytest.approx(labels.CLIP_S, abs=1)
    assert seconds[1] > 40


def test_one_work_in_two_spellings_and_as_a_part():
    notes = np.random.default_rng(0).integers(40, 90, (2, 200))

    def score(pitch, gap_s=0.2):
        onset_s = gap_s * np.arange(len(pitch))
        return Score(onset_s, onset_s + 0.1, pitch, np.full(len(pitch), 64))

    first, other = notes
    performances = [score(first), score(other), score(first[50:150], 0.1), score(np.concatenate([other, first[::-1]]))]
    titles = ["Sonata in C", "Etude", "Son. C Major, 2nd mov.", "Etudes (Complete)"]
    assert labels.works(["A"] * 4, titles, performances) == [0, 1, 0, 1]
    assert labels.works(["A", "A", "B", "A"], titles, performances) == [0, 1, 2, 1]  # another composer's is another
    assert labels.works(["A", "A"], ["Etude", "ETUDE (Complete)"], performances[:2]) == [0, 0]
    for shared, works in ((16, [0, 0]), (10, [0, 1])):  # 11 and 5 of 195 sequences
        mixed = score(np.concatenate([first[:shared], other[shared:]]))
        assert labels.works(["A", "A"], ["Sonata", "Etude"], [performances[0], mixed]) == works


def test_a_chord_has_one_order_however_it_is_struck():
    pitch = np.arange(60, 72)
    onset_s = np.repeat(np.arange(4.0), 3)
    early = onset_s + np.tile([0.02, 0.0, 0.01], 4)
    one, other = (Score(on, on + 0.5, pitch, np.full(12, 64)) for on in (onset_s, early))
    assert np.array_equal(labels.sequences(one), labels.sequences(other))
    assert len(labels.sequences(one)) == 12 - labels.RUN + 1
