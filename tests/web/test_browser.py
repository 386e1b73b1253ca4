"""One server with the models inside musictx: what strangers' programs get, and what a person does in a real browser.
`MUSICTX_SHOTS=outputs/shots` writes pictures there.
"""

import io
import json
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import chromium
import numpy as np
import pytest
import soundfile
from browsing import SHOTS, Roll, accompany, begin, button, choose, drop, go_on, linked, play, shoot, sliders_at, status
from serving import API, Visitor, as_input, form, served, upload, wish
from waltz import BEAT_S, waltz
from wishes import HYMN

from musictx.model.packaged import FOLDER
from musictx.music.melody import top_line
from musictx.music.read import read_midi, read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.web.session import SHIPPED, examples

WEB = find_spec("gradio")  # which takes seconds to import, and the server is its own process
pytestmark = pytest.mark.skipif(WEB is None, reason="needs the extra web: pip install 'musictx[web]'")
QUEUE = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("server"), f"queue={QUEUE}") as server:
        yield server
        with_music = Visitor(server)
        assert with_music.done(with_music.join("go_on", wish(60.0, 4)))[0]["msg"] == "process_starts"
        assert server.end(signal.SIGINT) == 130  # Ctrl-C while the model works


def test_what_does_not_come_from_the_page_is_refused(server):
    for site in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert server.ask(f"{API}/queue/join", {}, **site)[0] == 421
    for address in ("run/go_on", "call/v2/go_on", "component_server", "cancel"):
        assert server.ask(f"{API}/{address}", {"data": wish(1.0)})[0] == 404  # or it would go past the queue
    body, headers = form(b"one")
    for address, length in (("upload", 2**20 + 2**13 + 1), ("queue/join", 2**18 + 1)):
        assert server.ask(f"{API}/{address}", body, **headers, **{"Content-Length": str(length)})[0] == 413
    for data in (b"--x--", body[:-7] + body):  # no file, two files
        assert server.ask(f"{API}/upload", data, **headers)[0] == 400
    assert server.ask(f"{API}/upload", b"{}", **{"Content-Type": "application/json"})[0] == 400
    for number, session, why in (
        (-1, "x", "no such action"),
        (9999, "x", "no such action"),
        (0, "x" * 65, "at most 64"),
    ):
        asked = {"fn_index": number, "data": [None], "session_hash": session}
        status, text = server.ask(f"{API}/queue/join", asked)
        assert (status, why in json.loads(text)["detail"]) == (400, True)
    assert server.uploads() == []


def test_the_model_works_on_one_request_at_a_time_and_no_more_wait_than_the_queue_holds(server):
    visitors = [Visitor(server) for _ in range(3)]
    with ThreadPoolExecutor(24) as pool:
        joined = list(pool.map(lambda _: visitors[0].join("go_on", wish(1.0)), range(3)))
        said = visitors[0].all_done(joined[0])
        assert [each["msg"] for each in said] == ["process_starts", "process_completed"] * 3
        assert all(each["success"] for each in said[1::2])
        assert {each["event_id"] for each in said} == {event for _, event in joined}
        joined = list(pool.map(lambda k: visitors[k % 3].join("go_on", wish(20.0, 4)), range(3 * QUEUE)))
    assert {status for status, _ in joined} == {200, 503}
    for visitor in visitors:  # a person who leaves gives up the place
        next(visitor.messages())


def test_a_file_is_gone_when_it_is_read_or_its_page_is_gone(server):
    visitor, data = Visitor(server), (FOLDER / "chorale.mid").read_bytes()
    tune = as_input(json.loads(upload(server, data)[1])[0])
    for what in ("my tune: ", "my tune.mid: it waited"):
        assert what in json.dumps(visitor.all_done(visitor.join("upload", [None, tune]))[-1]["output"])
        assert server.uploads() == []
    assert upload(server, b"its page is gone")[0] == 200
    folder = server.uploads()[0].parent
    os.utime(folder, (0, 0))  # long ago
    until = time.monotonic() + 20
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not folder.exists()


def test_a_file_is_neither_fetched_nor_read_elsewhere(server):
    visitor = Visitor(server)
    folder = next(server.temporary.glob("musictx-*/uploads"))
    for path in ("http://example.invalid/x.mid", "/etc/hostname", "x.mid", "\0", f"{folder}/x.mid"):
        for name, data in (("upload", [None, as_input(path)]), ("go_on", [None, as_input(path), *wish(1.0)[2:]])):
            said = visitor.all_done(visitor.join(name, data))
            assert said[-1]["success"] is False
            assert said[-1]["output"]["error"].startswith("this is no file ")


@pytest.fixture(scope="module")
def browser():
    with chromium.chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser, server):
    """Opens the page as another person."""
    with chromium.visiting(browser, server.address, server.address.replace("http", "ws")) as open_page:

        def visited(**how):
            page = open_page(**how)
            page.goto(server.address)
            page.wait_for_selector(".welcome")
            return page

        yield visited


@chromium.needed
def test_a_file_is_continued_heard_taken_home_and_gone_on_from(visit, tmp_path):
    page = visit()
    (tmp_path / "large.mid").write_bytes(bytes(2**20 + 1))
    drop(page, tmp_path / "large.mid")
    page.get_by_text("exceed the maximum allowed size").first.wait_for()
    seed = examples()[SHIPPED["elise"]].score.clip(0, 5.4)
    write_midi(seed, tmp_path / "my motif.mid")
    drop(page, tmp_path / "my motif.mid")
    page.wait_for_selector(".picture")
    seconds = 20 if SHOTS else 2
    go_on(page, seconds)
    status(page, "2 variations of my motif")
    sound = page.locator("audio")
    sound.evaluate("audio => audio.readyState > 0 || new Promise(done => audio.onloadedmetadata = done)")
    assert sound.evaluate("audio => audio.duration") > seconds
    name, data = linked(page, "WAV")
    assert name == "my motif-1.wav"
    assert np.abs(soundfile.read(io.BytesIO(data))[0]).max() > 0.6
    with page.expect_download() as taking:
        page.get_by_role("link", name="MIDI", exact=True).click()
    taking.value.save_as(tmp_path / "home.mid")
    home = read_midi(tmp_path / "home.mid")
    assert home.pitch[: len(seed)].tolist() == seed.pitch.tolist()
    assert len(home) > len(seed)

    box = page.locator(".picture img").bounding_box()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.25 * box["height"])
    arcs = page.locator("#arcs img")
    arcs.wait_for()
    assert sound.evaluate("audio => audio.currentTime") > 3
    before = arcs.get_attribute("src")
    changed = "before => document.querySelector('#arcs img').src != before"
    page.get_by_label("attention of").click()
    page.get_by_role("option", name="layer 0, each head").click()
    page.wait_for_function(changed, arg=before)
    shoot(page, "serve-attention")
    before = arcs.get_attribute("src")
    page.get_by_label("number input for sources of the note").fill("9")
    page.wait_for_function(changed, arg=before)

    page.locator("[data-take='1']").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    assert linked(page, "MIDI")[0] == "my motif-2.mid"
    button(page, "Continue this variation").click()
    page.wait_for_selector("[data-take]", state="detached")
    button(page, "Undo").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    for gone in ("[data-take]", ".picture"):
        button(page, "Undo").click()
        page.wait_for_selector(gone, state="detached")
    page.wait_for_selector(".welcome")
    assert button(page, "Continue").is_disabled()


@chromium.needed
def test_on_a_telephone_the_music_chooses_the_model_and_chords_and_key_are_asked_for(visit):
    page = visit(width=390, height=844)
    page.get_by_text("models and licences").click()
    page.get_by_text("piano, trained on MAESTRO v3.0.0 and ASAP and POP909, licence CC BY-NC-SA 4.0").wait_for()
    begin(page, "Beethoven: Für Elise")
    status(page, "The piano model plays, since elise")
    sliders_at(page, 0.25, 1)
    button(page, HYMN).click()
    status(page, "The chorale model plays, since Old Hundredth is four voices on a grid.")
    page.wait_for_function("document.querySelector('#model input[value=chorale]').checked")
    sliders_at(page, 1.25, 0.98)
    page.locator("#model").get_by_label("piano").check()
    sliders_at(page, 0.25, 1)
    page.locator("#model").get_by_label("chorale").check()
    page.get_by_label("number input for new music, seconds").fill("5")
    page.get_by_text("key, density, register").click()
    for label, name in (("key", "G major"), ("lowest note", "C3"), ("highest note", "G5")):
        choose(page, label, name)
    chords = page.get_by_label("chords for new music")
    chords.fill("G | F#")
    button(page, "Continue").click()
    status(page, "is outside key=G major")
    chords.fill("G | D")
    chords.press("Enter")
    page.wait_for_selector("[data-take]")
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert 'viewBox="0 0 360 ' in shown  # five inches: the narrow one
    assert len(re.findall(r"in chords, \d+% in G major", shown)) == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@chromium.needed
def test_a_region_is_typed_or_dragged_and_filled(visit, tmp_path):
    page = visit(has_touch=True)
    begin(page)
    seed, asked = Roll(page), []
    button(page, "Fill").click()
    status(page, "there is no region to fill: drag over the roll, or type where it begins and ends")
    page.get_by_label("fill from, seconds").fill("0.6")
    page.wait_for_timeout(300)  # the page hears of one field at a time
    assert page.locator(".region").count() == 0
    page.get_by_label("fill to, seconds").fill("5.4")
    seed.framed(0.6, 5.4)
    page.on("request", lambda request: asked.append(request.url))
    seed.drag(4.0, 1.3)
    assert seed.region() == [1.2, 4.2]  # from beat to beat
    seed.framed(1.2, 4.2)
    seed.drag(2.5, 2.6)
    assert seed.region() == [2.4, 3.0]
    seed.drag(4.0, 1.3, free=True)
    assert seed.region() == pytest.approx([1.3, 4.0], abs=0.03)
    seed.framed(1.3, 4.0)
    seed.swipe(seed.at(1.2), seed.at(2.0), seed.at(3.0))
    seed.framed(1.2, 3.0)
    seed.swipe(seed.at(2.0), seed.at(3.0), seed.at(4.0), end="touchCancel")  # something else took the finger
    seed.framed(1.2, 3.0)
    down = seed.at(4.0)
    seed.swipe(down, *({"x": down["x"] + k, "y": down["y"] - 12 * k} for k in range(1, 8)))  # to scroll
    page.wait_for_timeout(300)
    seed.framed(1.2, 3.0)
    assert asked == []  # the end of a drag is no click on a note
    button(page, "Fill").click()
    status(page, "2 variations of Old Hundredth from 1.20 to 3.00 s")
    filled = Roll(page, 2)
    filled.framed(1.2, 3.0)

    filled.drag(0.6, 2.4, row=1)  # the second variation is filled again, however soon
    button(page, "Fill").click()
    status(page, "2 variations of Old Hundredth from 0.60 to 2.40 s")
    page.mouse.click(**Roll(page, 2).at(2.0))
    status(page, "A filled part comes from both its sides.")

    onset_s = np.arange(0.0, 80.0, 2.0) + 0.17 * np.sin(np.arange(40))  # in two rows, and no score
    write_midi(Score(onset_s, onset_s + 1, np.full(40, 60), np.full(40, 80)), tmp_path / "long.mid")
    page.get_by_role("tab", name="File").click()
    drop(page, tmp_path / "long.mid")
    page.wait_for_selector("[data-take]", state="detached")
    long = Roll(page, 2)
    assert np.isnan(long.region()).all()  # other music
    long.drag(30.0, 50.0, 0, 1)
    assert long.region() == pytest.approx([30.0, 50.0], abs=0.3)
    assert page.locator(".region").count() == 2
    field, veil = page.get_by_label("number input for continue from, seconds"), page.locator(".veil")
    field.fill("20")
    veil.first.wait_for()
    long.drag(20.0, 29.8)  # the mark
    assert float(field.input_value()) == pytest.approx(29.8, abs=0.1)
    assert long.region() == pytest.approx([30.0, 50.0], abs=0.3)  # as it was


@chromium.needed
def test_music_with_bars_is_marked_at_its_beats_and_continued_in_bars(visit, tmp_path):
    page = visit()
    drop(page, waltz(tmp_path / "waltz.mid"))
    status(page, "The score model plays, since waltz is a score: its notes lie on a grid.")
    roll, field = Roll(page), page.get_by_label("number input for continue from, seconds")
    field.fill("5")
    page.locator(".veil").first.wait_for()
    roll.drag(5.0, 9 * BEAT_S + 0.1)
    assert float(field.input_value()) == round(9 * BEAT_S, 2)
    page.get_by_label("number input for new music, bars").fill("2")
    button(page, "Continue").click()
    page.wait_for_selector("[data-take]")
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert ">bars, and seconds<" in shown
    home = linked(page, "MIDI")
    assert home[0] == "waltz-1.mid"
    onset_s = read_tracks(home[1], "").merge().onset_s
    assert 9 * BEAT_S < onset_s[-1] < 15 * BEAT_S  # two bars after three
    page.locator("#unit").get_by_label("seconds").check()
    page.get_by_label("number input for new music, seconds").wait_for()


@chromium.needed
def test_the_score_is_opened_at_its_new_bars(visit, tmp_path):
    page = visit(width=390, height=420)
    drop(page, waltz(tmp_path / "waltz.mid"))
    status(page, "The score model plays")
    score = page.locator(".score")
    assert score.evaluate("box => box.scrollTop") == 0
    page.get_by_label("number input for new music, bars").fill("1")
    button(page, "Continue").click()
    page.wait_for_selector("[data-take]")
    page.wait_for_function("document.querySelector('.score').scrollTop > 0")
    top, seen, whole, new = score.evaluate("b => [b.scrollTop, b.clientHeight, b.scrollHeight, Number(b.dataset.new)]")
    assert seen < whole
    assert top < new * whole < top + seen


@chromium.needed
def test_a_melody_is_dropped_or_played_and_gets_voices(visit, tmp_path):
    page = visit(height=1090)
    page.get_by_role("tab", name="Accompany").click()
    assert button(page, "Accompany").is_disabled()
    soprano = top_line(examples()[HYMN].score)
    write_midi(soprano, tmp_path / "soprano.mid")
    drop(page, tmp_path / "soprano.mid")
    status(page, f"soprano: {len(soprano)} notes")
    assert page.get_by_label("a piano, for a tune").is_checked()  # as the command does
    page.get_by_label("three voices of a choir").check()
    accompany(page)
    status(page, "2 accompaniments of soprano")
    picture = Roll(page, 2)
    name, data = linked(page, "MIDI")
    (tmp_path / name).write_bytes(data)
    home = read_midi(tmp_path / name)
    assert len(home) > 2 * len(soprano)
    bass = home.pitch[(home.onset_s < 2.5) & (home.offset_s > 2.5)].min()
    box = picture.boxes[0]
    height = (box["high"] - bass) / (box["high"] - box["low"]) * box["height"] + box["top"]
    page.mouse.click(picture.at(2.5)["x"], picture.edge["y"] + height * picture.edge["height"])
    page.wait_for_selector("#arcs img")
    shoot(page, "serve-harmonise")

    play(page, 67, 69)
    page.keyboard.down("k")
    page.wait_for_timeout(150)
    page.keyboard.up("k")
    page.locator(".played", has_text="3 notes").wait_for()
    button(page, "Take it").click()
    status(page, "played: 3 notes")
    page.get_by_role("spinbutton", name="number input for variations").fill("1")
    choose(page, "key of the voices", "C major")
    page.get_by_label("chords for new music").fill("C | G7")
    button(page, "Accompany").click()
    status(page, "1 accompaniment of played")
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert re.search(r"in chords, 100% in C major", shown)
