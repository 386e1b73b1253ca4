"""make docs: the reference out of the docstrings, by pdoc: outputs/docs/index.html."""

import pkgutil
from pathlib import Path

import pdoc
import pdoc.render

import musictx

OUT = Path(__file__).parents[1] / "outputs" / "docs"


def render(to: Path, *without: str) -> None:
    """Writes a page for each module, but for those that match a pattern of `without`; an index and its search."""
    for name in musictx.__all__:  # they are imported when someone asks, and pdoc only looks
        setattr(musictx, name, getattr(musictx, name))
    rooms = [module.name for module in pkgutil.iter_modules(musictx.__path__) if module.name != "__main__"]
    musictx.__all__ += rooms  # or the first page would not lead to theirs
    pdoc.render.configure(docformat="google", footer_text=f"musictx {musictx.__version__}")
    pdoc.pdoc("musictx", *(f"!{pattern}" for pattern in without), output_directory=to)


if __name__ == "__main__":
    render(OUT)
    print(f"{OUT}/index.html")
