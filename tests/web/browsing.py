"""What a person does at the page, as a browser does it."""

import os
from pathlib import Path

from wishes import HYMN

SHOTS = os.environ.get("MUSICTX_SHOTS")


def shoot(page, name):
    if SHOTS:
        page.mouse.move(0, 0)
        page.wait_for_timeout(800)
        page.screenshot(path=Path(SHOTS) / f"{name}.png")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def begin(page, name=HYMN):
    page.get_by_role("tab", name="Example").click()
    button(page, name).click()
    page.wait_for_selector(".picture")


def go_on(page, seconds):
    page.get_by_label("number input for new music, seconds").fill(str(seconds))
    button(page, "Continue").click()
    page.wait_for_selector("[data-take]")


def choose(page, label, name):
    """Out of a list."""
    field = page.get_by_label(label, exact=True)
    field.click()
    field.fill(name)
    page.get_by_role("option", name=name, exact=True).last.click()


def status(page, text):
    page.locator("#status", has_text=text).wait_for()


def linked(page, name):
    """The file behind a link, as a browser fetches it."""
    link = page.get_by_role("link", name=name, exact=True)
    answer = page.request.get(page.url + link.get_attribute("href"))
    assert answer.ok
    return link.get_attribute("download"), answer.body()


def accompany(page):
    page.get_by_role("tab", name="Accompany").click()
    button(page, "Accompany").click()


def play(page, *pitches):
    """At the page's keyboard, by mouse."""
    page.get_by_role("tab", name="Keyboard").click()
    for pitch in pitches:
        key = page.locator(f"[data-pitch='{pitch}']").bounding_box()
        page.mouse.move(key["x"] + key["width"] / 2, key["y"] + key["height"] - 8)
        page.mouse.down()
        page.wait_for_timeout(150)
        page.mouse.up()
