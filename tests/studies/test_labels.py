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
    monkeypatch.setattr(labels, "FEWEST", 4)
    monkeypatch.setattr(labels, "WORKS", 1)
    monkeypatch.setitem(labels.ASIDE, "composers", 1)
    rows = [(who, title, split) for who in "AB" for title, split in WORKS_OF.items() for _ in "12"]
    rows.append(("A", "known", "validation"))
    rows.append(("C", "seldom", "train"))
    table = "canonical_composer,canonical_title,split,midi_filename\n"
    path = tmp_path / "maestro.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for n, (who, title, split) in enumerate(rows):
            table += f"{who},{title},{split},{n}.midi\n"
            archive.writestr(f"maestro/{n}.midi", scale(tmp_path / "x.mid", 40 + n))
        archive.writestr("maestro/maestro.csv", table)
    store = labels.composers(path, tmp_path / "store")
    assert store.manifest.extra["labels"] == ["A", "B"]
    work = {f"{who}: {n}.midi": (who, title) for n, (who, title, _) in enumerate(rows)}
    works = {name: {work[piece] for piece in store.split(name).names} for name in labels.SPLITS}
    assert works["test"] == works["whole"]
    assert sorted(who for who, _ in works["test"]) == ["A", "B"]  # at most one of each
    assert {title for _, title in works["test"]} <= {"new", "newer"}  # `known` is in the training
    assert works["train"].isdisjoint(works["validation"])
    assert len(works["validation"]) == 2  # one of each, with all its performances
    clip, whole = store.split("test")[0], store.split("whole")[0]
    seconds = [store.tokenizer.seconds(unmarked(store.tokenizer, np.asarray(ids))[0]) for ids in (clip, whole)]
    assert seconds[0] == pytest.approx(labels.CLIP_S, abs=1)
    assert seconds[1] > 40
