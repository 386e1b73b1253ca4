"""A step as HTML: rolls to click, a player, and files to download."""

import base64
import html
import json
import math
import os
import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from urllib.parse import quote

import numpy as np
from matplotlib.figure import Figure

from musictx.config.web import LIMITS, Limits
from musictx.generate.primer import ON_LINE_S
from musictx.music.beat_grid import bars_of
from musictx.music.ending import ending_s
from musictx.music.notation.notation import MUSICXML
from musictx.viz.figure import save_figure
from musictx.viz.piano_roll import WIDTH_IN, Panel, plot_rolls
from musictx.viz.sound import write_wav
from musictx.web.draw import beats_of
from musictx.web.engraved import Engraved, engrave_step
from musictx.web.fit import end_of
from musictx.web.session import Step

SCRIPT = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("stage.js", "region.js"))
# gives the script above the second from which a person wants new music
PRIMER = """(from_s) => { document.querySelector("#stage .picture")?.dispatchEvent(
    new CustomEvent("primer", { bubbles: true, detail: from_s })) }"""
# and about the region in the two fields
REGION = """(...region) => { document.dispatchEvent(new CustomEvent("region", { detail: region })) }"""
PHONE, PHONE_IN, PHONE_ROW_S = "(max-width: 600px)", 5.0, 20.0  # there, a narrow picture of short rows can be read
WELCOME = '<p class="welcome">Drop a MIDI file or a score, pick an example or play a phrase: it appears here.</p>'


def stage(step: Step | None, folder: Path, limits: Limits = LIMITS) -> str:
    """The HTML of a step, whose files are written once below `folder`; without a step, a welcome."""
    if step is None:
        return WELCOME
    name = blake2b(SECRET + pickle.dumps(step), digest_size=16).hexdigest()
    with step_lock(name):
        with PLACES:
            place = new_place(folder, name)
        page = place / "stage.html"
        if not page.exists():
            with LONG if is_long(step) else nullcontext():
                page.write_text(step_html(step, place, limits), encoding="utf-8")
        os.utime(place)
        return page.read_text(encoding="utf-8")


def step_html(step: Step, place: Path, limits: Limits) -> str:
    """The HTML of a step, with its files in `place`."""
    narrow, narrow_boxes = rolls(step, place / "narrow.svg", PHONE_IN)
    score = engrave_step(step, limits)
    is_narrow = score is not None and bool(score.svg)
    picture, boxes = (narrow, narrow_boxes) if is_narrow else rolls(step, place / "roll.svg")
    on_phone = "" if is_narrow else f'<source media="{PHONE}" srcset="{narrow}">'
    midi, wav = place / f"{step.name}.mid", place / f"{step.name}.wav"
    midi.write_bytes(step.midi)
    heard = step.heard
    write_wav(heard if end_of(heard, limits) >= heard.duration_s else step.score, wav)
    files = {"MIDI": midi, "WAV": wav}
    if score is not None and score.musicxml:
        files["MusicXML"] = place / f"{step.name}{MUSICXML}"
        files["MusicXML"].write_bytes(score.musicxml)
    choices = "".join(
        f'<button data-take="{k}" aria-pressed="{str(k == step.chosen).lower()}">{k + 1}</button>'
        for k in range(len(step.takes))
    )
    choose = f'<span class="choices" role="group" aria-label="variation">{choices}</span>' if choices else ""
    links = "".join(
        f'<a href="{_address(path)}" download="{html.escape(path.name)}">{kind}</a>' for kind, path in files.items()
    )
    whole_s = None if step.is_continuation else step.score.duration_s  # a primer can be chosen from it
    data = {"boxes": boxes, "narrow": narrow_boxes, "chosen": step.chosen}
    data |= {"whole_s": whole_s, "from_s": begins_s(step), "beats": beats_of(step.score, step.meter)}
    roll = (
        f'<div class="picture" data-roll="{html.escape(json.dumps(data))}"><picture>{on_phone}'
        f'<img alt="piano roll" src="{picture}"></picture><i class="playhead"></i></div>'
    )
    audio = f'<audio controls preload="auto" src="{_address(wav)}"></audio>'
    return f'{beside(roll, score)}<div class="player">{choose}{audio}{links}</div>'


def beside(roll: str, score: Engraved | None) -> str:
    """A roll with the score beside it, or the reason why there is none."""
    if score is None or not score.svg:
        return roll + (f'<p class="remark">{html.escape(score.remark)}</p>' if score else "")
    # a picture, in which no script of a person's file runs, and nothing is fetched
    picture = f'<img alt="score" src="{as_address(score.svg.encode())}">'
    score_box = f'<div class="score" tabindex="0" data-new="{score.new_at:.3f}">{picture}</div>'
    return f'<div class="both">{roll}{score_box}</div>'


SO_FAR = "The music so far. More is under way."  # beside a sketch, in place of what was said of other music


def sketch(step: Step) -> str:
    """The HTML of a step under way: only its rolls."""
    with TemporaryDirectory() as place:
        picture, _ = rolls(step, Path(place, "roll.svg"))
    return f'<div class="sketch"><img alt="the music so far" src="{picture}"></div>'


def begins_s(step: Step) -> float:
    """The place of new music: the end, or before the ending of a finished piece, at a beat if it has beats."""
    ending_at_s = ending_s(step.score)
    if ending_at_s is None or step.notation is not None:  # a score goes on at its end
        return step.score.duration_s
    return next((beat for beat in beats_of(step.score, step.meter) if beat > ending_at_s - ON_LINE_S), ending_at_s)


def rolls(step: Step, path: Path, width_in: float = WIDTH_IN) -> tuple[str, list[dict[str, float]]]:
    """The picture as a data address, and its panels: their places as fractions from the upper left, seconds and pitches
    at their edges."""
    wide, takes = width_in == WIDTH_IN, enumerate(step.takes, 1)
    panels: list[Panel] = [
        (f"{'variation ' * wide}{k}: {take.became}".rstrip(": "), take.score, take.new) for k, take in takes
    ]
    panels = panels or [(step.music.name, step.score, np.inf)]
    end_s = max(1.0, *(score.duration_s for _, score, _ in panels))  # as on the roll
    row_s = end_s / math.ceil(end_s / PHONE_ROW_S) if not wide else None
    with PEN:
        bars = bars_of(step.score, step.meter, end_s)
        figure = plot_rolls(panels, bars, row_s, [take.chords for take in step.takes], width_in)
        save_figure(figure, path)
        boxes = _boxes(figure, len(panels))
    return as_data(path), boxes


EDGES = ("left", "top", "width", "height", "start_s", "end_s", "low", "high")


def _boxes(figure: Figure, n_panels: int) -> list[dict[str, float]]:
    rows = len(figure.axes) // n_panels
    boxes = []
    for k, axes in enumerate(figure.axes):
        at = axes.get_position()
        values = (at.x0, 1 - at.y1, at.width, at.height, *axes.get_xlim(), *axes.get_ylim())
        boxes.append({"panel": k // rows} | {name: round(float(v), 4) for name, v in zip(EDGES, values, strict=True)})
    return boxes


def _address(path: Path) -> str:
    return f"gradio_api/file={quote(str(path))}"


KEEP_S = 3600.0  # older files are removed
KEEP_BYTES = 2**30  # of all people together: beyond it the oldest are removed
PEN = Lock()  # all threads share matplotlib's settings
PLACES = Lock()  # no thread may look at what another removes
SHOWING: dict[str, tuple[Lock, int]] = {}  # steps that are being shown, and how many people want each
LONG = Lock()  # music that takes long waits for other such music, so that all the rest need not wait for it
LONG_NOTES = 1500  # of all rolls of a step together
LONG_BARS = 100  # of all staves of its score
SECRET = os.urandom(16)  # so that the name of a step's folder cannot be guessed


def is_long(step: Step) -> bool:
    """Whether its pictures and sound take seconds."""
    staves = len(step.notation.parts) * len(step.notation.bars) if step.notation is not None else 0
    notes = sum(map(len, [take.score for take in step.takes] or [step.score]))
    return notes > LONG_NOTES or staves > LONG_BARS


@contextmanager
def step_lock(name: str) -> Iterator[None]:
    """Holds the lock of a step's name."""
    with PLACES:
        lock, people = SHOWING.get(name, (Lock(), 0))
        SHOWING[name] = lock, people + 1
    try:
        with lock:
            yield
    finally:
        with PLACES:
            lock, people = SHOWING.pop(name)
            if people > 1:
                SHOWING[name] = lock, people - 1


def new_place(folder: Path, name: str) -> Path:
    """A folder of that name, under `PLACES`; removes old folders, or those beyond the limit, but for shown ones."""
    n_bytes = 0
    for old in sorted(folder.iterdir(), key=lambda place: place.stat().st_mtime, reverse=True):
        n_bytes += sum(file.stat().st_size for file in old.iterdir())
        if old.name not in SHOWING and (n_bytes > KEEP_BYTES or old.stat().st_mtime < time.time() - KEEP_S):
            shutil.rmtree(old, ignore_errors=True)
    place = folder / name
    place.mkdir(exist_ok=True)
    return place


def as_data(svg: Path) -> str:
    return as_address(svg.read_bytes())


def as_address(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
