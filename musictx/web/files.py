"""Files that are made for people at the page, and how long they stay."""

import base64
import shutil
import time
import uuid
from contextlib import suppress
from pathlib import Path
from threading import Lock

KEEP_S = 3600.0  # files that nobody took by then go away
KEEP_BYTES = 2**30  # of all people together: the oldest go first
PEN = Lock()  # matplotlib's settings are one for all threads
BROOM = Lock()  # what one thread removes another must not look at


def new_place(folder: Path) -> Path:
    """A folder whose name cannot be guessed; those of long ago are removed, and those that are too much."""
    with BROOM:
        held = 0
        for old in sorted(folder.iterdir(), key=lambda place: place.stat().st_mtime, reverse=True):
            held += _size(old)
            if held > KEEP_BYTES or old.stat().st_mtime < time.time() - KEEP_S:
                shutil.rmtree(old, ignore_errors=True)
    place = folder / uuid.uuid4().hex
    place.mkdir()
    return place


def _size(place: Path) -> int:
    """Bytes of its files; another thread may just rename one."""
    size = 0
    for file in place.iterdir():
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def as_data(svg: Path) -> str:
    """An SVG file as an address that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode()
