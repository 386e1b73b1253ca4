"""A trial of a study, as a person would give its command: all that it writes lies in its `--out`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from conftest import ROOT

KEPT = (ROOT / "musictx/bundles", ROOT / "studies", ROOT / "docs")


def files(*places: Path) -> Iterator[Path]:
    for place in places:
        yield from (path for path in (place.rglob("*") if place.is_dir() else [place]) if path.is_file())


def state(*places: Path) -> dict[Path, tuple[int, int, int]]:
    """What tells whether a file was written since."""
    found = {path.resolve(): path.stat() for path in files(*places) if "__pycache__" not in path.parts}
    return {path: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def trial(script: ModuleType, *words: object) -> None:
    """Runs a script with these words in the folder that is the current one. No other file than those of `--out` may
    appear or change: here, among the inputs, or among what the project keeps."""
    said = [*map(str, words)]
    out, cwd = Path(said[said.index("--out") + 1]).resolve(), Path.cwd()
    assert cwd != ROOT, "monkeypatch.chdir"
    places = [*KEPT, cwd, *(path for path in map(Path, said) if path.exists())]
    before = state(*places)
    try:
        with patch.object(sys, "argv", [f"studies/{script.__name__}.py", *said]):
            script.main()
    finally:
        written = {path for path, _ in before.items() ^ state(*places).items()}
        assert {path for path in written if out not in path.parents} == set()
