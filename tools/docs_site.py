"""make docs: a site of the pages in docs/, with what they link to and a reference: outputs/docs/site/index.html.

A link of a page leads to a file, as on GitHub. What lies outside of docs/ comes along, so it leads there on the site
too.
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
from musictx.config.app import helped
from musictx.config.command import find
from musictx.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "outputs" / "docs"
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
    """Writes every page of docs/, and all that these link to, into a folder."""
    queue = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.md"))]
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
    parts = ["# Settings", "What `musictx COMMAND --help` prints, for all commands."]
    for name in sorted(commands):
        parts += [f"## {name.replace('_', ' ')}", f"```text\n{helped(find(name), []).strip()}\n```"]
    whole = [f"::: musictx.{name}" for name in musictx.__all__ if not name.startswith("_")]
    python = ["# From Python", "What `import musictx` gives.", *whole]
    write(pages / "reference" / "settings.md", parts)
    write(pages / "reference" / "python.md", python)
    rooms = [room.name for room in pkgutil.iter_modules(musictx.__path__) if room.ispkg]
    for room in rooms:
        whole_room = f"::: musictx.{room}\n    options:\n      show_submodules: true"
        write(pages / "reference" / "rooms" / f"{room}.md", [f"# {room}", whole_room])
    links = [f"- [{room}](rooms/{room}.md)" for room in rooms]
    write(pages / "reference" / "rooms.md", ["# The rooms of the package", "\n".join(links)])


def write(page: Path, parts: list[str]) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def build(to: Path) -> Path:
    """Makes the site in a folder, and returns its first page; a link or an anchor that leads nowhere is an error."""
    shutil.rmtree(to, ignore_errors=True)
    gather(to / "docs")
    write_reference(to / "docs")
    shutil.copy(ROOT / "mkdocs.yml", to)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=to, check=True)
    return to / "site" / "index.html"


if __name__ == "__main__":
    print(build(OUT))
