"""Scores on the page: whole bars are drawn, engraved and handed out. The model knows nothing."""

import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import gradio as gr
import pytest
from stubs import whole
from untrained import write_harmoniser, write_score_model
from wishes import hands, now, quiet, region, voices

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.open_bundle import open_bundle
from musictx.generate.primer import Part as Primer
from musictx.generate.requests import Continue, Length
from musictx.generate.score_music import ScoreMusic
from musictx.music.midi_file import Event, EventTrack, notes_of, read_events, write_events
from musictx.music.notation.chord_symbols import ChordSymbol
from musictx.music.notation.lyrics import Syllable
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo
from musictx.music.notation.swing import Swing
from musictx.music.notation.write import to_musicxml
from musictx.music.read import score_of
from musictx.web import engraved
from musictx.web.advice import on_page
from musictx.web.controls import CHOIR, HANDS, Controls
from musictx.web.session import Session
from musictx.web.studio import Studio
from musictx.web.uploads import read_upload

VOICE = Part("Voice", 52, (Note(0, 24, 67), Note(24, 48, 72), Note(72, 24, 71), Note(96, 72, 67), Note(168, 72, 72)))
PIANO = Part("Piano", 0, (Note(24, 72, 48), Note(96, 72, 43), Note(168, 72, 48)))
BARS = (Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4), Bar(168, 3, 4))  # an upbeat
SONG = Notation((VOICE, PIANO), BARS, 240, tempi=(Tempo(0, 60.0),))  # bars of 3 s from 1 s on, to 10 s


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    return open_bundle(write_score_model(tmp_path_factory.mktemp("model") / "score.safetensors", fills=True))


@pytest.fixture
def studio(opened, tmp_path):
    return Studio({"score": opened}, tmp_path)


@pytest.fixture
def begun(studio):
    return studio.upload(Session(), to_midi(SONG), "song.mid")


def bars(count, from_s=10.0, **asked):
    return Continue(length=Length(bars=count), part=Primer(until_s=from_s), **asked)


def sounds(data):
    """Each note of each track."""
    tracks = enumerate(read_events(data).tracks)
    return {(t, n.on, n.off, n.channel, n.pitch) for t, track in tracks for n in notes_of(track)}


def pitches(notation):
    """The place of each note, whatever its staff."""
    return {(note.onset, note.pitch) for part in notation.parts for note in part.notes}


def written(session: Session) -> Notation:
    """The score of the newest step."""
    score = now(session).notation
    assert score is not None
    return score


def test_bars_are_added_filled_and_begun_from(studio, begun):
    said: list[tuple[float, float]] = []
    after, what = whole(studio.go_on(begun, bars(2, variations=2), lambda *of: said.append(of)))
    assert what.startswith("2 variations of song, in ")
    assert said[-1][1] == pytest.approx(6.0)
    for take in now(after).takes:
        assert isinstance(take, ScoreMusic)
        assert take.notation.bars == (*BARS, Bar(240, 3, 4), Bar(312, 3, 4))
        assert take.new_from_s == pytest.approx(10.0)
        assert sounds(to_midi(SONG)) <= sounds(take.midi())
    chosen = after.choose(1)
    data = now(chosen).midi
    further = studio.begin_from_take(chosen)
    assert now(further).midi == data
    assert now(further).notation == now(chosen).notation
    filled, what = whole(studio.fill(further, region(4.5, 6.9), quiet))
    assert " of song-2 from 4.00 to 7.00 s, in " in what
    assert {bar for _, bar in now(filled).new_places} == {2}
    kept = {note for note in sounds(data) if not 4 * 480 <= note[1] < 7 * 480}
    assert kept <= sounds(now(filled).midi)
    again, _ = whole(studio.fill(filled, region(3.0, 5.0), quiet))
    assert {bar for _, bar in now(again).new_places} == {1, 2}
    assert now(again).name == "song-2-1"


def test_arcs_of_the_note_that_is_clicked_in_a_score(studio, begun):
    """At the seconds of the file, whose tempo changes."""
    slower = replace(SONG, tempi=(Tempo(0, 60.0), Tempo(96, 30.0)))
    session, _ = whole(studio.go_on(studio.upload(Session(), to_midi(slower), "song.mid"), bars(1, 16.0), quiet))
    reader, step = studio.reader(session)
    assert reader.layers == 1
    note = reader.nearest(step.score, 6.0, 67.0)  # the last but one of the voice begins at 4 s, lasts to 10 s
    found = reader.trace(step.score).score
    assert (found.onset_s[note], found.offset_s[note], found.pitch[note]) == (4.0, 10.0, 67)
    assert sorted(found.onset_s.tolist()) == pytest.approx(sorted(step.score.onset_s.tolist()))
    assert studio.arcs(session, note, 0).startswith('<img alt="attention arcs" src="data:image/svg+xml')
    assert studio.arcs(begun, 3, None).startswith('<img alt="attention arcs"')


def test_music_that_swings_goes_on_and_is_looked_at_where_it_sounds(studio):
    late = replace(VOICE, notes=tuple(Note(6 * k, 6, 60 + k % 7) for k in range(64)))
    swinging = Notation((late,), tuple(Bar(96 * n, 4, 4) for n in range(4)), 384, swing=Swing(12, 7.0))
    session, _ = whole(studio.go_on(studio.upload(Session(), to_midi(swinging), "song.mid"), bars(2, 8.0), quiet))
    assert {note[1] / 20 % 12 for note in sounds(now(session).midi)} == {0, 7}
    assert {note.onset % 6 for part in written(session).parts for note in part.notes} == {0}
    reader, step = studio.reader(session)
    found = reader.trace(step.score).score
    assert sorted(found.onset_s.tolist()) == pytest.approx(sorted(step.score.onset_s.tolist()))


def test_a_remark_on_the_score_comes_with_new_bars(studio):
    file = read_events(to_midi(SONG))
    clock, later = file.tracks[0], Event(6000, b"\xff\x58\x04\x04\x02\x18\x08")  # behind the last bar
    tracks = [EventTrack([*clock.events, later], later.tick), *file.tracks[1:]]
    begun = studio.upload(Session(), write_events(file._replace(tracks=tracks)), "song.mid")
    _, what = whole(studio.go_on(begun, bars(1, variations=1), quiet))
    assert what.endswith(" song: new bars are in 3/4, also where the file says a later meter.")


def test_a_tune_gets_a_piano_in_new_staves(studio):
    begun = studio.upload(Session(), to_midi(replace(SONG, parts=(VOICE,))), "tune.mid")
    after, what = studio.accompany(begun, hands(voices="B", seed_guidance=0.0), quiet)
    assert what.startswith("2 variations of tune with a piano, in ")
    step = now(after)
    assert (step.is_accompaniment, step.is_fill, step.is_continuation) == (True, False, False)
    assert step.notation is not None
    assert step.new_places == {(staff, bar) for staff in (1, 2) for bar in range(len(step.notation.bars))}
    assert step.notation.parts[0].notes == VOICE.notes
    assert len(step.notation.parts) == 3
    assert sounds(now(begun).midi) <= sounds(step.midi)
    with pytest.raises(UserError, match="^seed_guidance="):  # the page does not ask for it
        studio.accompany(after, voices(seed_guidance=1.0), quiet)
    again, _ = studio.accompany(after, hands(), quiet)
    assert now(again).music is step.music
    with pytest.raises(UserError, match=r"^tune-1: it has both hands already"):
        studio.accompany(studio.begin_from_take(after), hands(), quiet)


def test_the_stage_shows_the_score_and_hands_out_what_reads_back(studio):
    written, _ = to_musicxml(replace(SONG, parts=(replace(VOICE, name="<script>alert(1)</script>"), PIANO)))
    begun = studio.upload(Session(), written, "song.musicxml")
    after, _ = whole(studio.go_on(begun, bars(1, variations=1), quiet))
    page = studio.show(after)
    paths = [Path(unquote(path)) for path in re.findall(r'<a href="gradio_api/file=([^"]+)"', page)]
    assert [path.name for path in paths] == ["song-1.mid", "song-1.wav", "song-1.musicxml"]
    seed, _ = score_of(written, "song.musicxml")
    for path in (paths[0], paths[2]):
        back, _ = score_of(path.read_bytes(), path)
        assert pitches(seed) <= pitches(back)
        assert len(back.bars) == 5
    (score,) = re.findall(r'<img alt="score" src="data:image/svg\+xml;base64,([^"]+)"', page)
    svg = b64decode(score).decode()
    for element in ElementTree.fromstring(svg).iter():
        assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "image", "a", "iframe")
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert not name.endswith("href") or value.startswith("#")
    assert 0.2 < float(re.findall(r'data-new="([^"]+)"', page)[0]) < 1
    staves = re.findall(r'class="staff"( color)?', svg)
    assert [bool(colour) for colour in staves] == [False] * 8 + [True] * 2


def test_notation_keeps_what_midi_lacks_from_step_to_step(studio):
    symbols = (
        ChordSymbol(24, "F", "major", ""),
        ChordSymbol(120, "C", "dominant", "7"),
        ChordSymbol(192, "F", "major", ""),
    )
    words = tuple(Syllable(note.onset, 1, f"s{n}", ends=n != 1) for n, note in enumerate(VOICE.notes))
    tune = replace(VOICE, lyrics=words)
    sheet = replace(SONG, parts=(tune,), symbols=symbols, title="A tune", composer="Nobody")
    begun = studio.upload(Session(), to_musicxml(sheet)[0], "sheet.musicxml")
    bare = studio.upload(Session(), to_midi(sheet), "sheet.mid")
    assert not written(bare).symbols
    steps = [begun, whole(studio.go_on(begun, bars(1), quiet))[0]]
    steps.append(studio.begin_from_take(steps[-1].choose(1)))
    steps.append(whole(studio.fill(steps[-1], region(4.5, 6.9), quiet))[0])
    steps.append(studio.begin_from_take(steps[-1]))
    steps.append(studio.accompany(steps[-1], hands(chords="seed"), quiet)[0])
    for session in steps:
        score = written(session)
        assert (score.title, score.composer) == ("A tune", "Nobody")
        assert score.symbols == symbols
        assert score.parts[0].name == "Voice"
        filled = session in steps[3:]  # from 96 to 168
        assert score.parts[0].lyrics == tuple(each for each in words if not filled or not 96 <= each.onset < 168)
        back, _ = score_of(engraved.engrave(score, "song", ()).musicxml, "back.musicxml")
        assert back.symbols == symbols
    assert [len(written(session).parts) for session in steps] == [1, 1, 1, 1, 1, 3]
    assert [len(written(session).bars) for session in steps] == [4, 5, 5, 5, 5, 5]


def test_words_of_bars_that_are_filled_leave_the_midi_file_too(studio):
    words = tuple(Syllable(note.onset, 1, f"s{n}") for n, note in enumerate(VOICE.notes))
    song = replace(SONG, parts=(replace(VOICE, lyrics=words), PIANO))
    filled, _ = whole(studio.fill(studio.upload(Session(), to_midi(song), "song.mid"), region(4.5, 6.9), quiet))
    kept = tuple(each for each in words if not 96 <= each.onset < 168)
    assert len(kept) < len(words)
    assert written(filled).parts[0].lyrics == kept
    assert score_of(now(filled).midi, "song.mid")[0].parts[0].lyrics == kept


@pytest.mark.parametrize(("most_s", "count"), [(6.9, 2), (7.0, 3), (9.99, 3), (10.0, 4)])
def test_notation_that_is_too_long_ends_with_a_whole_bar(opened, tmp_path, most_s, count):
    short = Studio({"score": opened}, tmp_path, Limits(music_s=most_s))
    sheet = replace(SONG, symbols=(ChordSymbol(24, "F", "major", ""), ChordSymbol(168, "C", "major", "")))
    begun = short.upload(Session(), to_musicxml(sheet)[0], "sheet.musicxml")
    step, score = now(begun), written(begun)
    assert score.bars == BARS[:count]
    assert len(score.symbols) == 1 + (count == 4)
    assert ("takes no longer music" in step.music.note) == (count < 4)
    back, _ = score_of(step.midi, "back.mid")
    assert pitches(back) == pitches(score)
    assert step.score.duration_s == pytest.approx((1, 4, 7, 10)[count - 1])


def test_a_first_bar_that_is_too_long_is_cut(opened, tmp_path):
    short = Studio({"score": opened}, tmp_path, Limits(music_s=0.75))
    begun = short.upload(Session(), to_musicxml(SONG)[0], "a.musicxml")
    assert now(begun).score.duration_s == pytest.approx(0.75)
    assert len(written(begun).bars) == 1


def test_without_verovio_the_roll_is_there_and_a_line(studio, begun, monkeypatch):
    def missing(*_, **__):
        raise UserError("pages need the package verovio, which is not installed", "pip install 'musictx[score]'")

    monkeypatch.setattr(engraved, "pages_of", missing)
    without = engraved.engrave(SONG, "song", ())
    assert (without.svg, b"<score-partwise" in without.musicxml) == ("", True)
    monkeypatch.setattr("musictx.web.stage.engrave_step", lambda *_: without)
    page = studio.show(begun)
    assert page.count("<img") == 1
    assert '<p class="remark">The score is not shown: pages need the package verovio' in page
    assert "musictx[score]" in page
    assert ">MusicXML</a>" in page


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (
            lambda studio, at: studio.go_on(at, bars(21), quiet),
            "new music=21: they last 63 s: give at most 60 s of bars",
        ),
        (lambda studio, at: studio.go_on(at, bars(1.5), quiet), "new music=1.5: .* whole"),
        (lambda studio, at: studio.go_on(at, bars(1, from_s=None), quiet), "fill from=null: give the second"),
        (lambda studio, at: studio.go_on(at, bars(1, variations=9), quiet), "variations=9: "),
        (
            lambda studio, at: studio.fill(at, region(0.2, 0.8), quiet),
            "fill from=0.2: .* a region within 1.00 s to 10.00 s",
        ),
        (lambda studio, at: studio.fill(at, region(11.0, 12.0), quiet), "fill from=11.0: "),
        (lambda studio, at: studio.fill(at, region(5.0, 4.0), quiet), "fill from=5.0: "),
        (lambda studio, at: studio.fill(at, region(4.0, None), quiet), "there is no region to fill"),
    ],
)
def test_wrong_requests_are_a_line(studio, begun, ask, reason):
    with pytest.raises(UserError) as error:
        whole(ask(studio, begun))
    line = on_page(error.value)
    assert re.search(reason, line), line
    assert "\n" not in line


def test_a_performance_is_no_score_and_time_is_limited(opened, studio, tmp_path):
    with pytest.raises(UserError, match=r"^played is a performance, not a score"):
        studio.phrase(Session(), [[0, 0.31, 60, 80], [0.333, 0.57, 62, 80], [0.71, 1.2, 64, 80]])
    hasty = Studio({"score": opened}, tmp_path / "hasty", Limits(seconds=1e-9))
    with pytest.raises(UserError, match=r"s went by before the bars were whole"):
        whole(hasty.go_on(hasty.upload(Session(), to_midi(SONG), "song.mid"), bars(2), quiet))


def test_a_score_is_for_the_model_of_scores_and_a_performance_for_the_piano(opened, world, tmp_path):
    piano = open_bundle(world.bundle)
    studio = Studio({"piano": piano, "score": opened}, tmp_path)
    song = studio.upload(Session(), to_midi(SONG), "song.mid")
    assert now(song).music.model == "score"
    assert "The score model plays, since song is a score: its notes lie on a grid." in now(song).music.note
    played = studio.phrase(Session(), [[0, 0.31, 60, 80], [0.333, 0.57, 62, 80], [0.71, 1.2, 64, 80]])
    assert now(played).music.model == "piano"
    by_chance = studio.phrase(Session(), [[0, 0.5, 60, 80], [0.5, 1.0, 62, 80], [1.0, 1.5, 64, 80]])
    assert now(by_chance).music.model == "piano"
    assert "is a performance" in now(played).music.note
    assert now(played).notation is None
    other = studio.for_model(now(song).music, "piano")
    assert (other.model, other.notation) == ("piano", None)
    assert len(other.score) == sum(len(part.notes) for part in SONG.parts)


def test_a_page_without_a_model_for_performances_says_so(opened, world, tmp_path):
    page = Studio({"chorale": open_bundle(world.hymn_bundle), "score": opened}, tmp_path)
    with pytest.raises(UserError, match=r"^elise.* is a performance.*, and no model of this page plays such music: "):
        page.example(Session(), next(name for name in page.examples if "elise" in name.lower()))


def test_hands_are_offered_beside_a_tune_and_voices_beside_a_choir(opened, world, tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    harmoniser = open_bundle(write_harmoniser(place / "v.safetensors", hide_source=0.1), continues=False)
    studio = Studio({"chorale": open_bundle(world.hymn_bundle), "score": opened}, place, harmoniser=harmoniser)
    tune = studio.for_model(read_upload(to_midi(replace(SONG, parts=(VOICE,))), "tune.mid", Limits()), "score")
    choir = now(studio.example(Session(), "Old Hundredth, in four voices")).music
    assert choir.model == "chorale"
    with gr.Blocks():
        both, no_choir = Controls(studio), Controls(Studio({"score": opened}, place))
    for music, offered in ((tune, HANDS), (choir, CHOIR)):
        updates = both.beside(music)
        assert updates[both.by]["value"] == offered
        assert [updates[part]["visible"] for part in both.of_choir] == 2 * [offered == CHOIR]
    assert no_choir.beside(tune)[no_choir.by]["value"] == HANDS
    assert no_choir.beside(choir) == {}
