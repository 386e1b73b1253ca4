import json

import humanize
import numpy as np
from songs import write_songs
from trials import trial

from musictx.generate import humanize as inside


def test_songs_become_weights_and_figures(tmp_path, monkeypatch):
    """The beats lie beside the songs, as in the archive; the package reads the weights."""
    songs = write_songs(tmp_path / "in", 8)
    for song in songs.rglob("*.mid"):
        beats = [f"{k / 2} {float(k % 2 == 0)} {float(k % 4 == 0)}\n" for k in range(13)]
        (song.parent / "beat_midi.txt").write_text("".join(beats))
        (song.parent / "key_audio.txt").write_text("0\t4\tC:maj\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(humanize, "ROUNDS", 1)
    trial(humanize, "--pop", songs, "--out", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "humanize.json").read_text())
    assert found["songs"] == {"test": 1, "validation": 1, "train": 6}
    assert (found["notes"], found["exact_onsets"], len(found["rows"])) == (8 * 32, 1, 10)
    assert found["mean_velocity"]["tune"] == 80
    constant = found["rows"][0]
    assert (constant["model"], constant["velocity"][0]) == ("constant", 0)
    inside.network.cache_clear()
    monkeypatch.setattr(inside, "WEIGHTS", tmp_path / "out" / "humanize.safetensors")
    told = inside.network()(np.zeros((3, len(inside.network().features))))
    inside.network.cache_clear()
    np.testing.assert_allclose(told[:, 0], 80, atol=0.1)
