"""People's files: bounded in sum until they are read, read by a process of its own with limits, soon gone."""

import asyncio
import os
import re
import shutil
import time
import uuid
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, cast

from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from musictx.config.web import Limits
from musictx.data.work.sandbox import Limits as ReaderLimits
from musictx.data.work.sandbox import run_batch
from musictx.errors import MidiError, UserError
from musictx.music.read import read_tracks
from musictx.web.session import Heard, Music

UNTAKEN_S = 60.0  # a page takes its file at once: whoever does not by then is gone
LOOK_S = 5.0  # between looks for those
ARRIVE_S = 60.0  # a file has a claim on its room only so long
PLACE_BYTES = 2**12  # that a file takes beside its contents
NAME_BYTES = 200


class Uploads:
    """A folder of files that pages have sent and not yet taken."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.limits = folder.resolve(), limits
        self.arriving = 0  # bytes
        self._lock = Lock()  # files come and go in one thread, and are read in others

    async def receive(self, request: Request) -> Response:
        """Keeps a form's file for its page and answers with a list of its path, as Gradio's own /upload does."""
        length = int(request.headers["content-length"])  # the gate lets nothing in without
        if self.held() + self.arriving + length > self.limits.uploads_bytes:
            return PlainTextResponse("the server holds too many files just now: drop yours again in a minute", 503)
        self.arriving += length
        try:
            async with asyncio.timeout(ARRIVE_S), request.form(max_files=1, max_fields=0) as form:
                file = form.get("files")
                if not isinstance(file, UploadFile):
                    return PlainTextResponse("there is no file in the form", 400)
                return JSONResponse([str(self._keep(file.filename or "", await file.read()))])
        except (TimeoutError, ClientDisconnect):
            return PlainTextResponse("the file took too long to come: drop it again", 408)
        finally:
            self.arriving -= length

    async def progress(self, _: Request) -> Response:
        """A page asks how far its file has come: files are small, so they are there."""
        return PlainTextResponse('data: {"msg": "done"}\n\n', media_type="text/event-stream")

    def _keep(self, name: str, data: bytes) -> Path:
        place = self.folder / uuid.uuid4().hex
        place.mkdir()
        path = place / plain_file_name(name)
        path.write_bytes(data)
        return path

    def owns(self, path: Path) -> bool:
        """Whether a path lies where this folder's files do; the file may be gone."""
        return Path(os.path.abspath(path)).parent.parent == self.folder

    def take(self, path: Path) -> bytes | None:
        """The contents of a file, which is gone then; None where it was gone before, or never was an upload."""
        if not self.owns(path):
            return None
        with self._lock:
            data = path.read_bytes() if path.is_file() else None
            shutil.rmtree(path.parent, ignore_errors=True)
        return data

    def held(self) -> int:
        """Bytes of all files together."""
        with self._lock:
            return sum(path.stat().st_size + PLACE_BYTES for path in self.folder.glob("*/*"))

    def forget(self, age_s: float) -> None:
        """Removes the files that are older."""
        with self._lock:
            for place in self.folder.iterdir():
                if place.stat().st_mtime < time.time() - age_s:
                    shutil.rmtree(place, ignore_errors=True)

    async def keep_forgetting(self) -> None:
        while True:
            self.forget(UNTAKEN_S)
            await asyncio.sleep(LOOK_S)


def plain_file_name(name: str) -> str:
    """A name as a person may have given it, that is a file's name on any disk."""
    name = re.sub(r"[/\\\x00-\x1f]", " ", name).encode("utf-8", "replace")[-NAME_BYTES:].decode("utf-8", "ignore")
    return name.strip(" .") or "music.mid"


NAME_LENGTH = 40


class Read(NamedTuple):
    played: Heard
    written: Heard | None
    tracks: int
    drums: bool


def read_upload(data: bytes, name: str, limits: Limits) -> Music:
    """Raises UserError that says in one line what is wrong with the file."""
    size = len(data)
    if size > limits.upload_bytes:
        raise UserError(f"{name}: {size / 2**20:.1f} MB; files up to {limits.upload_bytes / 2**20:g} MB are taken")
    if not size:
        raise UserError(f"{name}: the file is empty: give a MIDI file")
    allowed = ReaderLimits(limits.file_seconds, limits.memory_mb)
    read = cast(Read | str, run_batch(cast(Any, read_music), [data], allowed)[0])
    if isinstance(read, str):
        raise UserError(f"{name}: {read}")
    return Music(plain_name(name), *read.played, written=read.written, tracks=read.tracks, drums=read.drums)


def read_music(data: bytes) -> Read | str:
    """In the reader process: the music without drums, or why there is none."""
    try:
        tracks = read_tracks(data, "")
        changes = tracks.clock is not None and tracks.clock.changes
        even = read_tracks(data, "", one_tempo=True) if changes else None
    except MidiError as error:
        return error.reason
    score = tracks.merge()
    if not len(score):
        only_drums = len(tracks.merge(drums=True)) > 0
        return "there are only drums in it" if only_drums else "there are no notes in it: give one with music"
    sounding = [track for track in tracks.tracks if len(track.score)]
    melodic = sum(not track.is_drums for track in sounding)
    written = None if even is None else Heard(even.merge(), even.meter())
    return Read(Heard(score, tracks.meter()), written, melodic, melodic < len(sounding))


def plain_name(name: str) -> str:
    """A file's name without its suffix, of letters, digits and what does no harm in titles and in other names."""
    return " ".join(re.sub(r"[^\w.-]+", " ", Path(name).stem).split()).strip(".")[:NAME_LENGTH] or "music"
