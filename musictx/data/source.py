"""Music files in a folder or a zip archive, which is never unpacked to disk, or in a download with a checksum."""

import os
import stat
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import file_digest
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from musictx.errors import ConfigError, MidiError, StoreError, counted
from musictx.files import printable, replacing
from musictx.music.notation.several import BOOKS, MOST_PIECES, Several, several
from musictx.music.other_formats import LOOKED_AT, NOTATION, notation_of, other_format, ways
from musictx.music.read import MOST_BYTES, SUFFIXES
from musictx.waiting import Waiting

UNREADABLE = "cannot be read"
MOST_TEXT = 2**28  # bytes of all pieces of a book, each with its head


@dataclass(frozen=True)
class Item:
    """A file in a folder or archive; its stamp changes with its content. `load(limit)` gives its bytes, and raises
    MidiError for more of them and for an unreadable file."""

    name: str
    stamp: str
    load: Callable[[int], bytes]


@contextmanager
def open_source(path: Path, suffixes: tuple[str, ...] = SUFFIXES, without: Sequence[Path] = ()) -> Iterator[list[Item]]:
    """The files of a folder or zip with one of these suffixes, in any case, by name; valid inside the block. A book of
    scores has an item for each. Skips the folders `without`: output may lie below the input. Raises ConfigError;
    StoreError where there is no such file."""
    kinds = ", ".join(suffixes if suffixes != ("",) else SUFFIXES)
    if not path.exists():
        raise ConfigError("path", got=path, why="it does not exist", allowed=f"a folder or zip with {kinds} files")
    if not path.is_file() and not path.is_dir():
        raise ConfigError("path", got=path, why="it is neither a folder nor a zip archive")
    if path.is_file() and _is_notation(path):
        pieces = _pieces([_file(printable(path.name), str(path))])
        if len(pieces) == 1:
            raise ConfigError("path", got=path, why="it is one score", allowed="a folder, zip or book of scores")
        yield pieces
        return
    try:
        archive = nullcontext() if path.is_dir() else zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        is_other = other_format(_head(path), path)
        why = f"it {is_other or f'is neither a folder nor a zip archive that can be read ({error})'}"
        raise ConfigError("path", got=path, why=why) from None
    with archive as opened:
        files = _members(opened, suffixes) if opened else _walk(path, suffixes, without)
        items = _pieces(sorted(files, key=lambda item: item.name))
        if not items:
            names = opened.namelist() if opened else [item.name for item in _walk(path, ("",), without)]
            raise no_file_error(path, kinds, names)
        yield items


def no_file_error(path: Path, kinds: str, names: Sequence[str]) -> StoreError:
    """The error for a folder or archive without a file of these kinds, with advice by the names that it has."""
    is_other = other_format(b"", path) if path.is_file() else ""
    where = f"{path}" + " or below it" * path.is_dir()
    return StoreError(f"{path} {is_other}") if is_other else StoreError(f"no {kinds} file in {where}", ways(names))


def _pieces(items: Iterable[Item]) -> list[Item]:
    """The files, each with several pieces as these, `book.abc/2.abc`; at most `MOST_PIECES` of all books."""
    cut = lru_cache(maxsize=2)(_cut)  # of the books that are read just now: a text can be far larger than its archive
    found, most = list[Item](), MOST_PIECES
    for item in items:
        suffix, count, size = Path(item.name).suffix, 0, 0
        if NOTATION.get(suffix.lower(), "") in BOOKS:
            with suppress(MidiError):  # which is raised again where the file is read
                book = cut(item)
                count, size = len(book.spans), book.size
        if count < 2:
            found.append(item)
        elif count > most or size > MOST_TEXT:
            limit = f"{MOST_PIECES} of all books" if count > most else f"{MOST_TEXT >> 20} MB with the head of each"
            why = f"it has {counted(count, 'piece')}, and at most {limit} are read; cut it into several files"
            found.append(Item(item.name, item.stamp, partial(_refuse, item.name, why)))
        else:
            most -= count
            for n in range(count):
                name = f"{item.name}/{n + 1}{suffix}"
                found.append(Item(name, f"{item.stamp}:{n + 1}", partial(_piece, name, cut, item, n)))
    return found


def _cut(item: Item) -> Several:
    return several(item.load(MOST_BYTES), NOTATION[Path(item.name).suffix.lower()], item.name)


def _piece(name: str, cut: Callable[[Item], Several], item: Item, n: int, limit: int) -> bytes:
    try:
        return _bounded(cut(item).piece(n), limit, name)
    except IndexError:
        raise MidiError(name, "its file has changed meanwhile") from None


def _is_notation(path: Path) -> bool:
    """Whether a file is a score or a book: an archive of packed scores is neither."""
    if notation_of(_head(path), path) is None or not zipfile.is_zipfile(path):
        return notation_of(_head(path), path) is not None
    try:
        with zipfile.ZipFile(path) as archive:
            return "META-INF/container.xml" in archive.namelist()
    except Exception:  # zipfile raises many types for damage; its reader says more
        return False


def _head(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LOOKED_AT)
    except OSError:
        return b""


def _walk(top: Path, suffixes: tuple[str, ...], without: Sequence[Path]) -> Iterator[Item]:
    """Files of a folder, through links, each real folder once. A link out of `top`, and a folder without read
    permission, become items that cannot be loaded."""
    visited, inside = set(), top.resolve()
    closed: list[OSError] = []
    for root, folders, names in os.walk(top, onerror=closed.append, followlinks=True):
        real = Path(root).resolve()
        if real in visited or real in without:
            folders.clear()
            continue
        visited.add(real)
        folders.sort()
        for name in [*folders, *(name for name in names if name.lower().endswith(suffixes))]:
            path = os.path.join(root, name)
            label, is_folder = printable(os.path.relpath(path, top)), name in folders
            if os.path.islink(path) and not Path(path).resolve().is_relative_to(inside):
                label += os.sep * is_folder
                folders[:] = [each for each in folders if each != name]
                yield Item(label, "outside", partial(_refuse, label, "a link that leads out of the folder"))
            elif not is_folder:
                yield _file(label, path)
    for error in closed:
        name = printable(os.path.relpath(error.filename, top)) + os.sep
        yield Item(name, "closed", partial(_refuse, name, f"{UNREADABLE}: {error.strerror}"))


def _refuse(name: str, reason: str, limit: int) -> bytes:
    raise MidiError(name, reason)


def _file(name: str, path: str) -> Item:
    load = partial(_read, name, path)
    try:
        info = os.stat(path)
        return Item(name, f"{info.st_size}:{info.st_mtime_ns}", load)
    except OSError:
        return Item(name, "unreadable", load)


def _read(name: str, path: str, limit: int) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait forever
            raise MidiError(name, "not a file: it is a folder, pipe or device")
        with open(path, "rb") as file:
            return _bounded(file.read(limit + 1), limit, name)
    except OSError as error:
        raise MidiError(name, f"{UNREADABLE}: {error.strerror}") from None


def _members(archive: zipfile.ZipFile, suffixes: tuple[str, ...]) -> Iterator[Item]:
    for info in archive.infolist():
        if info.filename.lower().endswith(suffixes) and not info.is_dir():
            name = printable(info.filename)
            yield Item(name, f"{info.file_size}:{info.CRC:08x}", partial(_unpack, name, archive, info))


def _unpack(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        reason = "cannot be unpacked: its compression method allows no size limit"
        raise MidiError(name, f"{reason}; pack it again with deflate")
    try:
        with archive.open(info) as file:  # read() stops at the limit, whatever size the archive claims
            data = file.read(limit + 1)
    except Exception as error:  # zipfile raises many types for damage, encryption, unknown compression
        raise MidiError(name, f"cannot be unpacked: {' '.join(str(error).split())[:100]}") from None
    return _bounded(data, limit, name)


def _bounded(data: bytes, limit: int, name: str) -> bytes:
    if len(data) > limit:
        raise MidiError(name, f"too large: more than {limit / 2**20:g} MB; file_mb=… allows more")
    if not data:
        raise MidiError(name, "the file is empty")
    return data


BLOCK = 1 << 18
TIMEOUT_S = 30


class Download(NamedTuple):
    """An address and its file's checksum, None where the publisher changes the file."""

    url: str
    sha256: str | None


def fetch(download: Download, folder: Path) -> Path:
    """The file of a new or earlier download in `folder`. Raises StoreError."""
    target = folder / download.url.rpartition("/")[2]
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        try:
            _transfer(download.url, partial)
        except (HTTPException, OSError) as error:
            cause = getattr(error, "reason", None) or error
            hint = "give the same command again; or download it yourself and give path="
            raise StoreError(f"{download.url} could not be downloaded ({cause})", hint) from None
        with open(partial, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        if download.sha256 and digest != download.sha256:
            what = f"{download.url} is not the expected file (SHA-256 {digest[:16]}…, not {download.sha256[:16]}…)"
            raise StoreError(what, "try again")
    return target


def _transfer(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        length = int(answer.headers.get("Content-Length", 0)) or None
        waiting = Waiting(f"downloading {url}", length or 0)
        with open(path, "wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                waiting.advance(len(block))
            if length is not None and file.tell() < length:
                raise OSError("the connection broke off")
