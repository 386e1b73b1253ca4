"""Corpora from their official homes: with a progress bar, resumed where it broke off, checked before it is used."""

import os
import urllib.request
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError

from rich.console import Console
from rich.progress import Progress

from musictx.errors import StoreError

BLOCK = 1 << 18
TIMEOUT_S = 30


@dataclass(frozen=True)
class Download:
    """An address and what it must give; no checksum where the publisher changes the file."""

    url: str
    sha256: str | None


def fetch(download: Download, folder: Path) -> Path:
    """The downloaded file in `folder`, from an earlier time if it is there. Raises StoreError in one line.

    A broken transfer stays as NAME.part and is gone on with next time.
    """
    target = folder / download.url.rpartition("/")[2]
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        _transfer(download.url, part)
    except (URLError, HTTPException, OSError) as error:
        cause = getattr(error, "reason", None) or error
        raise StoreError(
            f"{download.url} could not be downloaded ({cause}): the same command goes on where it broke off; "
            "or download it yourself and give path="
        ) from None
    if download.sha256 and (found := _digest(part)) != download.sha256:
        part.unlink()
        raise StoreError(
            f"{download.url} is not the file it should be (SHA-256 {found[:16]}…, not {download.sha256[:16]}…): "
            "it was thrown away; try again"
        )
    os.replace(part, target)
    return target


def _transfer(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except HTTPError as error:
        if error.code == 416 and have:  # nothing is left to send: the checksum decides
            return
        raise
    with answer, Progress(console=Console(stderr=True)) as progress:
        if answer.status != 206:  # a server that cannot resume sends all of it
            have = 0
        left = answer.headers.get("Content-Length")
        task = progress.add_task(f"downloading {part.stem}", total=have + int(left) if left else None, completed=have)
        with open(part, "ab" if have else "wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                progress.advance(task, len(block))
        if left and part.stat().st_size < have + int(left):
            raise OSError("the connection broke off")


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        digest = sha256()
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
