"""The bytes of a notation file -> its text, unpacked."""

import io
import re
from html import unescape
from posixpath import normpath
from urllib.parse import unquote
from zipfile import ZipFile

from musictx.errors import MidiError

MOST_BYTES = 2**24  # of text
ROOTS = re.compile(r"""full-path\s*=\s*(["'])(.*?)\1""")  # the files of a container, which may be no XML


def text_of(data: bytes, source: object) -> str:
    """The text of a score, unpacked. Raises MidiError."""
    if data[:4] == b"PK\x03\x04":
        data = _member(data, source)
    if len(data) > MOST_BYTES:
        raise MidiError(source, f"it has more than {MOST_BYTES >> 20} MB of notation", "cut the score")
    if "<!ENTITY" in (text := _decoded(data)):  # none of them is needed, and few can fill the memory
        raise MidiError(source, "it declares entities of XML, which no score needs", "export it again")
    return text


def _decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return re.sub(r"encoding=.UTF-16.", "", data.decode("utf-16", "replace"), count=1, flags=re.IGNORECASE)
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _member(data: bytes, source: object) -> bytes:
    """The score in a packed file, as its container names it, or the first."""
    try:
        with ZipFile(io.BytesIO(data)) as packed:
            names = [each for each in packed.namelist() if not each.startswith(("META-INF", "__MACOSX"))]
            container = b""
            if "META-INF/container.xml" in packed.namelist():
                with packed.open("META-INF/container.xml") as file:
                    container = file.read(2**16)
            said = [unquote(unescape(each)) for _, each in ROOTS.findall(container.decode("utf-8", "replace"))]
            named = [normpath(each).lstrip("/") for each in said]
            roots = [name for name in named if name in names]  # the first is the score, others are pictures or parts
            scores = [name for name in (*roots, *names) if name.lower().endswith((".xml", ".musicxml", ".mei"))]
            if not scores:
                raise MidiError(source, "it is a packed file without a score in it", "export MusicXML")
            with packed.open(scores[0]) as file:
                return file.read(MOST_BYTES + 1)
    except (MidiError, MemoryError):
        raise
    except Exception as error:  # damage can make it raise anything
        raise MidiError(source, f"it cannot be unpacked ({error})", "export it again") from None
