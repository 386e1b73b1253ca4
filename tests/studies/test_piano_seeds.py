"""The piano seeds inside the package are what studies/seeds.py writes."""

import numpy as np
import pytest
import seeds

from musictx.model.packaged import FOLDER
from musictx.music.read import read_bytes, read_midi, read_tracks


@pytest.mark.parametrize(("name", "piece"), [("elise", seeds.ELISE), ("gymnopedie", seeds.GYMNOPEDIE)])
def test_the_shipped_files_are_made_of_these_notes(name, piece):
    path = FOLDER / f"{name}.mid"
    played, shipped = seeds.play(piece), read_midi(path)
    assert shipped.pitch.tolist() == played.pitch.tolist()
    np.testing.assert_allclose(shipped.onset_s, played.onset_s, atol=0.002)
    np.testing.assert_allclose(shipped.offset_s, played.offset_s, atol=0.002)
    assert shipped.velocity.tolist() == played.velocity.tolist()
    assert 8 <= shipped.duration_s <= 15
    assert len(set(shipped.velocity.tolist())) > 10
    assert read_tracks(read_bytes(path), path).meter().signature == piece.signature


@pytest.mark.parametrize("piece", [seeds.ELISE, seeds.GYMNOPEDIE])
def test_both_hands_have_the_same_bars(piece):
    for voice in (piece.right, piece.left):
        bars = [sum(int(word.partition(":")[2] or 1) for word in bar.split()) for bar in voice.split("|")]
        assert set(bars[1:-1]) == {piece.units}
    assert piece.right.count("|") == piece.left.count("|")


def test_notes_are_what_they_are_called():
    assert seeds.notes("E5 D#5:2 | - B3+D4:3").tolist() == [[0, 1, 76], [1, 2, 75], [4, 3, 59], [4, 3, 62]]
