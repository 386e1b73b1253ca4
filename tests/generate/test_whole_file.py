"""What is not the model's business stays: words of a score, drums in the sound, the places of other instruments."""

import gzip
import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from conftest import ok

import musictx
from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.music.midi_file import CONTROL, Event, read_events, with_events, write_events
from musictx.music.notation.lyrics import Syllable
from musictx.music.notation.parts import Part, Transposed
from musictx.music.notation.read import read_notation
from musictx.music.project import Line, Project
from musictx.music.read import read_tracks
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi
from musictx.viz.sound import write_wav

LEAD = """X:1
T:Evening
C:Anon.
M:4/4
L:1/4
K:C
V:S name="Soprano"
V:P name="Piano"
[V:S] "C"c2 "F"c2 | "G7"B2 "C"c2 |
w: A-ve Ma-ri
w: Oh sing to me
[V:P] [CEG]4 | [DFG]4 |
"""


def words_of(path):
    notation, _ = read_notation(path.read_bytes(), "musicxml")
    symbols = [(each.onset // 24, str(each.root)) for each in notation.symbols]
    sung = [(each.onset // 24, each.verse, each.text) for part in notation.parts for each in part.lyrics]
    return notation.title, notation.composer, symbols, sorted(sung)


@pytest.fixture
def lead(tmp_path):
    (tmp_path / "lead.abc").write_text(LEAD)
    notation, _ = read_notation(LEAD.encode(), "abc")
    sung = sorted((each.onset // 24, each.verse, each.text) for each in notation.parts[0].lyrics)
    assert len(sung) == 8
    symbols = [(each.onset // 24, str(each.root)) for each in notation.symbols]
    return tmp_path / "lead.abc", ("Evening", "Anon.", symbols, sung)


@pytest.mark.parametrize("bundle", ["piano", "chorale"])
def test_a_score_keeps_its_words_where_another_model_goes_on(lead, tmp_path, bundle):
    file, words = lead
    (music,) = musictx.load(bundle).continue_midi(file, bars=1, control=Control(key="C"))
    assert "in C" in music.title
    music.write(tmp_path / "a.musicxml")
    assert words_of(tmp_path / "a.musicxml") == words


def test_a_choir_gets_the_tune_of_one_part_and_the_others_stay(lead, tmp_path):
    file, words = lead
    (music,) = musictx.load("harmoniser").accompany(file, part="Soprano")
    assert music.given_notes.pitch.tolist() == [72, 72, 71, 72]
    music.write(tmp_path / "a.musicxml")
    assert words_of(tmp_path / "a.musicxml") == words
    tracks = read_tracks(music.midi(), "a").tracks
    assert [(each.name, len(each.score)) for each in tracks[:2]] == [("Soprano", 4), ("Piano", 6)]
    assert len(tracks) == 5


def test_a_fill_keeps_the_words_around_it(lead, tmp_path):
    file, (*names, symbols, sung) = lead
    (music,) = musictx.load("chorale").fill(file, from_bar=1, to_bar=1)
    music.write(tmp_path / "a.musicxml")
    after = [each for each in symbols if each[0] >= 4], [each for each in sung if each[0] >= 4]
    assert words_of(tmp_path / "a.musicxml") == (*names, *after)


def test_chords_of_a_score_are_its_symbols_by_bar(lead):
    file, _ = lead
    assert Control(chords=str(file)).read().chords == "C F | G7 C"


@pytest.fixture
def song(tmp_path):
    steady = np.arange(8) * 0.5
    tune, bass = (Score(steady, steady + 0.5, np.full(8, pitch), np.full(8, 90), 0.5) for pitch in (72, 48))
    drums = Score(steady, steady + 0.1, np.full(8, 42), np.full(8, 100), 0.5, DRUMS)
    flute = Score(tune.onset_s, tune.offset_s, tune.pitch, tune.velocity, 0.5, 73)
    write_midi(Score.merge([flute, bass, drums]), tmp_path / "song.mid")
    return tmp_path / "song.mid"


def test_the_sound_is_that_of_the_midi_file_beside_it(song, world, tmp_path):
    words = [f"bundle={world.bundle}", "part=2", "length_seconds=1", "wav=true", "out=o.mid"]
    said = ok(["musictx", "generate", song, *words], tmp_path).stdout
    (line,) = re.findall(r"^o\.mid: (\d+) notes, (\d+) of", said, re.MULTILINE)
    whole = read_tracks((tmp_path / "o.mid").read_bytes(), "o").merge(drums=True)
    assert (int(line[0]), len(whole)) == (len(whole), 24 + int(line[1]))
    write_wav(whole, tmp_path / "expected.wav")
    (made, rate), (expected, _) = (soundfile.read(tmp_path / name) for name in ("o.wav", "expected.wav"))
    assert rate > 0
    assert np.array_equal(made, expected)


def test_new_notes_alone_sound_from_the_first_of_them_on(song, world, tmp_path):
    model = musictx.load(world.bundle)
    (music,) = model.continue_midi(song, seconds=1, include_seed=False)
    assert music.heard().onset_s == pytest.approx(music.score.onset_s, abs=2e-3)


@pytest.mark.parametrize(("program", "kept"), [(73, {7: 70, 10: 90}), (0, {7: 70})])
def test_a_new_instrument_has_the_volume_of_another_and_not_its_place(program, kept):
    flute = Score([0.0], [1.0], [72], [90], 0.5, 73)
    data = Project.new(0.5).beside([Line("flute", flute)])
    file = read_events(data)
    sound = [Event(0, bytes([0xB0 | channel_in(file.tracks[-1]), *control])) for control in ((7, 70), (10, 90))]
    file.tracks[-1] = with_events(file.tracks[-1], [], sound)
    data = write_events(file)
    project = Project(data, read_tracks(data, "a").tempo_map)
    new = Score([2.0], [3.0], [60], [90], 0.5, program)
    track = read_events(project.beside([Line("new", new)])).tracks[-1]
    assert {e.data[1]: e.data[2] for e in track.events if e.kind == CONTROL and e.data[1] in (7, 10)} == kept


def channel_in(track):
    return next(event.channel for event in track.events if event.begins)


CHOIR = """X:1
T:Hymn
M:4/4
L:1/4
K:C
V:1 name="Voice"
V:2 name="Voice"
V:3 name="Voice"
V:4 name="Voice" clef=bass
[V:1] "C"c d e d | c2 z2 |
w: a b c d e
[V:2] G2 G2 | "G"G2 z2 |
w: f g h
[V:3] E2 D2 | E2 z2 |
w: i j k
[V:4] C, D, C, B,, | C,2 z2 |
w: l m n o p
"""


def lyrics_of(notation):
    return [[each.text for each in part.lyrics] for part in notation.parts]


def test_what_is_written_again_loses_its_words_alone(tmp_path):
    (tmp_path / "a.abc").write_text(CHOIR)
    (music,) = musictx.load("harmoniser").accompany(tmp_path / "a.abc", rewrite="A")
    notation, losses = music.written("a")
    symbols = [str(each.root) for each in notation.symbols]
    sung = lyrics_of(notation)
    if music.new_notes.pitch.tolist() == [67] * 3:  # the same alto
        assert sung[1] == [*"fgh"]
    else:
        assert sung[1] == []
    assert (sung[0], sung[2:], symbols) == ([*"abcde"], [[*"ijk"], [*"lmnop"]], ["C", "G"])
    assert not losses["lyrics"]


def test_staves_of_one_name_keep_their_own_words(tmp_path):
    given = read_notation(CHOIR.encode(), "abc")[0]
    rests = Part("Voice", 0, (), (Syllable(0, 1, "lost"),))
    moved = replace(given.parts[2], transposed=(Transposed(0, -2),))
    given = replace(given, parts=(rests, *given.parts[:2], moved, given.parts[3]))
    bare = replace(given, parts=tuple(replace(each, lyrics=(), transposed=()) for each in given.parts[1:]), symbols=())
    whole, lost = bare.with_texts(given, np.inf, np.inf)
    assert (whole.parts, lost) == (given.parts[1:], 1)
    assert whole.symbols == tuple(each._replace(staff=max(each.staff - 1, 0)) for each in given.symbols)


def test_both_scores_around_new_music_keep_their_words(lead, tmp_path):
    file, (_, _, symbols, sung) = lead
    (tmp_path / "b.abc").write_text(CHOIR)
    (music,) = musictx.load("piano").fill_between(file, tmp_path / "b.abc", bars=1)
    notation, losses = music.written("a")
    later = round(music.new_to_s / music.score.quarter_s)
    assert [(each.onset // 24, str(each.root)) for each in notation.symbols] == [
        *symbols,
        (later, "C"),
        (later + 4, "G"),
    ]
    assert sum(map(len, lyrics_of(notation))) == len(sung) + 16
    assert not losses["lyrics"]


def test_words_of_a_packed_score_come_back(lead, tmp_path):
    file, words = lead
    with gzip.open(tmp_path / "lead.abc.gz", "wb") as packed:
        packed.write(file.read_bytes())
    (music,) = musictx.load("chorale").continue_midi(tmp_path / "lead.abc.gz", bars=1)
    music.write(tmp_path / "a.musicxml")
    assert words_of(tmp_path / "a.musicxml") == words


def test_a_mistake_in_a_file_of_chords_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("musictx.generate.score_chords.MOST_CHORDS", 40)
    (tmp_path / "long.abc").write_text("X:1\nM:1/4\nL:1/4\nK:C\n" + "C|" * 41 + "\n")
    with pytest.raises(ConfigError, match=r"^chords=.*long\.abc: they are found in 41 bars"):
        Control(chords=str(tmp_path / "long.abc")).read()
