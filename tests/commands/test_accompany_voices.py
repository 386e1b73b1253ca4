"""`musictx accompany voices=` and `rewrite=`: what a person has stays, note for note; the rest is written."""

import mido
import numpy as np
import pytest
from conftest import ok, refused
from untrained import write_harmoniser

import musictx
from musictx.errors import ConfigError
from musictx.music.grid import grid_to_score
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi

BASS = np.repeat([48, 50, 52, 53, 55, 48], 4)
GRID = np.stack([BASS + 24, BASS + 16, BASS + 7, BASS], 1)  # (24, 4)


def write_tracks(path, *voices, quarter_s=0.5):
    """Each voice, pitches of sixteenths, as a track of its own; the lowest comes first."""
    midi = mido.MidiFile(ticks_per_beat=4)
    for pitches in reversed(voices):
        track = mido.MidiTrack()
        score = grid_to_score(np.stack([pitches, *[np.full_like(pitches, -1)] * 3], 1), 0.5)
        events = [
            (round(t * 8), kind, p)
            for p, a, b in zip(score.pitch, score.onset_s, score.offset_s, strict=True)
            for t, kind in ((a, "note_on"), (b, "note_off"))
        ]
        now = 0
        for tick, kind, pitch in sorted(events, key=lambda e: (e[0], e[1] == "note_on")):
            track.append(mido.Message(kind, note=int(pitch), velocity=70, time=tick - now))
            now = tick
        midi.tracks.append(track)
    midi.save(path)


@pytest.fixture(scope="module")
def choir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choir")
    write_harmoniser(folder / "choir.safetensors", "voices", hide_source=0.1)
    write_tracks(folder / "bass.mid", GRID[:, 3])
    write_tracks(folder / "outer.mid", GRID[:, 0], GRID[:, 3])
    write_tracks(folder / "all.mid", *GRID.T)
    write_midi(grid_to_score(GRID, 0.5), folder / "together.mid")
    return folder


def notes(score: Score):
    return sorted(
        zip(score.onset_s.round(3).tolist(), score.offset_s.round(3).tolist(), score.pitch.tolist(), strict=True)
    )


@pytest.mark.parametrize(("file", "voices"), [("bass.mid", "B"), ("outer.mid", "SB")])
def test_given_voices_stay_note_for_note(choir, file, voices):
    words = ["musictx", "accompany", "bundle=choir.safetensors", f"melody={file}", f"voices={voices}", f"out={voices}"]
    ok([*words, "variations=2", "png=true"], choir)
    given = notes(read_midi(choir / file))
    made = [notes(read_midi(choir / voices / f"{file[:-4]}-{k}.mid")) for k in (1, 2)]
    for each in made:
        assert set(given) <= set(each)
        assert len(each) > len(given)
    assert made[0] != made[1]


@pytest.mark.parametrize("file", ["all.mid", "together.mid"])
def test_a_voice_of_some_bars_is_written_again(choir, file):
    """Bars of four quarters: the second is seconds 2 to 3."""
    words = [
        "musictx",
        "accompany",
        "bundle=choir.safetensors",
        f"melody={file}",
        "rewrite=A",
        "from_bar=2",
        "to_bar=2",
    ]
    ok([*words, f"out=again-{file}"], choir)
    made = read_midi(choir / f"again-{file}" / f"{file[:-4]}-1.mid")
    others = grid_to_score(np.where(np.arange(4) == 1, -1, GRID), 0.5)
    assert set(notes(others)) <= set(notes(made))
    before = grid_to_score(np.where(np.arange(4) == 1, GRID, -1)[:16], 0.5)
    assert set(notes(before)) <= set(notes(made))
    ended = {pitch for onset, _, pitch in notes(made) if onset >= 2.0} - set(GRID[16:, [0, 2, 3]].flatten().tolist())
    assert ended != set(GRID[16:, 1].tolist())


def test_python_takes_voices_too(choir):
    model = musictx.load(choir / "choir.safetensors")
    (made,) = model.accompany(choir / "outer.mid", voices="SB")
    assert notes(made.melody) == notes(read_midi(choir / "outer.mid"))
    assert len(made.voices)
    with pytest.raises(ConfigError, match="voices="):
        model.accompany(choir / "outer.mid", voices="XY")


def test_wrong_input_is_one_line(choir, voices):
    say = ["musictx", "accompany", "bundle=choir.safetensors", "out=no"]
    assert "give each voice a track of one line" in refused([*say, "melody=bass.mid", "voices=SB"], choir)
    assert "only writes below a soprano" in refused([*say, "melody=bass.mid", "voices=B", f"bundle={voices}"], choir)
    assert "outside the soprano's range" in refused([*say, "melody=bass.mid"], choir)
    assert "outside the alto's range" in refused([*say, "melody=bass.mid", "voices=A"], choir)
    assert "from_bar=3" in refused([*say, "melody=all.mid", "rewrite=A", "from_bar=3", "to_bar=9"], choir)
    assert "to_bar=2" in refused([*say, "melody=all.mid", "to_bar=2"], choir)
    assert "fewer than four voices" in refused([*say, "melody=outer.mid", "rewrite=A"], choir)
    assert not (choir / "no").exists()
