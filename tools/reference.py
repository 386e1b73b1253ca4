"""make docs: the reference out of the docstrings, outputs/docs: what `import musictx` gives first, then every module.

Nothing is written where `docstrings.py` finds a mistake, where pdoc has a warning, or where a link leads nowhere.
"""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import posixpath
import re
import textwrap
import warnings
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pdoc.doc
import pdoc.render
from docstrings import ERRORS, comment, mistakes

import musictx

ROOT = Path(__file__).parents[1]
OUT = ROOT / "outputs" / "docs"
TYPES = "Error parsing type annotation"  # a NamedTuple's, which is shown as it is written; types are mypy's
LINK = re.compile(r'href="(?!https?:|data:|\$\{)([^"#]*)(?:#([^"]*))?"')


def main() -> None:
    if found := mistakes(ROOT):
        raise SystemExit("\n".join([*found, f"error: {len(found)} mistakes in docstrings, told above"]))
    with warnings.catch_warnings(record=True) as heard:
        warnings.filterwarnings("always", module="pdoc")
        pages = render([musictx.__name__, ERRORS, *modules()])
    told = [str(each.message) for each in heard if "pdoc" in Path(each.filename).parts]
    if said := [text for text in told if not text.startswith(TYPES)]:
        raise SystemExit("\n".join([*said, f"error: {len(said)} warnings of pdoc, told above"]))
    if dead := list(dead_links(pages)):
        raise SystemExit("\n".join([*dead, f"error: {len(dead)} links lead nowhere"]))
    write(pages, OUT)
    print(f"{OUT.relative_to(ROOT)}/index.html: {len(pages)} pages")


def modules() -> list[str]:
    """Every module of the package but its door, the errors, and what is run alone."""
    apart = (ERRORS, f"{musictx.__name__}.__main__")
    return [name for _, name, _ in pkgutil.walk_packages(musictx.__path__, "musictx.") if name not in apart]


def render(names: Iterable[str]) -> dict[str, str]:
    """The files of the reference: a page for each module, the first is the one that opens, and the search's index."""
    for name in musictx.__all__:  # they come when they are asked for, and pdoc looks at what is there
        setattr(musictx, name, getattr(musictx, name))
    docs = {name: pdoc.doc.Module(importlib.import_module(name)) for name in names}
    for doc in docs.values():
        tell(doc)
    door = docs[musictx.__name__]
    door.members = {name: door.members[name] for name in musictx.PLACES}
    door.submodules = [doc for name, doc in docs.items() if name.count(".") == 1]
    version = f"musictx {musictx.__version__}"
    pdoc.render.configure(docformat="google", include_undocumented=False, show_source=False, footer_text=version)
    pages = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(doc, docs) for name, doc in docs.items()}
    return pages | {"index.html": pdoc.render.html_index(docs), "search.js": pdoc.render.search_index(docs)}


def tell(doc: pdoc.doc.Module | pdoc.doc.Class) -> None:
    """Docstrings as they are meant here: of a field the meaning of its setting or the comment behind it, of a
    constructor its class's, of a method its own, and not what PyTorch or Lightning says of it."""
    for each in doc.members.values():
        if isinstance(each, pdoc.doc.Class):
            tell(each)
            told = meanings(each.obj)
            for field in each.instance_variables + each.class_variables:
                field.docstring = field.docstring or told.get(field.name, "")
        elif isinstance(each, pdoc.doc.Function):
            ours = each.taken_from[0].partition(".")[0] == musictx.__name__
            own = inspect.cleandoc(each.obj.__doc__ or "") if ours else ""
            each.docstring = own or ("@public" if each.name == "__init__" else "")  # pdoc's word: shown without text


def meanings(cls: type) -> dict[str, str]:
    """What is said of a class's fields, and of those that it has from others of ours."""
    told: dict[str, str] = {}
    for base in reversed([each for each in cls.__mro__ if each.__module__.partition(".")[0] == musictx.__name__]):
        source = textwrap.dedent(inspect.getsource(base))
        (node,) = ast.parse(source).body
        for field in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(field, ast.AnnAssign):
                told[ast.unparse(field.target)] = comment(field, source.splitlines())
    if dataclasses.is_dataclass(cls):
        told |= {field.name: str(field.metadata["meaning"]) for field in dataclasses.fields(cls) if field.metadata}
    return told


def dead_links(pages: Mapping[str, str]) -> Iterator[str]:
    """A line for every link to a page or a place in it that is not there."""
    for page, html in pages.items():
        for file, place in LINK.findall(html) if page.endswith(".html") else ():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
            if target not in pages or (place and f'id="{place}"' not in pages[target]):
                yield f"{page}: {file}{'#' if place else ''}{place}"


def write(pages: Mapping[str, str], to: Path) -> None:
    """All of them or none, in place of those that are there."""
    with TemporaryDirectory(dir=to.parent) as name:
        new = Path(name) / "new"
        for page, text in pages.items():
            (new / page).parent.mkdir(parents=True, exist_ok=True)
            (new / page).write_text(text, encoding="utf-8")
        if to.exists():
            to.rename(Path(name) / "old")
        new.rename(to)


if __name__ == "__main__":
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    main()
