"""What a person does at the page, as a browser does it, and the rolls as a mouse meets them."""

import json
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


def drop(page, path):
    page.locator("#file input[type=file]").set_input_files(path)


def go_on(page, seconds):
    if page.locator("#unit").is_visible():
        page.locator("#unit").get_by_label("seconds").check()
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


def sliders_at(page, strength, top_p):
    """Waits for the sliders of seed guidance and of top-p to be where the model's bundle says."""
    if not page.get_by_label("number input for unlikely notes").is_visible():
        page.locator("#more").get_by_text("more", exact=True).click()
        page.get_by_label("number input for unlikely notes").wait_for()
    for name, value in (("how close to the seed", strength), ("top-p", top_p)):
        slider = f"document.querySelector('input[type=number][aria-label*=\"{name}\"]')"
        page.wait_for_function(f"{slider}.value === '{value}'")


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


class Roll:
    """The picture, as fractions of its size, and what is said of the region in it."""

    def __init__(self, page, rows=1):
        loaded = "n => JSON.parse(document.querySelector('.picture').dataset.roll).boxes.length === n"
        page.wait_for_function(loaded, arg=rows)
        page.locator(".picture img").evaluate("image => image.decode()")
        page.locator("#region input").nth(1).wait_for()
        self.page = page
        self.boxes = json.loads(page.locator(".picture").get_attribute("data-roll"))["boxes"]
        self.edge = page.locator(".picture").bounding_box()

    def at(self, seconds, row=0):
        """Pixels of a moment, in the middle of a row."""
        box = self.boxes[row]
        share = (seconds - box["start_s"]) / (box["end_s"] - box["start_s"])
        x, y = box["left"] + share * box["width"], box["top"] + box["height"] / 2
        return {"x": self.edge["x"] + x * self.edge["width"], "y": self.edge["y"] + y * self.edge["height"]}

    def drag(self, from_s, to_s, row=0, to_row=None, free=False):
        """With the mouse, and with Alt where it is `free`."""
        if free:
            self.page.keyboard.down("Alt")
        self.page.mouse.move(**self.at(from_s, row))
        self.page.mouse.down()
        self.page.mouse.move(**self.at((from_s + to_s) / 2, row))
        self.page.mouse.move(**self.at(to_s, row if to_row is None else to_row))
        self.page.mouse.up()
        if free:
            self.page.keyboard.up("Alt")

    def swipe(self, *points, end="touchEnd"):
        """With a finger."""
        touch = self.page.context.new_cdp_session(self.page)
        for kind, point in zip(("touchStart", *["touchMove"] * len(points)), points, strict=False):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": end, "touchPoints": []})

    def region(self):
        return [float(field.input_value() or "nan") for field in self.page.locator("#region input").all()]

    def framed(self, from_s, to_s, row=0):
        """Waits for the box there, alone."""
        left, right = (self.at(s, row)["x"] for s in (from_s, to_s))
        self.page.wait_for_function(FRAMED, arg=[left, right, self.at(from_s, row)["y"]])


FRAMED = """([left, right, y]) => {
  const parts = [...document.querySelectorAll(".region")].map((part) => part.getBoundingClientRect());
  const near = (a, b) => Math.abs(a - b) < 2;
  return parts.length === 1 && near(parts[0].left, left) && near(parts[0].right, right)
    && parts[0].top < y && y < parts[0].bottom;
}"""
