"""`musictx accompany voices=` and `rewrite=`: what a person has stays, note for note; the rest is written."""

from dataclasses import replace
from typing import Any

import mido
import numpy as np
import pytest
from conftest import ok, refused
from untrained import CONFIG, write_harmoniser

import musictx
from musictx.errors import BundleError, ConfigError, UserError
from musictx.generate.model import Model
from musictx.model.encoder_decoder import EncoderDecoder
from musictx.music.grid import REST, grid_to_score
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.chorale import ChoraleTokenizer

BASS = np.repeat([48, 50, 52, 53, 55, 48], 4)
GRID = np.stack([BASS + 24, BASS + 16, BASS + 7, BASS], 1)  # (24, 4)


def write_scores(path, scores, quarter_s=0.5):
    """Each score as a track of its own, with all its velocities."""
    midi = mido.MidiFile(ticks_per_beat=1000)
    for k, score in enumerate(scores):
        track = mido.MidiTrack()
        if not k:
            track.append(mido.MetaMessage("set_tempo", tempo=round(quarter_s * 1e6)))
        columns = (score.onset_s, score.offset_s, score.pitch, score.velocity)
        events = [
            (round(t * 1000 / quarter_s), struck, int(pitch), int(velocity) * struck)
            for on, off, pitch, velocity in zip(*columns, strict=True)
            for t, struck in ((on, 1), (off, 0))
        ]
        now = 0
        for tick, _, pitch, velocity in sorted(events, key=lambda event: event[:2]):
            track.append(mido.Message("note_on", note=pitch, velocity=velocity, time=tick - now))
            now = tick
        midi.tracks.append(track)
    midi.save(path)


def write_tracks(path, *voices):
    """Each voice, pitches of sixteenths, as a track; the lowest comes first."""
    alone = [np.stack([pitches, *[np.full_like(pitches, REST)] * 3], 1) for pitches in reversed(voices)]
    write_scores(path, [grid_to_score(grid, 0.5) for grid in alone])


@pytest.fixture(scope="module")
def choir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choir")
    write_harmoniser(folder / "choir.safetensors", hide_source=0.1)
    write_tracks(folder / "bass.mid", GRID[:, 3])
    write_tracks(folder / "outer.mid", GRID[:, 0], GRID[:, 3])
    write_tracks(folder / "all.mid", *GRID.T)
    write_midi(grid_to_score(GRID, 0.5), folder / "together.mid")
    return folder


def notes(score: Score):
    return sorted(
        zip(score.onset_s.round(3).tolist(), score.offset_s.round(3).tolist(), score.pitch.tolist(), strict=True)
    )


def test_given_voices_stay_note_for_note(choir):
    words = ["musictx", "accompany", "bundle=choir.safetensors", "melody=outer.mid", "voices=SB", "out=o"]
    said = ok([*words, "variations=2", "png=true"], choir).stdout
    given = notes(read_midi(choir / "outer.mid"))
    assert f"outer-1.mid: {len(given)} given notes" in said  # soprano and bass are no melody
    made = [notes(read_midi(choir / "o" / f"outer-{k}.mid")) for k in (1, 2)]
    for each in made:
        assert set(given) <= set(each)
        assert len(each) > len(given)
    assert made[0] != made[1]


def played(score: Score):
    """Every note, bit for bit."""
    return list(zip(score.onset_s, score.offset_s, score.pitch, score.velocity, score.program, strict=True))


def expressive(voice, longest=4):
    """Struck again every `longest` sixteenths, loud and soft, a little beside the sixteenths."""
    at = np.arange(0, 24, longest)
    beside = 0.003 * (at // longest % 3) + 0.001 * voice
    return Score(at / 8 + beside, (at + longest) / 8 - 0.02 + beside, GRID[at, voice], 50 + at + 5 * voice, 0.5)


@pytest.mark.parametrize("file", ["apart.mid", "one.mid"])
def test_notes_outside_what_is_written_again_stay_bit_for_bit(choir, file):
    """The second bar of four quarters is seconds 2 to 4; one note of the alto crosses its beginning, one is in it."""
    lines = [expressive(v) for v in (0, 2, 3)]
    alto = Score([0.0, 0.75, 1.5, 2.5], [0.75, 1.5, 2.5, 3.0], [64, 64, 68, 64], [31, 47, 63, 79], 0.5)
    lines.insert(1, alto)
    tracks = [Score.merge(lines, 0.5)] if file == "one.mid" else lines
    write_scores(choir / file, tracks)
    given = read_midi(choir / file)
    model = musictx.load(choir / "choir.safetensors")
    (made,) = model.accompany(choir / file, rewrite="A", from_bar=2, to_bar=2)
    kept = given.select(~np.isin(given.velocity, [63, 79]))
    assert len(kept) == len(given) - 2
    cut = Score([1.5], [2.0], [68], [63], 0.5)
    assert sorted(played(made.given_notes)) == sorted(played(kept) + played(cut))
    assert (made.new_notes.onset_s >= 2.0).all()


def test_a_note_through_a_rewritten_bar_has_a_beginning_and_an_end(choir):
    others = [expressive(v) for v in (0, 2, 3)]
    write_scores(choir / "through.mid", [others[0], Score([0.25], [2.75], [67], [33], 0.25), *others[1:]], 0.25)
    model = musictx.load(choir / "choir.safetensors")
    (made,) = model.accompany(choir / "through.mid", rewrite="A", from_bar=2, to_bar=2)
    ends = made.given_notes.select(made.given_notes.velocity == 33)
    assert list(zip(ends.onset_s, ends.offset_s, strict=True)) == [(0.25, 1.0), (2.0, 2.75)]


def test_a_voice_out_of_range_can_be_written_again(choir):
    model = musictx.load(choir / "choir.safetensors")
    alto = np.where(np.arange(24) // 8 == 1, 79, GRID[:, 1])
    write_tracks(choir / "high.mid", np.full(24, 81), alto, *GRID.T[2:])
    with pytest.raises(UserError, match="high.mid: .* 79 .* 53 … 76: transpose=-3"):
        model.accompany(choir / "high.mid", rewrite="T", transpose=0)
    (lower,) = model.accompany(choir / "high.mid", rewrite="T")
    assert any("3 semitones lower" in each for each in lower.remarks)  # all voices fit there
    (made,) = model.accompany(choir / "high.mid", rewrite="A")
    assert len(made.new_notes)


def test_wrong_input_is_one_line(choir):
    of_own = replace(CONFIG, source_voices=1, target_group=3)  # a soprano in, the voices below it out
    below = write_harmoniser(choir / "below.safetensors", of_own, "mine:Below")
    said = refused(["musictx", "accompany", f"bundle={below}", "out=no", "melody=bass.mid", "voices=B"], choir)
    assert said.startswith(f"error: {below} was trained for objective mine:Below, and accompanies no melody: ")
    assert not (choir / "no").exists()
    deaf: Any = EncoderDecoder(of_own)
    with pytest.raises(BundleError, match="^this model does not hear 4 voices of a chorale: "):
        Model(deaf, ChoraleTokenizer()).accompany(choir / "bass.mid", voices="B")
    said = refused(["musictx", "attend", "all.mid", f"bundle={below}", "out=no"], choir)
    assert said.startswith(f"error: bundle={below}: it has no attention to draw")


AGAIN = {"rewrite": "A", "from_bar": 2, "to_bar": 2}


@pytest.mark.parametrize(
    ("file", "asked", "said"),
    [
        ("bass.mid", {"voices": "SB"}, "bass.mid: 1 track with .* SB: "),
        ("bass.mid", {"transpose": 0}, "bass.mid: .*, the first in bar 1, .* 60 … 81: "),
        ("falls.mid", {"transpose": 0}, r"falls.mid: notes of pitch 59 \(1 of 3\), the first in bar 2, .* 60 … 81: "),
        ("bass.mid", {"voices": "XY"}, "voices="),
        ("all.mid", {"to_bar": 2}, "to_bar=2"),
        ("all.mid", {"rewrite": "A", "from_bar": 3, "to_bar": 9}, "all.mid: from_bar=3: to_bar=9: "),
        ("outer.mid", {"rewrite": "A"}, "outer.mid: .*four"),
        ("three.mid", {"rewrite": "A"}, "three.mid: all four voices sound in 0% .* rewrite= .*: .*voices="),
        ("ends.mid", {"rewrite": "A"}, "ends.mid: all four voices sound in 17% .* rewrite= .*: .*voices="),
        ("chords.mid", {"voices": "SB"}, "chords.mid: track 1 of its 2 .* chords, the first in bar 1: "),
        ("rests.mid", AGAIN, "rests.mid: from_bar=2: "),
    ],
)
def test_what_cannot_be_written_around_is_said(choir, file, asked, said):
    write_scores(choir / "chords.mid", [grid_to_score(GRID[:, :2], 0.5), expressive(3)])
    write_scores(choir / "rests.mid", [Score([0.0, 5.0], [1.0, 6.0], [p, p], [70] * 2, 0.5) for p in (72, 64, 55, 48)])
    write_scores(choir / "falls.mid", [Score([0.0, 1.0, 3.0], [1.0, 2.0, 4.0], [62, 64, 59], [70] * 3, 0.5)])
    write_tracks(choir / "three.mid", *GRID[:, [0, 1, 3]].T)
    write_scores(choir / "ends.mid", [Score.merge([*map(expressive, (0, 1, 3)), expressive(2).select(slice(5, 6))])])
    with pytest.raises(UserError, match=said):
        musictx.load(choir / "choir.safetensors").accompany(choir / file, **asked)


def test_a_score_does_not_say_which_voice_sings(choir):
    with pytest.raises(ConfigError, match="^voices=SB: .*Score"):
        musictx.load(choir / "choir.safetensors").accompany(read_midi(choir / "all.mid"), voices="SB")


def test_the_highest_of_several_lines_is_taken_and_said(choir):
    top, both = (grid_to_score(GRID[:, :n], 0.5) for n in (1, 2))
    (made,) = musictx.load(choir / "choir.safetensors").accompany(both)
    assert made.given_notes == top
    assert made.remarks == ("the melody: its highest 6 notes are the melody, the other 6 notes are left out",)


def test_the_tune_is_the_top_part_also_where_it_rests(choir):
    top = expressive(0).select(np.array([0, 1, 4, 5]))  # two quarters are silent
    write_scores(choir / "silent.mid", [expressive(3), top, expressive(2)])
    (made,) = musictx.load(choir / "choir.safetensors").accompany(choir / "silent.mid")
    assert notes(made.given_notes) == notes(top)
    assert f"{choir / 'silent.mid'}: its highest part is the melody, the other 12 notes are left out" in made.remarks
