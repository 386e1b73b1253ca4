"""People's files between their arrival and their reading: bounded in sum, each in a place of its own, soon gone."""

import asyncio
import os
import re
import shutil
import time
import uuid
from pathlib import Path
from threading import Lock

from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from musictx.web.limits import Limits

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
                return JSONResponse([str(self.keep(file.filename or "", await file.read()))])
        except (TimeoutError, ClientDisconnect):
            return PlainTextResponse("the file took too long to come: drop it again", 408)
        finally:
            self.arriving -= length

    async def progress(self, _: Request) -> Response:
        """A page asks how far its file has come: files are small, so they are there."""
        return PlainTextResponse('data: {"msg": "done"}\n\n', media_type="text/event-stream")

    def keep(self, name: str, data: bytes) -> Path:
        """A place of its own for a file, under what is left of the name that a person gave it."""
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
