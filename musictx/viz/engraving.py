"""A score as pages of notation, by verovio: .svg, .png, .pdf."""

import io
import re
from base64 import b64decode
from html import escape, unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from time import gmtime
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from matplotlib import get_data_path
from PIL import Image

from musictx.errors import UserError
from musictx.files import replacing
from musictx.music.notation.kept import with_kept
from musictx.music.notation.notation import MUSICXML, MXL, SCORES, Losses, Notation
from musictx.music.notation.write import to_musicxml

PAGE = {"pageWidth": 2100, "pageHeight": 2970}  # A4, tenths of a millimetre
LONG = 60_000  # verovio's longest page: pictures are one
STYLE = {"scale": 40, "footer": "none", "svgViewBox": True, "breaks": "auto", "systemDivider": "none", "xmlIdSeed": 1}
UNDATED = gmtime(0)  # so that equal scores are equal bytes
TITLE, LINE = re.compile(r"(<(?:work|movement)-title>)([^<]*)"), 70  # letters of the largest title of a page
CREATOR = re.compile(r'<creator type="(composer|lyricist)">([^<]*)<')
NO_PAGE = re.compile(r"<credit(?=[\s>])(?![^>]*\spage\s*=)")  # by default the first one, which verovio leaves out
CREDIT = '<credit page="1"><credit-words justify="{}" valign="{}" font-weight="{}">{}</credit-words></credit>'
PLACES = {
    "title": ("center", "top", "bold"),
    "composer": ("right", "bottom", "normal"),
    "lyricist": ("left", "bottom", "normal"),
}
TOOLTIP = re.compile(r'(?s)<title class="labelAttr">.*?</title>')  # within a text it moves that, as resvg draws it
WIDTH = {".png": 1240, ".pdf": 2480}  # pixels: 150 and 300 to the inch
FORMATS = (".svg", ".png", ".pdf")
UNPRINTED = re.compile(  # verovio prints them
    r'(?s)<(degree|metronome)\b[^>]* print-object="no".*?</\1>'
)
TEXT = "STIXGeneral"  # of matplotlib: as wide as Times, for which verovio leaves room, and on all systems
FONT = re.compile(r"url\(data:application/font-woff2[^,)]*;base64,([^)]+)\)")


def write_notation(notation: Notation, path: Path, title: str) -> Losses:
    """Writes MusicXML or pages, as `write_score`; returns losses. Raises UserError as `engrave` and `to_musicxml`."""
    notation = notation.on_given_staves()
    text, losses = to_musicxml(notation, title)
    write_score(with_kept(text, notation), path)
    return losses


def write_score(musicxml: bytes, path: Path) -> None:
    """Writes MusicXML, or its pages, by the suffix. Raises UserError as `engrave` does."""
    if (suffix := path.suffix.lower()) not in SCORES:
        engrave(musicxml, path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_bytes(compressed(musicxml) if suffix == MXL else musicxml)


def compressed(musicxml: bytes) -> bytes:
    """MusicXML as .mxl. Source: https://www.w3.org/2021/06/musicxml40/tutorial/compressed-mxl-files/"""
    out, name = io.BytesIO(), f"score{MUSICXML}"
    kind = "application/vnd.recordare.musicxml"
    container = f'<container><rootfiles><rootfile full-path="{name}" media-type="{kind}+xml"/></rootfiles></container>'
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for each, data in (("mimetype", kind), ("META-INF/container.xml", container), (name, musicxml)):
            how = ZIP_STORED if each == "mimetype" else ZIP_DEFLATED
            archive.writestr(ZipInfo(each), data, how)  # without the time
    return out.getvalue()


def engrave(musicxml: bytes, path: Path) -> int:
    """Writes the pages, whole or not at all, and returns how many; a picture is one long page. Raises UserError where
    verovio or resvg_py is not installed, and for a score longer than a picture."""
    suffix = path.suffix.lower()
    pages = pages_of(musicxml, is_long=suffix != ".pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        if suffix == ".svg":
            partial.write_text(pages[0], encoding="utf-8")
        elif suffix == ".png":
            partial.write_bytes(picture_of(pages[0], WIDTH[suffix]))
        else:
            first, *more = (Image.open(io.BytesIO(picture_of(page, WIDTH[suffix]))).convert("L") for page in pages)
            about = {"title": path.stem, "creationDate": UNDATED, "modDate": UNDATED}
            first.save(partial, "PDF", save_all=True, append_images=more, resolution=300, **about)
    return len(pages)


def pages_of(musicxml: bytes, is_long: bool, width: int = PAGE["pageWidth"], titled: bool = True) -> list[str]:
    """The pages as SVG, or one `is_long`; the width in tenths of a millimetre. Raises UserError as `engrave`."""
    try:
        import verovio
    except ImportError:
        raise _missing("verovio") from None
    verovio.enableLog(verovio.LOG_OFF)
    toolkit: Any = verovio.toolkit(False)
    # verovio knows its fonts only in the thread that imported it, which partitura may have done
    toolkit.setResourcePath(str(Path(verovio.__file__).parent / "data"))
    page = PAGE | {"pageWidth": width, "header": "auto" if titled else "none"}
    toolkit.setOptions(STYLE | page | ({"pageHeight": LONG, "adjustPageHeight": True} if is_long else {}))
    if not toolkit.loadData(_with_names(TITLE.sub(_shorter, UNPRINTED.sub("", musicxml.decode())))):
        raise UserError("the score cannot be engraved", "write .musicxml, and open it in a notation program")
    if is_long and toolkit.getPageCount() > 1:
        raise UserError("the score is longer than a picture", "write .pdf, which has pages")
    return [TOOLTIP.sub("", toolkit.renderToSVG(n + 1)) for n in range(toolkit.getPageCount())]


def _shorter(title: re.Match[str]) -> str:
    """A title that fits into one line."""
    return title[1] + _short(title[2], LINE)


def _short(escaped: str, most: int) -> str:
    if len(text := unescape(escaped)) > most:
        text = shorten(text, most, placeholder=" …").lstrip("…") or f"{text[: most // 3]}…"  # one long word
    return escape(text)


def _with_names(text: str) -> str:
    """With who wrote the music as the page shall show it, which verovio leaves out where nothing is said of that."""
    text = NO_PAGE.sub('<credit page="1"', text)
    creators = CREATOR.findall(text)
    if not creators or re.search(r"<credit\s", text):
        return text
    every = {kind: [name for other, name in creators if other == kind and name.strip()] for kind in PLACES}
    names = {kind: _short(", ".join(those), LINE // 2) for kind, those in every.items() if those}
    titles = [title for _, title in TITLE.findall(text) if title.strip()]
    names["title"] = (titles or [""])[0]
    credits = (CREDIT.format(*how, names[kind]) for kind, how in PLACES.items() if names.get(kind, "").strip())
    return text.replace("<part-list", "".join(credits) + "<part-list", 1)


def picture_of(svg: str, width: int) -> bytes:
    """A page as PNG, so many pixels wide. Raises UserError as `engrave`."""
    try:
        import resvg_py
    except ImportError:
        raise _missing("resvg_py") from None
    try:
        with TemporaryDirectory() as folder:
            fonts = [*fonts_of(svg, Path(folder)), *text_fonts()]
            return bytes(
                resvg_py.svg_to_bytes(
                    svg_string=svg, width=width, background="white", font_files=fonts, serif_family=TEXT
                )
            )
    except ImportError as error:  # brotli, with which fontTools reads fonts
        raise _missing(error.name or "brotli") from None
    except ValueError as error:
        raise UserError(f"the score cannot be drawn ({error})", "write .svg or .musicxml") from None


def _missing(package: str) -> UserError:
    return UserError(f"pages need the package {package}, which is not installed", "pip install 'musictx[score]'")


def text_fonts() -> list[str]:
    """The files of the font of all texts."""
    return [str(path) for path in Path(get_data_path(), "fonts", "ttf").glob(f"{TEXT}*")]


def fonts_of(svg: str, folder: Path) -> list[str]:
    """Writes the fonts inside an SVG, which resvg reads only from files: signs of chords and tempi are letters of
    them."""
    from fontTools.ttLib import TTFont

    paths = []
    for n, data in enumerate(FONT.findall(svg)):
        font = TTFont(io.BytesIO(b64decode(data)))
        font.flavor = None  # not compressed
        font.save(folder / f"{n}.ttf")
        paths.append(str(folder / f"{n}.ttf"))
    return paths
