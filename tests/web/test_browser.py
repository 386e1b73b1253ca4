"""The page in a real browser, with the models inside musictx. `MUSICTX_SHOTS=outputs/shots` writes pictures there."""

import io
import json
import re
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import soundfile
from browsing import SHOTS, accompany, begin, button, choose, go_on, linked, play, shoot, status
from rolls import roll
from serving import served
from wishes import HYMN

from musictx.music.melody import top_line
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.web.session import SHIPPED, examples

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="needs a browser: apt-get install chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="needs playwright: pip install 'musictx[dev]'"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(tmp_path_factory.mktemp("server"), "upload_mb=0.01") as server:
        yield server.address


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, address):
    """Opens the page as another person; no one may be sent elsewhere or meet an error of the page's own."""
    strayed, broken = [], []
    ours = (address, address.replace("http", "ws"), "data:", "blob:")

    def requested(request):
        if not request.url.startswith(ours):
            strayed.append(request.url)

    def open_page(height=900, width=1440, **how):
        page = chromium.new_context(viewport={"width": width, "height": height}, **how).new_page()
        page.set_default_timeout(20_000)
        page.on("request", requested)
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.goto(address)
        page.wait_for_selector(".welcome")
        return page

    yield open_page
    for context in chromium.contexts:
        context.close()
    assert strayed == []
    assert broken == []


def test_a_file_is_continued_heard_and_taken_home(visit, tmp_path):
    page = visit()
    seed = examples()[SHIPPED["elise"]].score.clip(0, 5.4)
    write_midi(seed, tmp_path / "my motif.mid")
    page.locator("#file input[type=file]").set_input_files(tmp_path / "my motif.mid")
    page.wait_for_selector(".picture")
    status(page, "notes")
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

    shoot(page, "serve")
    box = picture.bounding_box()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.25 * box["height"])
    page.wait_for_selector("#arcs img")
    assert sound.evaluate("audio => audio.currentTime") > 5
    page.get_by_label("attention of").click()
    page.get_by_role("option", name="layer 0, each head").click()
    page.locator("#arcs img").wait_for()
    shoot(page, "serve-attention")
    before = page.locator("#arcs img").get_attribute("src")
    page.get_by_label("number input for sources of the note").fill("9")
    page.wait_for_function("before => document.querySelector('#arcs img').src != before", arg=before)


def test_chords_key_and_register_are_asked_for_on_a_telephone(visit):
    page = visit(width=390, height=844)
    begin(page)
    chords = page.get_by_label("chords for new music")
    page.get_by_label("number input for new music, seconds").fill("5")
    for typed, said in (("H7", "chords=H7: this chord is not known: give"), ("G | F#", "is outside key=G major")):
        chords.fill(typed)
        button(page, "Continue").click()
        page.locator(".status.wrong", has_text=said).wait_for()
        assert chords.input_value() == typed
        if typed == "H7":
            page.get_by_text("key, density, register").click()
            choose(page, "key", "G major")
    for label, note in (("lowest note", "C3"), ("highest note", "G5")):
        choose(page, label, note)
    chords.fill("G | D")
    shoot(page, "serve-phone-asked")
    chords.press("Enter")
    page.wait_for_selector("[data-take]")
    status(page, "2 variations of Old Hundredth")
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert 'viewBox="0 0 360 ' in shown  # five inches: the narrow one
    assert len(re.findall(r"in chords, \d+% in G major", shown)) == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    seen = json.loads(page.locator(".picture").get_attribute("data-roll"))
    assert seen["narrow"] != seen["boxes"]
    shoot(page, "serve-phone")


def test_another_variation_is_gone_on_from_and_undone(visit):
    page = visit()
    begin(page)
    go_on(page, 4)
    page.locator("[data-take='1']").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    assert linked(page, "MIDI")[0] == "Old Hundredth-2.mid"
    button(page, "Continue this variation").click()
    page.wait_for_selector("[data-take]", state="detached")
    status(page, "Old Hundredth-2: ")
    button(page, "Undo").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    for gone in ("[data-take]", ".picture"):
        button(page, "Undo").click()
        page.wait_for_selector(gone, state="detached")
    page.wait_for_selector(".welcome")
    assert button(page, "Continue").is_disabled()


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


def test_a_region_is_dragged_and_filled(visit, tmp_path):
    page = visit()
    begin(page)
    seed, asked = roll(page), []
    page.on("request", lambda request: asked.append(request.url))
    seed.drag(4.0, 1.3)
    assert seed.region() == pytest.approx([1.3, 4.0], abs=0.03)
    seed.framed(1.3, 4.0)
    seed.drag(1.2, 3.0)
    seed.framed(1.2, 3.0)
    assert asked == []  # the end of a drag is no click on a note
    button(page, "Fill").click()
    status(page, "2 variations of Old Hundredth from 1.20 to 3.00 s")
    filled = roll(page, 2)
    filled.framed(1.2, 3.0)
    assert filled.region() == [1.2, 3.0]
    shoot(page, "serve-fill")
    name, data = linked(page, "MIDI")
    (tmp_path / name).write_bytes(data)
    home, was = read_midi(tmp_path / name), examples()[HYMN].score
    for score in (home, was):
        assert score.duration_s == pytest.approx(5.4, abs=0.01)
    late, was_late = (score.select(score.onset_s > 3.1) for score in (home, was))
    assert late.pitch.tolist() == was_late.pitch.tolist()

    filled.drag(0.6, 2.4, row=1)  # the second variation is filled again, however soon
    button(page, "Fill").click()
    status(page, "2 variations of Old Hundredth from 0.60 to 2.40 s")
    page.mouse.click(**roll(page, 2).at(2.0))
    status(page, "A filled part comes from both its sides.")
    button(page, "Undo").click()
    page.wait_for_selector("[data-take='1'][aria-pressed=true]")
    filled.framed(0.6, 2.4, row=1)
    button(page, "Ode to Joy").click()
    page.wait_for_selector("[data-take]", state="detached")
    page.wait_for_selector(".region", state="detached")
    assert np.isnan(roll(page).region()).all()


def test_a_region_is_typed_and_a_wrong_one_is_said(visit):
    page = visit()
    begin(page)
    seed = roll(page)
    button(page, "Fill").click()
    status(page, "there is no region to fill: drag over the roll, or type where it begins and ends")
    first, last = page.get_by_label("fill from, seconds"), page.get_by_label("fill to, seconds")
    first.fill("0.6")
    assert page.locator(".region").count() == 0
    last.fill("2.4")
    seed.framed(0.6, 2.4)
    for to_s, said in (("0.5", "from_s=0.6"), ("5.4", "the music ends at 5.40 s")):
        last.fill(to_s)
        button(page, "Fill").click()
        page.locator(".status.wrong", has_text=said).wait_for()
    seed.framed(0.6, 5.4)
    assert page.locator("[data-take]").count() == 0


def test_a_region_is_chosen_with_a_finger_and_a_swipe_up_chooses_none(visit):
    page = visit(has_touch=True)
    begin(page)
    seed = roll(page)
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
    page.locator("#file input[type=file]").set_input_files(tmp_path / "long.mid")
    page.wait_for_selector(".picture")
    long = roll(page, 2)
    long.drag(30.0, 50.0, 0, 1)
    assert long.region() == pytest.approx([30.0, 50.0], abs=0.3)
    widths = [part.bounding_box()["width"] for part in page.locator(".region").all()]
    assert len(widths) == 2


def test_a_phrase_is_played(visit):
    page = visit()
    play(page, 60, 64, 67)
    page.keyboard.down("k")
    page.wait_for_timeout(150)
    page.keyboard.up("k")
    page.locator(".played", has_text="4 notes").wait_for()
    shoot(page, "serve-keyboard")
    button(page, "Take it").click()
    status(page, "played: 4 notes")
    go_on(page, 4)
    button(page, "Take it").click()
    status(page, "nothing was played")


def test_what_is_wrong_with_a_file_is_said(visit, tmp_path):
    page = visit()
    for data, what in ((b"\x89PNG and so on", "wrong.mid: not a MIDI file"), (b"", "wrong.mid: the file is empty")):
        (tmp_path / "wrong.mid").write_bytes(data)
        page.locator("#file input[type=file]").set_input_files(tmp_path / "wrong.mid")
        page.locator(".status.wrong", has_text=what).wait_for()
    shoot(page, "serve-wrong")
    assert page.locator(".welcome").is_visible()
    (tmp_path / "large.mid").write_bytes(bytes(20_000))
    page.locator("#file input[type=file]").set_input_files(tmp_path / "large.mid")
    page.get_by_text("exceed the maximum allowed size").first.wait_for()


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


def stand(page, strength, top_p):
    """The sliders of seed guidance and of top-p stand where the model's bundle says."""
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
    stand(page, 1.25, 0.98)
    button(page, "Satie: Gymnopédie").click()
    status(page, "The piano model plays, since gymnopedie is not four voices on a grid")
    page.wait_for_function("document.querySelector('#model input[value=piano]').checked")
    stand(page, 0.5, 1)
    go_on(page, 2)
    status(page, "2 variations of gymnopedie")
    model.get_by_label("chorale").check()
    stand(page, 1.25, 0.98)
    button(page, "Continue").click()
    status(page, "It is heard as four voices: ")
    assert model.get_by_label("chorale").is_checked()
    begin(page, "The opening of a chorale")
    status(page, "The chorale model plays")
    accompany(page)
    status(page, "2 accompaniments of chorale")
    status(page, "The melody: its highest")
    assert linked(page, "MIDI")[0] == "chorale-1.mid"


def test_a_melody_is_dropped_or_played_and_gets_voices(visit, tmp_path):
    page = visit(height=1060)
    page.get_by_role("tab", name="Accompany").click()
    assert button(page, "Accompany").is_disabled()
    soprano = top_line(examples()[HYMN].score)
    write_midi(soprano, tmp_path / "soprano.mid")
    page.locator("#file input[type=file]").set_input_files(tmp_path / "soprano.mid")
    status(page, f"soprano: {len(soprano)} notes")
    accompany(page)
    status(page, "2 accompaniments of soprano")
    picture = roll(page, 2)
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

    play(page, 67, 69, 71, 72)
    button(page, "Take it").click()
    status(page, "played: 4 notes")
    page.get_by_role("spinbutton", name="number input for variations").fill("1")
    chords = page.get_by_label("chords for new music")
    choose(page, "key of the voices", "C major")
    chords.fill("C | F#")
    button(page, "Accompany").click()
    page.locator(".status.wrong", has_text="is outside key=C major").wait_for()
    chords.fill("C | G7")
    button(page, "Accompany").click()
    status(page, "1 accompaniment of played")
    status(page, "a bar of chords lasts 2.00 s")
    assert linked(page, "MIDI")[0] == "played-1.mid"
    shown = page.locator(".picture img").evaluate("image => atob(image.currentSrc.split(',')[1])")
    assert re.search(r"in chords, 100% in C major", shown)
