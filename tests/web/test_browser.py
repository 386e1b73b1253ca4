"""The page in a real browser, with the models inside musictx. `MUSICTX_SHOTS=outputs/shots` writes pictures there."""

import io
import re

import chromium
import numpy as np
import pytest
import soundfile
from browsing import SHOTS, Roll, accompany, begin, button, choose, drop, go_on, linked, play, shoot, status, wrong
from serving import served
from wishes import HYMN

from musictx.music.melody import top_line
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.web.session import SHIPPED, examples

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(tmp_path_factory.mktemp("server"), "upload_mb=0.01") as server:
        yield server.address


@pytest.fixture(scope="module")
def browser():
    with chromium.chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser, address):
    """Opens the page as another person."""
    with chromium.visiting(browser, address, address.replace("http", "ws")) as open_page:

        def visited(**how):
            page = open_page(**how)
            page.goto(address)
            page.wait_for_selector(".welcome")
            return page

        yield visited


def test_a_file_is_continued_heard_taken_home_and_gone_on_from(visit, tmp_path):
    page = visit()
    (tmp_path / "large.mid").write_bytes(bytes(20_000))
    drop(page, tmp_path / "large.mid")
    page.get_by_text("exceed the maximum allowed size").first.wait_for()
    assert page.locator(".welcome").is_visible()
    seed = examples()[SHIPPED["elise"]].score.clip(0, 5.4)
    write_midi(seed, tmp_path / "my motif.mid")
    drop(page, tmp_path / "my motif.mid")
    page.wait_for_selector(".picture")
    seconds = 20 if SHOTS else 8
    go_on(page, seconds)
    status(page, "2 variations of my motif")
    picture = page.locator(".picture img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500

    sound = page.locator("audio")
    sound.evaluate("audio => audio.readyState > 0 || new Promise(done => audio.onloadedmetadata = done)")
    assert sound.evaluate("audio => audio.duration") > seconds
    name, data = linked(page, "WAV")
    assert name == "my motif-1.wav"
    assert np.abs(soundfile.read(io.BytesIO(data))[0]).max() > 0.6
    with page.expect_download() as taking:
        page.get_by_role("link", name="MIDI", exact=True).click()
    taking.value.save_as(tmp_path / "home.mid")
    home, end_s = read_midi(tmp_path / "home.mid"), seed.duration_s
    head, was = home.clip(0, end_s), seed.clip(0, end_s)
    assert head.pitch[: len(was)].tolist() == was.pitch.tolist()
    np.testing.assert_allclose(head.onset_s[: len(was)], was.onset_s, atol=0.01)
    assert home.duration_s > end_s + 0.7 * seconds

    box = picture.bounding_box()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.25 * box["height"])
    arcs = page.locator("#arcs img")
    arcs.wait_for()
    assert sound.evaluate("audio => audio.currentTime") > 5
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
    status(page, "my motif-2: ")
    button(page, "Undo").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    for gone in ("[data-take]", ".picture"):
        button(page, "Undo").click()
        page.wait_for_selector(gone, state="detached")
    page.wait_for_selector(".welcome")
    assert button(page, "Continue").is_disabled()


def test_chords_key_and_register_are_asked_for_on_a_telephone(visit):
    page = visit(width=390, height=844)
    begin(page)
    page.get_by_label("number input for new music, seconds").fill("5")
    page.get_by_text("key, density, register").click()
    for label, name in (("key", "G major"), ("lowest note", "C3"), ("highest note", "G5")):
        choose(page, label, name)
    chords = page.get_by_label("chords for new music")
    chords.fill("G | F#")
    button(page, "Continue").click()
    wrong(page, "is outside key=G major")
    assert chords.input_value() == "G | F#"
    chords.fill("G | D")
    chords.press("Enter")
    page.wait_for_selector("[data-take]")
    status(page, "2 variations of Old Hundredth")
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert 'viewBox="0 0 360 ' in shown  # five inches: the narrow one
    assert len(re.findall(r"in chords, \d+% in G major", shown)) == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_motif_is_veiled_off(visit):
    page = visit()
    begin(page)
    field = page.get_by_label("number input for continue from, seconds")
    field.fill("2")
    veil = page.locator(".veil")
    veil.wait_for()
    box = veil.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)  # the mark is dragged to the right
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_function("x => document.querySelector('.veil').getBoundingClientRect().x > x + 50", arg=box["x"])
    assert 3.0 < float(field.input_value()) < 4.5
    assert page.locator(".region").count() == 0  # no region is chosen by it
    field.fill("5.4")
    veil.wait_for(state="detached")


def test_a_region_is_typed_or_dragged_and_filled(visit, tmp_path):
    page = visit()
    begin(page)
    seed, asked = Roll(page), []
    button(page, "Fill").click()
    wrong(page, "there is no region to fill: drag over the roll, or type where it begins and ends")
    first, last = page.get_by_label("fill from, seconds"), page.get_by_label("fill to, seconds")
    first.fill("0.6")
    assert page.locator(".region").count() == 0
    last.fill("5.4")
    seed.framed(0.6, 5.4)
    button(page, "Fill").click()
    wrong(page, "the music ends at 5.40 s")
    page.on("request", lambda request: asked.append(request.url))
    seed.drag(4.0, 1.3)
    assert seed.region() == pytest.approx([1.3, 4.0], abs=0.03)
    seed.framed(1.3, 4.0)
    seed.drag(1.2, 3.0)
    seed.framed(1.2, 3.0)
    assert asked == []  # the end of a drag is no click on a note
    button(page, "Fill").click()
    status(page, "2 variations of Old Hundredth from 1.20 to 3.00 s")
    filled = Roll(page, 2)
    filled.framed(1.2, 3.0)
    assert filled.region() == [1.2, 3.0]
    name, data = linked(page, "MIDI")
    (tmp_path / name).write_bytes(data)
    home, was = read_midi(tmp_path / name), examples()[HYMN].score
    late, was_late = (score.select(score.onset_s > 3.1) for score in (home, was))
    assert late.pitch.tolist() == was_late.pitch.tolist()

    filled.drag(0.6, 2.4, row=1)  # the second variation is filled again, however soon
    button(page, "Fill").click()
    status(page, "2 variations of Old Hundredth from 0.60 to 2.40 s")
    page.mouse.click(**Roll(page, 2).at(2.0))
    status(page, "A filled part comes from both its sides.")
    button(page, "Undo").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    filled.framed(0.6, 2.4, row=1)
    button(page, "Ode to Joy").click()
    page.wait_for_selector("[data-take]", state="detached")
    page.wait_for_selector(".region", state="detached")
    assert np.isnan(Roll(page).region()).all()


def test_a_region_is_chosen_with_a_finger_and_a_swipe_up_chooses_none(visit):
    page = visit(has_touch=True)
    begin(page)
    seed = Roll(page)
    touch = page.context.new_cdp_session(page)

    def swipe(*points, end="touchEnd"):
        for kind, point in zip(("touchStart", *["touchMove"] * len(points)), points, strict=False):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": end, "touchPoints": []})

    swipe(seed.at(1.2), seed.at(2.0), seed.at(3.0))
    seed.framed(1.2, 3.0)
    swipe(seed.at(2.0), seed.at(3.0), seed.at(4.0), end="touchCancel")  # something else took the finger
    seed.framed(1.2, 3.0)
    down = seed.at(4.0)
    swipe(down, *({"x": down["x"] + k, "y": down["y"] - 12 * k} for k in range(1, 8)))
    page.wait_for_timeout(300)
    assert seed.region() == pytest.approx([1.2, 3.0], abs=0.03)


def test_a_region_continues_in_the_next_row(visit, tmp_path):
    page = visit()
    onset_s = np.arange(0.0, 80.0, 2.0)
    write_midi(Score(onset_s, onset_s + 1, np.full(40, 60), np.full(40, 80)), tmp_path / "long.mid")
    drop(page, tmp_path / "long.mid")
    page.wait_for_selector(".picture")
    long = Roll(page, 2)
    long.drag(30.0, 50.0, 0, 1)
    assert long.region() == pytest.approx([30.0, 50.0], abs=0.3)
    assert page.locator(".region").count() == 2


def test_two_people_at_once(visit):
    pages = [visit(), visit()]
    for page, name in zip(pages, (HYMN, "Ode to Joy"), strict=True):
        begin(page, name)
    for page in pages:
        page.get_by_label("number input for new music, seconds").fill("2")
        button(page, "Continue").click()
    for page, name in zip(pages, ("Old Hundredth", "Ode to Joy"), strict=True):
        page.wait_for_selector("[data-take]")
        status(page, f"2 variations of {name}")
        assert linked(page, "MIDI")[0] == f"{name}-1.mid"


def sliders_at(page, strength, top_p):
    """Waits for the sliders of seed guidance and of top-p to be where the model's bundle says."""
    for name, value in (("how close to the seed", strength), ("top-p", top_p)):
        slider = f"document.querySelector('input[type=number][aria-label*=\"{name}\"]')"
        page.wait_for_function(f"{slider}.value === '{value}'")


def test_both_models_are_there_and_the_music_chooses(visit):
    page = visit()
    learned = "piano, trained on MAESTRO v3.0.0 and ASAP and POP909, licence CC BY-NC-SA 4.0 (POP909: MIT); chorale, "
    page.get_by_text(learned).wait_for()
    begin(page, "The opening of a chorale")
    status(page, "The chorale model plays, since chorale is four voices on a grid.")
    model = page.locator("#model")
    assert model.get_by_label("chorale").is_checked()
    sliders_at(page, 1.25, 0.98)
    button(page, "Satie: Gymnopédie").click()
    status(page, "The piano model plays, since gymnopedie is not four voices on a grid")
    page.wait_for_function("document.querySelector('#model input[value=piano]').checked")
    sliders_at(page, 0.5, 1)
    model.get_by_label("chorale").check()
    sliders_at(page, 1.25, 0.98)
    go_on(page, 2)
    status(page, "It is heard as four voices: ")
    assert model.get_by_label("chorale").is_checked()


def test_a_melody_is_dropped_or_played_and_gets_voices(visit, tmp_path):
    page = visit(height=1060)
    page.get_by_role("tab", name="Accompany").click()
    assert button(page, "Accompany").is_disabled()
    soprano = top_line(examples()[HYMN].score)
    write_midi(soprano, tmp_path / "soprano.mid")
    drop(page, tmp_path / "soprano.mid")
    status(page, f"soprano: {len(soprano)} notes")
    accompany(page)
    status(page, "2 accompaniments of soprano")
    picture = Roll(page, 2)
    name, data = linked(page, "MIDI")
    (tmp_path / name).write_bytes(data)
    home = read_midi(tmp_path / name)
    assert len(home) > 2 * len(soprano)
    given = zip(soprano.onset_s.round(2), soprano.pitch, strict=True)
    assert set(given) <= set(zip(home.onset_s.round(2), home.pitch, strict=True))
    bass = home.pitch[(home.onset_s < 2.5) & (home.offset_s > 2.5)].min()
    box = picture.boxes[0]
    height = (box["high"] - bass) / (box["high"] - box["low"]) * box["height"] + box["top"]
    page.mouse.click(picture.at(2.5)["x"], picture.edge["y"] + height * picture.edge["height"])
    page.wait_for_selector("#arcs img")
    shoot(page, "serve-harmonise")

    play(page, 67, 69, 71)
    page.keyboard.down("k")
    page.wait_for_timeout(150)
    page.keyboard.up("k")
    page.locator(".played", has_text="4 notes").wait_for()
    button(page, "Take it").click()
    status(page, "played: 4 notes")
    page.get_by_role("spinbutton", name="number input for variations").fill("1")
    choose(page, "key of the voices", "C major")
    page.get_by_label("chords for new music").fill("C | G7")
    button(page, "Accompany").click()
    status(page, "1 accompaniment of played")
    status(page, "a bar of chords lasts 2.00 s")
    assert linked(page, "MIDI")[0] == "played-1.mid"
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert re.search(r"in chords, 100% in C major", shown)
    button(page, "Take it").click()
    wrong(page, "nothing was played")
