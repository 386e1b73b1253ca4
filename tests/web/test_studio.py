"""What the page can do, asked without a page."""

import json
import os
import re
import time
from base64 import b64decode
from dataclasses import replace
from html import unescape
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from urllib.parse import unquote

import numpy as np
import pytest
import soundfile
from strategies import slowing
from stubs import whole
from wishes import HYMN, more, now, quiet, region, voices

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.continuation import Continuation
from musictx.generate.draw import Drawing
from musictx.generate.open_bundle import open_bundle
from musictx.generate.requests import Sampling
from musictx.music.grid import grid_to_score, score_to_grid
from musictx.music.midi_file import Event, EventFile, EventTrack, meta, read_events, write_events
from musictx.music.read import read_midi
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi
from musictx.web import draw, stage
from musictx.web.fit import fit
from musictx.web.page import Page
from musictx.web.session import OLD_HUNDREDTH, PageMusic, Session, Step, Visit
from musictx.web.studio import Studio


@pytest.fixture(scope="module")
def opened(world):
    return open_bundle(world.hymn_bundle, "cpu", "auto")


@pytest.fixture
def studio(opened, tmp_path):
    return Studio({"hymns": opened}, tmp_path)


def files(page):
    return {path.rpartition(".")[2]: unquote(path) for path in re.findall(r'gradio_api/file=([^"]+)', page)}


def test_the_way_from_an_example_and_back(studio):
    said: list[tuple[float, float]] = []
    begun = studio.example(Session(), HYMN)
    after, what = whole(studio.go_on(begun, more(), lambda *of: said.append(of)))
    assert what.startswith("2 variations of Old Hundredth, in ")
    assert len(said) > 2
    assert said == sorted(said)
    assert 3 < said[-1][0] < 10
    assert said[-1][1] == 4.0
    primer = now(begun).music.score.clip(0, 2.4)
    for take in now(after).takes:
        assert take.new_from_s == pytest.approx(2.4)
        assert take.score.clip(0, 2.4) == primer
    chosen = after.choose(1)
    assert chosen.choose(2) == chosen.choose(-1) == chosen
    further = studio.begin_from_take(chosen)
    assert now(further).music.score == now(after).takes[1].score
    assert now(further).name == "Old Hundredth-2"
    assert further.undo() == chosen
    assert further.undo().undo().undo() == Session()


def test_a_step_is_led_seen_and_heard_and_its_files_are_written_once(studio):
    assert "appears here" in studio.show(Session())
    begun = studio.example(Session(), HYMN)
    assert f'"whole_s": {now(begun).score.duration_s}' in unescape(studio.show(begun))  # a motif can be chosen from it
    wish = more(chords=" G | D G ", key="G major", lowest=40, highest=79)
    session, _ = whole(studio.go_on(begun, wish, quiet))
    for take in now(session).takes:
        spans = [
            ("G", 2.4, 4.8),
            ("D", 4.8, 6.0),
            ("G", 6.0, pytest.approx(6.3)),
        ]  # the last sixteenth within four seconds
        assert [chord[:3] for chord in take.chords] == spans
        assert take.became.endswith("% in G major")
        assert (take.new_notes.pitch.min() >= 40, take.new_notes.pitch.max() <= 79) == (True, True)
    page = studio.show(session)
    roll = json.loads(unescape(re.findall(r'data-roll="([^"]+)"', page)[0]))
    assert roll["whole_s"] is None
    assert [box["panel"] for box in roll["boxes"]] == [box["panel"] for box in roll["narrow"]] == [0, 1]
    assert all(0 < box["top"] < box["top"] + box["height"] < 1 and box["start_s"] == 0 for box in roll["boxes"])
    for svg in re.findall(r'base64,([^"]+)"', page):
        assert now(session).takes[1].became in b64decode(svg).decode()
        assert re.search(r">D( \d+%)?<", b64decode(svg).decode())
    assert page.count("data-take=") == 2
    taken = files(page)
    assert read_midi(taken["mid"]).clip(0, 2.4).pitch.tolist() == now(session).score.clip(0, 2.4).pitch.tolist()
    samples, rate = soundfile.read(taken["wav"])
    assert len(samples) / rate > 6
    assert np.abs(samples).max() > 0.6
    assert studio.show(session) == page != studio.show(session.choose(1))
    assert len(list(studio.folder.iterdir())) == 3
    for place in studio.folder.iterdir():
        os.utime(place, (0, 0))  # long ago
    assert all(os.path.exists(path) for path in files(studio.show(session)).values())
    assert len(list(studio.folder.iterdir())) == 1


def test_arcs_of_the_note_that_is_clicked(opened, tmp_path):
    studio = Studio({"hymns": opened, "deaf": opened}, tmp_path)
    session = Session().push(Step(fit(studio.examples[HYMN], opened.tokenizer)._replace(model="hymns")))
    score = now(session).score
    note = studio.reader(session)[0].nearest(score, float(score.onset_s[9]) + 0.1, float(score.pitch[9]))
    assert (score.onset_s[note], score.pitch[note]) == (score.onset_s[9], score.pitch[9])
    for layer in (None, 0):
        assert studio.arcs(session, note, layer).startswith('<img alt="attention arcs" src="data:image/svg+xml')
    with pytest.raises(UserError, match="the first"):
        studio.arcs(session, 3, None)
    studio.readers["deaf"].model = None
    with pytest.raises(UserError, match="no attention"):
        studio.arcs(Session().push(Step(now(session).music._replace(model="deaf"))), 3, None)


@pytest.mark.parametrize(
    ("own", "change", "sampling"),
    [
        ({}, {}, Sampling()),  # who moves no slider asks as a command does
        ({}, {"top_p": 0.5, "seed_guidance": 0.0}, Sampling(top_p=0.5, seed_guidance=None)),
        ({"seed_guidance": 2.0}, {"seed_guidance": 2.0}, Sampling()),
        ({"seed_guidance": 2.0}, {"seed_guidance": 0.0}, Sampling(seed_guidance=None)),
        ({"sampler": {"top_p": None, "min_p": 0.02}}, {"top_p": 1.0}, Sampling()),
        ({"sampler": {"top_p": None, "min_p": 0.02}}, {"top_p": 0.5}, Sampling(top_p=0.5)),
        ({}, {"top_p": 1.0}, Sampling(top_p=1.0)),
    ],
)
def test_a_slider_where_the_model_put_it_leaves_it_to_the_bundle(opened, own, change, sampling):
    assert draw.sampling_of(more(**change).sampling, replace(opened.header, notes=own)) == sampling


def test_a_short_motif_is_continued_whoever_asks_for_guidance(opened, tmp_path, monkeypatch):
    drawing = Mock(side_effect=Drawing)
    monkeypatch.setattr(draw, "Drawing", drawing)
    studio = Studio({"hymns": opened._replace(header=replace(opened.header, notes={"seed_guidance": 2}))}, tmp_path)
    whole(studio.go_on(studio.example(Session(), HYMN), more(seed_guidance=2.0, from_s=0.6), quiet))
    assert drawing.call_args.kwargs["own"] == {"seed_guidance": 2.0}
    whole(studio.go_on(studio.example(Session(), HYMN), more(seed_guidance=1.0, from_s=0.6), quiet))


def test_music_is_shown_while_it_is_drawn(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(draw, "FIRST_S", 0.0)
    studio = Studio({"hymns": opened}, tmp_path)
    answer = studio.go_on(studio.example(Session(), HYMN), more(length_s=8), quiet)
    first = next(answer)
    assert "<svg" in b64decode(stage.sketch(first).split("base64,")[1].split('"')[0]).decode()
    session, _ = whole(answer)
    assert len(first.takes) == len(now(session).takes) == 2
    for early, late in zip(first.takes, now(session).takes, strict=True):
        assert early.new_from_s < early.score.duration_s < late.score.duration_s
        over = early.score.select(early.score.offset_s < early.score.duration_s - 1e-6)  # others may ring longer
        found, whole_music = ({*zip(score.onset_s, score.pitch, strict=True)} for score in (over, late.score))
        assert len(found) > 4
        assert found <= whole_music


def test_a_mistake_after_a_sketch_gives_the_stage_back(studio):
    begun = studio.example(Session(), HYMN)

    def answer():
        yield now(begun)
        raise UserError("no numbers")

    page: Any = SimpleNamespace(studio=studio, stage="stage", status="status")
    shown = Page._under_way(page, Visit(begun), begun, answer())
    sketch = next(shown)
    assert 'class="sketch"' in sketch["stage"]
    assert "so far" in sketch["status"]
    assert next(shown)["stage"] == studio.show(begun)
    with pytest.raises(UserError, match="no numbers"):
        next(shown)


def test_time_runs_out(opened, tmp_path, monkeypatch):
    clock = count(time.monotonic(), 0.01)  # a look at it takes so many seconds
    monkeypatch.setattr(draw, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    studio = Studio({"hymns": opened}, tmp_path, Limits(seconds=0.7))
    session, what = whole(studio.go_on(studio.example(Session(), HYMN), more(length_s=60), quiet))
    assert what.startswith("Stopped at the time limit of 0.7 s: ")
    assert 2.4 < now(session).score.duration_s < 40
    studio = Studio({"hymns": opened}, tmp_path, Limits(seconds=-1))
    with pytest.raises(UserError, match="before any music"):
        whole(studio.go_on(studio.example(Session(), HYMN), more(), quiet))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"length_s": 61}, "^length_s=61: "),
        ({"length_s": float("nan")}, "^seconds=nan: "),
        ({"variations": 5}, "^variations=5: "),
        ({"temperature": -1}, "^temperature=-1: "),
        ({"from_s": None}, "^from_s=null: "),
        ({"chords": "C | F#", "key": "D minor"}, "^chords=F#: F# is outside key=D minor"),
        ({"density": 6}, "^density=6.*chorale"),  # its message comes from the encoding
        ({"lowest": 72, "highest": 48}, "^lowest=C5: give a note below highest=C3$"),
    ],
)
def test_wishes_beyond_what_is_allowed(studio, change, reason):
    with pytest.raises(UserError, match=reason):
        whole(studio.go_on(studio.example(Session(), HYMN), more(**change), quiet))


def test_without_music_there_is_nothing_to_do(studio, opened):
    late = PageMusic("late", Score([5.0], [6.0], [60], [80]), Meter(0.5))
    with pytest.raises(UserError, match="^no note begins in so short a primer: take more of the music$"):
        draw.draw_takes(late, more(from_s=1.0), opened, draw.Turn(Limits(), quiet, lambda: False))
    with pytest.raises(UserError, match="no music to continue"):
        whole(studio.go_on(Session(), more(), quiet))
    with pytest.raises(UserError, match="no music to fill"):
        whole(studio.fill(Session(), region(1.0, 2.0), quiet))
    with pytest.raises(UserError, match="no melody yet"):
        studio.harmonise(Session(), voices(), quiet)
    with pytest.raises(UserError, match="no music yet"):
        studio.arcs(Session(), 3, None)


def test_neither_steps_nor_names_nor_music_grow_for_ever(studio):
    session = studio.example(Session(), HYMN)
    for _ in range(40):
        session = session.push(now(session)._replace(takes=(Continuation(now(session).score, 1.0),))).go_on()
    assert len(session.steps) == 20
    assert now(session).name == "Old Hundredth" + 23 * "-1"
    studio.limits = Limits(music_s=5)
    with pytest.raises(UserError, match="more than 5 s"):
        studio.begin_from_take(session.undo())


@pytest.fixture(scope="module")
def both(world):
    """A small model of each kind, under the names of those inside the package."""
    bundles = {"piano": world.bundle, "chorale": world.hymn_bundle}
    return {name: open_bundle(bundle) for name, bundle in bundles.items()}


def test_the_model_that_suits_the_music_is_begun_with(both, tmp_path):
    studio = Studio(both, tmp_path)
    for name, model in {"Ode to Joy": "piano", "The opening of a chorale": "chorale", HYMN: "chorale"}.items():
        music = now(studio.example(Session(), name)).music
        assert music.model == model
        assert f"The {model} model plays, since " in music.note
    assert " since Old Hundredth is four voices" in music.note


def test_only_what_is_taken_of_the_music_chooses(both, tmp_path, world):
    studio = Studio(both, tmp_path, Limits(music_s=1.0))
    hymn = read_midi(world.hymn)
    write_midi(
        Score.merge([hymn, Score([2.03], [2.5], [60], [80], hymn.quarter_s)], hymn.quarter_s), tmp_path / "a.mid"
    )
    music = now(studio.upload(Session(), (tmp_path / "a.mid").read_bytes(), "a.mid")).music
    assert music.model == "chorale"
    assert " first 1 s. The chorale model plays" in music.note


def test_a_chorale_that_slows_down_is_on_the_grid_to_one_model_and_as_it_sounds_to_the_other(both, tmp_path):
    studio, hymn = Studio(both, tmp_path), grid_to_score(np.repeat(OLD_HUNDREDTH, 4, axis=0).astype(np.int16))
    path = slowing(hymn, tmp_path / "slow.mid")
    begun = studio.upload(Session(), path.read_bytes(), "slow.mid")
    assert re.fullmatch(r"[^.]*tempo[^.]*\. The chorale model plays, since slow [^.]*\.", now(begun).music.note)
    assert np.array_equal(score_to_grid(now(begun).music.score), score_to_grid(hymn))
    assert now(begun).music.meter.bars_s(4.0).tolist() == pytest.approx([0.0, 2.4, 4.8])
    played, _ = whole(studio.go_on(begun, more(variations=1), quiet, "piano"))
    assert now(played).music.score == read_midi(path)
    assert now(played).music.score.duration_s > 1.4 * hymn.duration_s
    assert "tempo" not in now(played).music.note
    again, _ = whole(studio.go_on(played, more(variations=1), quiet, "chorale"))
    assert now(again).music.score == now(begun).music.score


def test_what_the_grid_does_to_notes_and_who_is_heard_as_a_piano_is_said(both, tmp_path):
    studio = Studio(both, tmp_path)
    flute = Score([0.0, 0.5, 1.01], [0.5, 1.0, 1.4], [72, 72, 74], [80] * 3, 0.5, np.array(73))
    write_midi(flute, tmp_path / "a.mid")
    begun = studio.upload(Session(), (tmp_path / "a.mid").read_bytes(), "a.mid")
    assert re.search(r"program 73[^.]*\. The piano ", now(begun).music.note)
    _, said = whole(studio.go_on(begun, more(variations=1), quiet, "chorale"))
    assert re.search(r"its 3 notes [^.]* 1 as held [^.]*\.$", said)


def test_another_model_hears_the_music_as_it_came(both, tmp_path):
    studio = Studio(both, tmp_path)
    begun = studio.example(Session(), "Satie: Gymnopédie")
    after, said = whole(studio.go_on(begun, more(), quiet, "chorale"))
    assert now(after).music.model == "chorale"
    assert now(after).music.score.velocity.tolist() == [80] * len(now(after).music.score)
    assert "the model's 4 voices" in said
    back, said = whole(studio.go_on(after, more(), quiet, "piano"))
    assert now(back).music.score == now(begun).music.score
    assert "voices" not in said


def test_what_a_person_drops_comes_back_with_new_music_in_it(filling, tmp_path):
    """A band of three, with a tempo map: continued, gone on from, filled."""
    data = project_file([("Violin", 0, 72), ("Cello", 1, 48), ("Drums", 9, 36)])
    studio = Studio({"hymns": open_bundle(filling)}, tmp_path)
    begun = studio.upload(Session(), data, "band.mid")
    assert now(begun).midi == data
    after, _ = whole(studio.go_on(begun, more(3.0), quiet))
    was, files_of = read_events(data).tracks, files(studio.show(after))
    made = read_events(Path(files_of["mid"]).read_bytes()).tracks
    assert [track.name for track in made[:4]] == ["", "Violin", "Cello", "Drums"]
    assert made[0] == was[0]
    assert len(made) > 4
    filled, _ = whole(studio.fill(studio.begin_from_take(after), region(1.0, 2.0), quiet))
    last = read_events(now(filled).midi).tracks
    assert last[0] == was[0]
    assert last[3] == made[3]
    assert [track.name for track in last[: len(made)]] == [track.name for track in made]
    assert {track.name for track in last[len(made) :]} <= {"musictx"}  # where a pitch sounds already


def project_file(parts):
    conductor = [Event(480 * k, b"\xff\x51\x03" + (500_000 + 20_000 * k).to_bytes(3)) for k in range(8)]
    tracks = [EventTrack(conductor, 8 * 480)]
    for name, channel, pitch in parts:
        notes = [
            Event(480 * k + at, bytes([kind | channel, pitch + k % 5, 80]))
            for k in range(10)
            for at, kind in ((0, 0x90), (479, 0x80))
        ]
        tracks.append(EventTrack([meta(0, 3, name), *notes], 4800))
    return write_events(EventFile((480).to_bytes(2), tracks))
