"""How long `musictx prepare` takes for so many files, and how much memory and disk.

Each file is two bars of one hymn and two of another, in a key by chance: all different, and shorter than most music.
"""

import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np
import psutil
from facts import check_out, versions

from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.files import write_json
from musictx.lessons.hymns import hymns
from musictx.music.grid import grid_to_score
from musictx.music.write import write_midi
from musictx.setting import setting
from musictx.system import processor
from musictx.terminal import say
from musictx.waiting import estimated

PART = 32  # sixteenths of a hymn
A_FOLDER = 1000  # files
EVERY_S = 0.2  # from one look at the memory to the next


@dataclass
class BenchPrepareConfig:
    """musictx benchmarks/prepare.py: seconds, memory and disk of `musictx prepare` for so many files."""

    files: list[int] = setting([20, 2_000, 10_000], "how many small files of each run")
    workers: int = setting(2, "reader processes")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


def write_files(folder: Path, count: int) -> None:
    """Writes so many little hymns; the same ones each time."""
    rng, tunes = np.random.default_rng(0), hymns()
    for k in estimated(range(count), f"writing {count} files"):
        parts = []
        for tune in rng.choice(len(tunes), 2, replace=False):
            start = rng.integers(len(tunes[tune]) - PART)
            parts.append(tunes[tune][start : start + PART])
        grid = np.concatenate(parts)
        moved = np.where(grid < 0, grid, grid + rng.integers(-5, 6))
        write_midi(grid_to_score(moved.astype(np.int16)), folder / f"{k // A_FOLDER:03d}" / f"{k:06d}.mid")


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def prepared(midi: Path, store: Path, workers: int) -> dict[str, Any]:
    """What a whole command takes. Raises UserError if it fails."""
    words = ["-m", "musictx", "prepare", "folder", f"path={midi}", f"out={store}", f"workers={workers}"]
    start, parent_bytes, readers_bytes = perf_counter(), 0, 0
    with (
        open(store.parent / "said", "w+") as said,
        subprocess.Popen([sys.executable, *words], stdout=said, stderr=said) as run,
    ):
        watched = psutil.Process(run.pid)
        while run.poll() is None:
            try:
                readers = sum(each.memory_info().rss for each in watched.children(recursive=True))
                parent_bytes, readers_bytes = max(parent_bytes, watched.memory_info().rss), max(readers_bytes, readers)
            except psutil.NoSuchProcess:
                pass  # it has ended since
            sleep(EVERY_S)
        seconds = perf_counter() - start
        said.seek(0)
        if run.returncode:
            raise UserError(f"musictx prepare has failed: {said.read().strip()[-200:]}")
    taken = {"seconds": seconds, "parent_mib": parent_bytes / 2**20, "readers_mib": readers_bytes / 2**20}
    return taken | {"midi_mib": size(midi) / 2**20, "store_mib": size(store) / 2**20}


def bench_prepare(config: BenchPrepareConfig) -> None:
    check_out(config.out)
    if min(config.files, default=0) < 4:
        raise ConfigError("files", got=config.files, allowed="4 or more each, for three splits")
    where = f"{processor()}, {versions()}"
    say(where)
    names = ("seconds", "parent_mib", "readers_mib", "midi_mib", "store_mib")
    say(f"{'files':>9}" + "".join(f"{name:>13}" for name in names))
    rows = []
    for count in config.files:
        with TemporaryDirectory() as folder:
            write_files(Path(folder, "midi"), count)
            row = {"files": count} | prepared(Path(folder, "midi"), Path(folder, "store"), config.workers)
        rows.append(row)
        say(f"{count:>9,}" + "".join(f"{row[name]:>13,.1f}" for name in names), flush=True)
    if config.out:
        write_json(Path(config.out), {"where": where, "config": asdict(config), "rows": rows})


COMMAND = Command("bench_prepare", bench_prepare, BenchPrepareConfig)
