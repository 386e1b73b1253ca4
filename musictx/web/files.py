"""Files that are made for people at the page, and how long they stay."""

import base64
import shutil
import time
import uuid
from pathlib import Path
from threading import Lock

KEEP_S = 3600.0  # files that nobody took by then go away
PEN = Lock()  # matplotlib's settings are one for all threads


def new_place(folder: Path) -> Path:
    """A folder whose name cannot be guessed; those of long ago are removed."""
    for old in folder.iterdir():
        if old.stat().st_mtime < time.time() - KEEP_S:
            shutil.rmtree(old, ignore_errors=True)
    place = folder / uuid.uuid4().hex
    place.mkdir()
    return place


def as_data(svg: Path) -> str:
    """An SVG file as an address that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode()
