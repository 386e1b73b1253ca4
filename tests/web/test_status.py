"""The line of status in a real browser: after whatever a person does it can be read, on a desk and on a telephone."""

from dataclasses import replace
from importlib.util import find_spec
from random import Random
from threading import Semaphore

import chromium
import pytest
from browsing import Roll, begin, button, choose, drop, go_on, play, sliders_at
from seeing import UNREADABLE, refuses, said, says, seen, settled, unreadable, watch_streams
from serving import hosted
from untrained import write_harmoniser
from wishes import HYMN

from musictx.generate.open_bundle import open_bundle
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.web import draw
from musictx.web.studio import Studio

WEB = pytest.mark.skipif(find_spec("gradio") is None, reason="needs the extra web: pip install 'musictx[web]'")
pytestmark = [WEB, chromium.needed]
GUIDANCE = 2


@pytest.fixture(scope="module")
def host(world, filling, tmp_path_factory):
    """A page with small models under the names of those inside the package, of which only the chorale's fills: the
    studio, and the address."""
    folder = tmp_path_factory.mktemp("status")
    (folder / "made").mkdir()
    models = {"piano": open_bundle(world.bundle), "chorale": open_bundle(filling)}
    header = replace(models["piano"].header, notes={"seed_guidance": GUIDANCE, "sampler": {"top_p": None}})
    models["piano"] = models["piano"]._replace(header=header)  # a chosen model is seen by its sliders
    voices = open_bundle(write_harmoniser(folder / "voices.safetensors", hide_source=0.1), continues=False)
    studio = Studio(models, folder / "made", harmoniser=voices)
    with hosted(studio, folder / "uploads") as address:
        yield studio, address


@pytest.fixture(scope="module")
def browser():
    with chromium.chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser, host, monkeypatch):
    """Opens the page as another person."""
    _, address = host
    monkeypatch.setattr(draw, "random", Random(0))  # by chance, a model of no training may end early
    with chromium.visiting(browser, address) as open_page:

        def visited(**how):
            page = open_page(**how)
            watch_streams(page)
            page.goto(address)
            page.wait_for_selector(".welcome")
            return page

        yield visited


@pytest.fixture
def page(visit):
    return visit()


@pytest.fixture
def limit(host, monkeypatch):
    """Changes limits of the page."""
    studio, _ = host
    return lambda **changed: monkeypatch.setattr(studio, "limits", studio.limits._replace(**changed))


@pytest.fixture
def steps(host, monkeypatch):
    """The model waits for it before each report and after it, and its music is shown after each."""
    studio, _ = host
    steps, turn = Semaphore(0), studio._turn

    def slow(report):
        def far(*seconds):
            assert steps.acquire(timeout=60)
            report(*seconds)
            assert steps.acquire(timeout=60)

        return turn(far)

    monkeypatch.setattr(studio, "_turn", slow)
    monkeypatch.setattr(draw, "FIRST_S", 0.0)
    yield steps
    steps.release(1000)


def start(page):
    begin(page)
    said(page, "Old Hundredth: ")


def fill(page, from_s, to_s):
    for border, seconds in (("from", from_s), ("to", to_s)):
        page.get_by_label(f"fill {border}, seconds").fill(str(seconds))
    button(page, "Fill").click()


def pick(page, seconds, pitch):
    """Clicks at a note of the first of two variations."""
    page.set_viewport_size({"width": 1280, "height": 844})
    page.locator(".picture").scroll_into_view_if_needed()
    picture = Roll(page, 2)
    box = picture.boxes[0]
    height = box["top"] + (box["high"] - pitch) / (box["high"] - box["low"]) * box["height"]
    page.mouse.click(picture.at(seconds)["x"], picture.edge["y"] + height * picture.edge["height"])


def test_of_music_to_begin_with(page, tmp_path):
    says(page, "server")
    (tmp_path / "picture.mid").write_bytes(b"\x89PNG and so on")
    write_midi(Score([500.0], [501.0], [60], [80]), tmp_path / "late.mid")
    write_midi(Score([0.0, 0.5], [0.5, 1.0], [60, 62], [80, 80]), tmp_path / "tune.mid")
    for name, what in (("picture", "picture.mid: not a MIDI file"), ("late", "late: no note begins")):
        drop(page, tmp_path / f"{name}.mid")
        refuses(page, what)
    drop(page, tmp_path / "tune.mid")
    says(page, "tune: 2 notes")
    page.get_by_role("tab", name="Keyboard").click()
    button(page, "Take it").click()
    refuses(page, "nothing was played")
    play(page, 67)
    button(page, "Take it").click()
    says(page, "played: 1 note,")
    for name in ("Beethoven: Für Elise", HYMN):
        begin(page, name)
        says(page, "elise" if name != HYMN else "Old Hundredth: ")
    button(page, "Undo").click()
    says(page, "elise")


def test_of_continue(page, limit):
    start(page)
    go_on(page, 4)
    says(page, "2 variations of Old Hundredth")
    page.locator("[data-take='1']").click()
    says(page, "Old Hundredth-2")
    pick(page, 0.1, 67)
    refuses(page, "the first")
    button(page, "Continue this variation").click()
    says(page, "Old Hundredth-2")
    button(page, "Continue").click()
    says(page, "2 variations of Old Hundredth-2")
    limit(music_s=5.0)
    button(page, "Continue this variation").click()
    refuses(page, "5 s")
    limit(seconds=-1.0)
    button(page, "Continue").click()
    refuses(page, "before any music")
    button(page, "Undo").click()
    says(page, "Old Hundredth-2")


def test_of_wishes(page):
    start(page)
    chords = page.get_by_label("chords for new music")
    chords.fill("C | H")
    for ask in (button(page, "Continue").click, lambda: chords.press("Enter")):
        ask()
        refuses(page, "chords=H")
        begin(page)
        says(page, "Old Hundredth: ")
    chords.fill("")
    page.get_by_text("key, density, register").click()
    choose(page, "notes a second", "6")
    button(page, "Continue").click()
    refuses(page, "notes a second=6")
    choose(page, "notes a second", "any")
    choose(page, "lowest note", "C5")
    choose(page, "highest note", "C3")
    button(page, "Continue").click()
    refuses(page, "lowest note=C5")


def test_of_fill(page):
    start(page)
    button(page, "Fill").click()
    refuses(page, "no region")
    for from_s, to_s, what in ((3.0, 9.0, "fill to=9"), (2.0, 1.0, "fill from=2")):
        fill(page, from_s, to_s)
        refuses(page, what)
    fill(page, 1.2, 3.0)
    says(page, "from 1.20 to 3.00 s")
    pick(page, 2.0, 67)
    says(page, "both its sides")
    page.locator("#model").get_by_label("piano").check()
    sliders_at(page, GUIDANCE, 1)
    settled(page)
    button(page, "Fill").click()
    refuses(page, "choose chorale")


def test_of_accompany(page, limit):
    page.get_by_role("tab", name="Accompany").click()
    play(page, 79)  # no other voice can be so high
    button(page, "Take it").click()
    says(page, "played")
    button(page, "Accompany").click()
    says(page, "2 accompaniments of played")
    pick(page, 0.05, 79)
    refuses(page, "one of the melody")
    chords = page.get_by_label("chords for new music")
    chords.fill("H")
    button(page, "Accompany").click()
    refuses(page, "chords=H")
    chords.fill("")
    limit(seconds=-1.0)
    button(page, "Accompany").click()
    refuses(page, "before the voices")


def test_while_work_is_in_progress_and_where_it_fails(page, host, steps, monkeypatch):
    start(page)
    button(page, "Continue").click()
    steps.release()
    page.locator("#status", has_text="s of music").wait_for()
    seen(page, "#status .progress-level-inner")
    steps.release()
    page.locator("#status p", has_text="so far").wait_for()
    seen(page, "#status p")
    steps.release(1000)
    says(page, "2 variations")

    studio, _ = host

    def broken(*_):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(studio, "go_on", broken)
    monkeypatch.setattr(studio, "example", broken)
    for press in (button(page, HYMN), button(page, "Continue"), button(page, HYMN)):
        press.click()
        page.locator("#status .error").wait_for()
        seen(page, "#status .error")
        line = page.locator("#status p")
        assert len(line.evaluate(UNREADABLE)) >= len(line.inner_text().split())  # one text, not one over another
        page.locator("#status").get_by_role("button").click()
        says(page, "2 variations")


def test_of_music_that_is_chosen_while_another_is_drawn(page, steps):
    start(page)
    for press, what in ((HYMN, "left out"), ("Beethoven: Für Elise", "Undo shows it")):
        button(page, "Continue").click()
        steps.release()
        page.locator("#status", has_text="s of music").wait_for()
        if press == HYMN:
            begin(page, "Beethoven: Für Elise")
            page.locator("#status p", has_text="elise").wait_for()
            button(page, "Undo").click()
            page.locator("#status p", has_text="Old Hundredth: ").wait_for()
            button(page, "Undo").click()
            page.wait_for_selector(".welcome")
        else:
            begin(page, press)
            page.locator("#status p", has_text="elise").wait_for()
        steps.release(1000)
        says(page, what)
        assert page.locator("[data-take]").count() == 0
        while steps.acquire(blocking=False):
            pass
        if press == HYMN:
            start(page)
    button(page, "Undo").click()
    page.wait_for_selector("[data-take]")
    says(page, "Old Hundredth-1")


def test_of_a_telephone_it_needs_no_scrolling_to_what_is_wrong_or_under_way(visit, steps):
    page = visit(width=390, height=420)
    page.get_by_role("tab", name="Keyboard").click()
    for _ in range(2):  # the same mistake
        page.evaluate("scrollTo(0, 0)")
        button(page, "Take it").click()
        said(page, "nothing was played", "status wrong")
        assert unreadable(page, "#status p", there=False) == []
    start(page)
    fill(page, 2.0, 1.0)  # far below
    said(page, "fill from=2", "status wrong")
    assert unreadable(page, "#status p", there=False) == []
    fill(page, 1.0, 4.0)
    steps.release()
    page.locator("#status", has_text="s of music").wait_for()
    assert unreadable(page, "#status .progress-level-inner", there=False) == []


def test_at_night(visit):
    page = visit(color_scheme="dark")
    assert page.locator("body.dark").count() == 1
    says(page, "server")
    start(page)
    button(page, "Fill").click()
    refuses(page, "no region")
