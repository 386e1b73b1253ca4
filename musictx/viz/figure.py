"""The figure under every picture: one style, and a file whose suffix says its format."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from matplotlib import rc_context, rcParamsDefault
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names

from musictx.files import check_suffix, replacing

FORMATS = (".png", ".svg", ".pdf")
OTHER_SCRIPTS = (  # fonts of systems, for names of files and labels
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Thai"),
    *("Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic"),
)
INK, FAINT, GREY = "#3c4043", "#9aa0a6", "#80868b"


def new_figure(width_in: float, height_in: float, dpi: int = 110) -> Figure:
    figure = Figure(figsize=(width_in, height_in), dpi=dpi, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a PNG, SVG or PDF by the suffix, whole or not at all; the same figure gives the same bytes. Raises
    ConfigError for another suffix."""
    check_suffix("path", path, FORMATS)
    suffix = path.suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "musictx"}
    with replacing(path) as partial, any_script(), rc_context(settings):  # type: ignore[arg-type]  # keys are literals to it
        figure.savefig(partial, format=suffix[1:], metadata=metadata)


@contextmanager
def any_script() -> Iterator[None]:
    """Within it, letters that our font lacks come from a font of the system; else each is drawn as a box."""
    with rc_context({"font.sans-serif": _fonts()}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


@cache
def _fonts() -> list[str]:
    fonts = {*get_font_names()}
    return [*rcParamsDefault["font.sans-serif"], *(name for name in OTHER_SCRIPTS if name in fonts)]
