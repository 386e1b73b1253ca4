"""Uploaded files, limited in total, read within the limits of `READERS`, and soon removed."""

import asyncio
import os
import re
import shutil
import time
import uuid
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any, cast

from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from musictx.config.web import Limits
from musictx.data.parallel.sandbox import FileLimits, Readers, say_missing_limits
from musictx.errors import UserError
from musictx.web.reading import read_music
from musictx.web.session import PageMusic

UNTAKEN_S = 60.0  # a page takes its file at once: after this the page is gone
LOOK_S = 5.0  # between looks for such files
ARRIVE_S = 60.0  # a file must have arrived by then
PLACE_BYTES = 2**12  # disk space that a file takes beside its contents
READERS = Readers()  # of the page: it is one for a process
AT_ONCE = BoundedSemaphore(2)  # files that are read, each with memory of its own


class Uploads:
    """A folder of files that pages have sent and not yet taken."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        say_missing_limits()
        folder.mkdir(exist_ok=True)
        self.folder, self.limits = folder.resolve(), limits
        self.arriving = 0  # bytes
        self._lock = Lock()  # one thread adds and removes files, others read them

    async def receive(self, request: Request) -> Response:
        """Keeps a form's file for its page and answers with a list of its path, as Gradio's own /upload does."""
        length = int(request.headers["content-length"])  # the gate refuses requests without it
        if self.n_bytes() + self.arriving + length > self.limits.uploads_bytes:
            return PlainTextResponse("the server has too many files just now: drop yours again in a minute", 503)
        self.arriving += length
        try:
            async with asyncio.timeout(ARRIVE_S), request.form(max_files=1, max_fields=0) as form:
                file = form.get("files")
                if not isinstance(file, UploadFile):
                    return PlainTextResponse("there is no file in the form", 400)
                return JSONResponse([str(self.keep(file.filename or "", await file.read()))])
        except (TimeoutError, ClientDisconnect):
            return PlainTextResponse("the file took too long to arrive: drop it again", 408)
        finally:
            self.arriving -= length

    async def progress(self, _: Request) -> Response:
        """The progress of an upload: files are small, so it is done."""
        return PlainTextResponse('data: {"msg": "done"}\n\n', media_type="text/event-stream")

    def keep(self, name: str, data: bytes) -> Path:
        """Keeps a file in its own place, under a safe name."""
        place = self.folder / uuid.uuid4().hex
        place.mkdir()
        path = place / plain_name(name)
        path.write_bytes(data)
        return path

    def owns(self, path: Path) -> bool:
        """Whether a path is one of this folder's files, even a removed one."""
        return Path(os.path.abspath(path)).parent.parent == self.folder

    def take(self, path: Path) -> bytes | None:
        """A file's contents, which it removes; None if it is gone, or no upload."""
        if not self.owns(path):
            return None
        with self._lock:
            data = path.read_bytes() if path.is_file() else None
            shutil.rmtree(path.parent, ignore_errors=True)
        return data

    def n_bytes(self) -> int:
        """The bytes of all files."""
        with self._lock:
            return sum(path.stat().st_size + PLACE_BYTES for path in self.folder.glob("*/*"))

    def forget(self, age_s: float) -> None:
        """Removes older files."""
        with self._lock:
            for place in self.folder.iterdir():
                if place.stat().st_mtime < time.time() - age_s:
                    shutil.rmtree(place, ignore_errors=True)

    async def keep_forgetting(self) -> None:
        while True:
            self.forget(UNTAKEN_S)
            await asyncio.sleep(LOOK_S)


NAME_LENGTH = 44


def read_upload(data: bytes, name: str, limits: Limits) -> PageMusic:
    """Reads an uploaded file. Raises UserError, which names the fault."""
    file_limits = FileLimits(limits.file_seconds, limits.memory_mb)
    with AT_ONCE:
        music = cast(PageMusic | str, READERS.read(cast(Any, read_music), file_limits, data, name))
    if isinstance(music, str):
        raise UserError(f"{name}: {music}", "give another file")
    return music._replace(name=Path(name).stem.strip())


def plain_name(name: str) -> str:
    """A file's name in letters that any disk accepts."""
    plain = " ".join(re.sub(r"[^\w.-]+", " ", re.split(r"[/\\]", name)[-1]).split())
    return plain[-NAME_LENGTH:].strip(" .") or "music.mid"
