"""The rolls of the page as a mouse meets them."""

import json


class Roll:
    """The picture, as fractions of its size, and what is said of the region in it."""

    def __init__(self, page):
        self.page = page
        self.boxes = json.loads(page.locator(".picture").get_attribute("data-roll"))["boxes"]
        self.edge = page.locator(".picture").bounding_box()

    def at(self, seconds, row=0):
        """Pixels of a moment, in the middle of a row."""
        box = self.boxes[row]
        share = (seconds - box["start_s"]) / (box["end_s"] - box["start_s"])
        x, y = box["left"] + share * box["width"], box["top"] + box["height"] / 2
        return {"x": self.edge["x"] + x * self.edge["width"], "y": self.edge["y"] + y * self.edge["height"]}

    def drag(self, from_s, to_s, row=0, to_row=None):
        self.page.mouse.move(**self.at(from_s, row))
        self.page.mouse.down()
        self.page.mouse.move(**self.at((from_s + to_s) / 2, row))
        self.page.mouse.move(**self.at(to_s, row if to_row is None else to_row))
        self.page.mouse.up()

    def region(self):
        return [float(field.input_value() or "nan") for field in self.page.locator("#region input").all()]

    def framed(self, from_s, to_s, row=0):
        """Waits for the box to stand there, alone."""
        left, right = (self.at(s, row)["x"] for s in (from_s, to_s))
        self.page.wait_for_function(FRAMED, arg=[left, right, self.at(from_s, row)["y"]])


FRAMED = """([left, right, y]) => {
  const parts = [...document.querySelectorAll(".region")].map((part) => part.getBoundingClientRect());
  const near = (a, b) => Math.abs(a - b) < 2;
  return parts.length === 1 && near(parts[0].left, left) && near(parts[0].right, right)
    && parts[0].top < y && y < parts[0].bottom;
}"""


def roll(page, rows=1):
    page.wait_for_function(
        "n => JSON.parse(document.querySelector('.picture').dataset.roll).boxes.length === n", arg=rows
    )
    page.locator(".picture img").evaluate("image => image.decode()")
    page.locator("#region input").nth(1).wait_for()
    return Roll(page)
