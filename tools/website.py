"""make docs: a site of the pages in docs/, with what they link to and a reference: outputs/docs/site/index.html.

A link of a page leads to a file, as on GitHub. A file outside of docs/ comes along, so that its link works here too.
"""

import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import musictx
from musictx.cli import names
from musictx.commands.prepare import CORPORA
from musictx.config.app import command_help
from musictx.config.command import find
from musictx.config.mistakes import in_one_line
from musictx.errors import UserError
from musictx.terminal import say

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "outputs" / "docs"
ROOM = """    options:
      show_root_heading: false
      show_submodules: true
      show_if_no_docstring: false"""
BESIDE = Path("repository")  # where files from outside of docs/ lie on the site
LINK = re.compile(r"(?s)```.*?```|`[^`\n]*`|(?<=\]\()(?!\w+:|#)([^)\s#]+)|(?<=src=\")(?!\w+:)([^\"]+)")  # not in code


def place(file: Path) -> Path:
    """Where a file of the repository lies among the pages."""
    return file.relative_to("docs") if file.parts[0] == "docs" else BESIDE / file


def linked(page: Path, text: str) -> tuple[str, list[Path]]:
    """The text of a page with its links as they are on the site, and the files that they lead to."""
    files: list[Path] = []

    def moved(link: re.Match[str]) -> str:
        to = link[1] or link[2]
        if not to:
            return link[0]
        file = Path(os.path.normpath(page.parent / to))
        if not (ROOT / file).is_file():
            raise UserError(f"{page}: {to} is no file", "name one of the repository")
        files.append(file)
        return Path(os.path.relpath(place(file), place(page).parent)).as_posix()

    return LINK.sub(moved, text), files


def gather(pages: Path) -> None:
    """Writes every file of docs/, and all that its pages link to, into a folder."""
    queue = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    known = set(queue)
    while queue:
        file = queue.pop()
        to = pages / place(file)
        to.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copy(ROOT / file, to)
            continue
        text, files = linked(file, (ROOT / file).read_text(encoding="utf-8"))
        to.write_text(text, encoding="utf-8")
        queue += sorted({*files} - known)
        known |= {*files}


def write_reference(pages: Path) -> None:
    """Writes the pages that have no text of their own: settings, what `import musictx` gives, and the rooms."""
    commands = [name for name in names() if name != "prepare"] + [f"prepare_{corpus}" for corpus in CORPORA]
    settings = ["# Settings", "What `musictx COMMAND --help` prints, for every command."]
    for name in sorted(commands):
        settings += [f"## {name.replace('_', ' ')}", f"```text\n{command_help(find(name), []).strip()}\n```"]
    python = ["# From Python", "What `import musictx` gives."]
    python += [f"::: musictx.{name}" for name in musictx.__all__ if not name.startswith("_")]
    reference = {"settings": settings, "python": python}
    for room in pkgutil.iter_modules(musictx.__path__):
        if room.ispkg:
            reference[f"rooms/{room.name}"] = [f"# {room.name}", f"::: musictx.{room.name}\n{ROOM}"]
    for name, parts in reference.items():
        page = pages / "reference" / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def build(to: Path) -> Path:
    """Makes the site in a folder, and returns its first page. Raises UserError where a link leads nowhere."""
    shutil.rmtree(to, ignore_errors=True)
    gather(to / "docs")
    write_reference(to / "docs")
    shutil.copy(ROOT / "mkdocs.yml", to)
    zensical = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(zensical, cwd=to, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        say(re.sub("\x1b\\[[0-9;]*m", "", done.stdout.partition("Traceback")[0]), file=sys.stderr)
        raise UserError("a link or an anchor of these pages leads nowhere", "mend it")
    return to / "site" / "index.html"


if __name__ == "__main__":
    with in_one_line():
        os.environ["COLUMNS"] = "80"  # settings as in a terminal of this width
        say(build(OUT))
