"""New bars in a person's file: its events stay, and new notes are as loud as those near them."""

import io
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import mido
import pytest
from projects import band, project, track
from projects import note as strike
from small_scores import PLAIN, SCORE, SONG, TUNE_NOTES, drawn, in_file, player, sounds

from musictx.errors import PerformanceError, TokenError, UserError
from musictx.generate.requests import Accompany, Continue, Fill, Length
from musictx.generate.score_seeds import read_score
from musictx.generate.score_tasks import task_of
from musictx.model.packaged import seed_path
from musictx.music.midi_file import TEXT, Event, EventFile, EventTrack, in_order, notes_of, read_events, write_events
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.write import to_musicxml
from musictx.music.project import Line, Project
from musictx.music.read import read_tracks, score_of
from musictx.music.score import Score


def test_the_faults_of_a_file_are_said(tmp_path):
    path = in_file(SONG, tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert "it is cut short: what is there" in read_score(path, SCORE).remarks[0]


def test_markers_and_pedals_that_stay_in_the_file_are_no_loss_of_a_seed(tmp_path):
    path = in_file(SONG, tmp_path)
    file = read_events(path.read_bytes())
    kept = [Event(0, b"\xff\x06\x01A"), Event(0, b"\xb0\x40\x7f"), Event(0, b"\xe0\x00\x50")]
    tracks = [track._replace(events=[*kept, *track.events]) for track in file.tracks]
    path.write_bytes(write_events(file._replace(tracks=tracks)))
    assert score_of(path.read_bytes(), path)[1] == dict.fromkeys(("markers", "pedals", "bends"), len(tracks))
    assert read_score(path, SCORE).remarks == ()
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1)))
    assert music.write(tmp_path / "longer.mid") == ""
    assert music.write(tmp_path / "new.musicxml", alone=True) == ""
    said = music.write(tmp_path / "longer.musicxml")  # which lacks them
    assert all(word in said for word in ("markers", "presses of the sustain pedal", "pitch bends"))


def test_files_that_are_no_scores_are_one_line(tmp_path):
    request = Continue(PLAIN)
    with pytest.raises(PerformanceError, match="give bundle=piano"):
        drawn(seed_path("elise"), request)
    crowd = tuple(Part("Strings", 48, (Note(0, 24, n), Note(0, 24, n + 40))) for n in range(64))
    with pytest.raises(UserError, match="256 staves"):
        drawn(
            in_file(
                replace(SONG, parts=tuple(replace(part, name=str(n)) for part in crowd for n in range(4))), tmp_path
            ),
            request,
        )
    long = Notation(SONG.parts, (Bar(0, 40, 4),), 960)
    with pytest.raises(TokenError, match=r"seed\.mid: bar 1 is in 40/4"):
        drawn(in_file(long, tmp_path), request)
    empty = tmp_path / "empty.abc"
    empty.write_text("X:1\nM:4/4\nL:1/4\nK:C\nz4|z4|\n")
    with pytest.raises(UserError, match="no notes"):
        drawn(empty, request)


def test_a_file_of_one_track_keeps_its_format(tmp_path):
    """All channels in a single track are format 0; where new notes bring a track, there are tracks side by side."""
    path = in_file(SONG, tmp_path, 160)  # without a tick for each unit
    was = read_events(path.read_bytes())
    events = in_order(event for track in was.tracks for event in track.events)
    path.write_bytes(write_events(EventFile(was.division, [EventTrack(events, was.tracks[0].end)], 0)))
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1)))
    (track,) = mido.MidiFile(file=io.BytesIO(music.midi("a remark"))).tracks
    assert read_events(music.midi("a remark")).format == read_events(path.read_bytes()).format == 0
    assert len({message.channel for message in track if message.type == "note_on"}) == len(SONG.parts)
    project = Project(path.read_bytes(), read_tracks(path.read_bytes(), path).tempo_map)
    both = read_events(project.beside([Line("new", Score([0.0], [1.0], [60], [64]))]))
    assert (both.format, len(both.tracks)) == (1, 2)


def test_all_events_of_a_project_stay(tmp_path):
    """Tempo map, drums, markers, bends and a pedal."""
    path = tmp_path / "band.mid"
    path.write_bytes(band().data)
    was = read_events(path.read_bytes()).tracks
    (music,) = drawn(path, Continue(PLAIN, Length(bars=6)))
    now = read_events(music.midi("a remark")).tracks
    assert len(now) == len(was)
    for old, new in zip(was, now, strict=True):
        assert not Counter(old.events) - Counter(new.events)
    assert [e.data[1] for e in now[0].events if e not in was[0].events] == [TEXT]
    new = sounds(music.midi()) - sounds(path.read_bytes())
    assert {(t, channel) for t, _, _, channel, *_ in new} == {(1, 0), (2, 1)}
    assert all(on >= 768 for _, on, *_ in new)
    assert music.new_from_s == 7.0  # two quarters of half a second, then six of one
    (music,) = drawn(path, Fill(PLAIN, from_bar=2, to_bar=2, only="cello"))
    now = read_events(music.midi()).tracks
    assert [now[n] for n in (0, 1, 3)] == [was[n] for n in (0, 1, 3)]
    assert [n.on for n in notes_of(now[2]) if n.on < 384] == [0, 192]
    assert len(notes_of(now[2])) - 2 == len(music.new_notes)


def test_a_note_without_an_end_stays_as_long(tmp_path):
    path = tmp_path / "hangs.mid"
    path.write_bytes(project(track(Event(0, b"\x90\x3c\x50"), strike(0, 384, 64))).data)
    (music,) = drawn(path, Continue(PLAIN, Length(bars=4)))
    assert not sounds(path.read_bytes()) - sounds(music.midi())


def test_new_notes_are_as_loud_as_those_before(tmp_path):
    path = in_file(SONG, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\x90C\x50", b"\x90C\x21").replace(b"\x90H\x50", b"\x90H\x21"))
    (music,) = drawn(path, Continue(PLAIN, Length(bars=4)))
    new = sounds(music.midi()) - sounds(path.read_bytes())
    assert {velocity for t, *_, velocity in new if t == 1} == {33}
    assert {velocity for t, *_, velocity in new if t > 1} == {80}
    assert Counter(music.score.velocity.tolist()) == Counter(n[-1] for n in sounds(music.midi()).elements())


def played(data):
    """The velocities of each track with notes."""
    tracks = [[note.velocity for note in sorted(notes_of(track))] for track in read_events(data).tracks]
    return [each for each in tracks if each]


def test_humanize_says_how_loud_new_notes_are_and_nothing_of_old_ones(tmp_path):
    file = tmp_path / "song.mid"
    file.write_bytes(to_midi(SONG))
    plain, human = (
        task_of(file, SCORE, Continue(PLAIN, Length(bars=8), humanize=humanize)).draw(player(), SCORE)[0]
        for humanize in (False, True)
    )
    assert plain.notation == human.notation
    new = set[int]()
    for part, before, after in zip(SONG.parts, played(plain.midi()), played(human.midi()), strict=True):
        assert set(before) == {80}
        assert after[: len(part.notes)] == before[: len(part.notes)]
        new |= {*after[len(part.notes) :]}
    assert len(new) > 1
    assert {*human.score.velocity.tolist()} == {80, *new}


def test_humanize_plays_all_of_a_score_that_had_no_loudness(tmp_path):
    file = tmp_path / "song.musicxml"
    file.write_bytes(to_musicxml(SONG)[0])
    (human,) = task_of(file, SCORE, Continue(PLAIN, Length(bars=1), humanize=True)).draw(player(), SCORE)
    assert all(len({*each}) > 1 for each in played(human.midi()))


def test_new_parts_have_ids_of_their_own_and_texts_stay(tmp_path):
    like_ours = f'q id="I{"0" * 32}" w'
    text = to_musicxml(Notation((Part(like_ours, 40, TUNE_NOTES),), SONG.bars, SONG.end), like_ours)[0]
    text = text.replace(b'"P1"', b'"Flute"').replace(b"P1-I1", b"P1-I2").replace(b"Flute", b"P2")
    (path := tmp_path / "tune.musicxml").write_bytes(text)
    (music,) = drawn(path, Accompany())
    music.write(out := tmp_path / "out.musicxml")
    root = ElementTree.parse(out).getroot()
    parts = [part.get("id") for part in root.iter("part")]
    sounds = [each.get("id") for each in root.iter("score-instrument")]
    assert parts[0] == "P2"
    assert parts == [part.get("id") for part in root.iter("score-part")]
    assert len({*parts, *sounds}) == len(parts) + len(sounds) >= 4
    assert [root.findtext(f".//{name}") for name in ("work-title", "part-name")] == [like_ours] * 2
