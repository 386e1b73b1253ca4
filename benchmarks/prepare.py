"""How fast a corpus becomes a store, beside MidiTok's MIDILike, and how its cost grows.

Both encode the same bytes in one process, in turn; then the whole preparation runs on 1, 4 and 16 times the files.
"""

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import symusic
from omegaconf import MISSING
from tokens import MAX_BYTES

from musictx.config.command import Command
from musictx.config.prepare import FilterConfig, PrepareConfig, SelectConfig
from musictx.data.parallel.cluster import cores
from musictx.data.prepare import assign_splits, prepare
from musictx.data.recipe import Recipe, encode_midi
from musictx.data.source import Item, open_source
from musictx.data.store import Corpus
from musictx.errors import ConfigError, UserError
from musictx.files import replacing
from musictx.setting import setting
from musictx.system import peak_gib
from musictx.tokenizers import build_tokenizer


@dataclass
class BenchPrepareConfig:
    """musictx benchmarks/prepare.py: a corpus to a store, beside MidiTok, and for 1, 4 and 16 times the files."""

    path: str = setting(MISSING, "a folder or zip of MIDI files")
    max_files: int = setting(80, "read this many files from the start")
    repeats: int = setting(3, "runs of each measurement")
    workers: int | None = setting(None, "readers at once; null: one per core")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


TIMES = (1, 4, 16)
RECIPE = Recipe(build_tokenizer("performance"), SelectConfig(), FilterConfig())


@dataclass(frozen=True)
class Figures:
    """Seconds of each repeat over the same files, and of whole preparations of 1, 4 and 16 times as many."""

    files: int
    workers: int
    one_core_s: dict[str, list[float]]
    tokens: dict[str, int]
    scaling: list[dict[str, float]]
    peak_mb: float


def bench_prepare(config: BenchPrepareConfig) -> None:
    for name in ("max_files", "repeats"):
        if getattr(config, name) < 1:
            raise ConfigError(name, got=getattr(config, name), allowed="1 or more")
    with open_source(Path(config.path)) as found:
        chosen = found[:: max(len(found) // config.max_files, 1)][: config.max_files]
        files = [(item.name, item.load(MAX_BYTES)) for item in chosen]
        one_core, tokens = beside_miditok([data for _, data in files], config.repeats)
    workers = cores(config.workers)
    scaling = [whole(files, times, workers) for times in TIMES]
    used = 1024 * (peak_gib() or 0)
    figures = Figures(len(files), workers, one_core, tokens, scaling, round(used))
    print(report(figures))
    if config.out:
        Path(config.out).parent.mkdir(parents=True, exist_ok=True)
        with replacing(Path(config.out)) as partial_path:
            partial_path.write_text(json.dumps(asdict(figures), indent=1), encoding="utf-8")


def beside_miditok(files: Sequence[bytes], repeats: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Bytes -> ids, ours with everything that a preparation does to a file, theirs by `tokenizer.encode`.

    Raises ConfigError without MidiTok, UserError if ours cannot use a file.
    """
    try:
        from miditok import MIDILike
    except ImportError:
        raise UserError("it needs the package miditok", "pip install 'musictx[miditok]'") from None
    theirs = MIDILike()

    def ours(data: bytes) -> int:
        result = encode_midi(data, RECIPE)
        if isinstance(result, str):
            raise UserError(f"a file of the corpus cannot be used ({result})", "give a corpus of sound files")
        return len(result[0]) // 2

    def their(data: bytes) -> int:
        return sum(len(part.ids) for part in theirs.encode(symusic.Score.from_midi(data)))

    jobs: dict[str, Callable[[bytes], int]] = {"musictx": ours, "MidiTok MIDILike": their}
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    tokens: dict[str, int] = {}
    for _ in range(repeats):
        for name, job in jobs.items():
            start = perf_counter()
            tokens[name] = sum(job(data) for data in files)
            seconds[name].append(perf_counter() - start)
    return seconds, tokens


def whole(files: Sequence[tuple[str, bytes]], times: int, workers: int) -> dict[str, float]:
    """A preparation from bytes to store, with every file `times` times."""
    items = [
        Item(f"{k}/{name}", len(data), f"{k}", lambda _, data=data: data)  # type: ignore[misc]
        for k in range(times)
        for name, data in files
    ]
    with (
        TemporaryDirectory(prefix="musictx-") as folder,
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        config = PrepareConfig(out=f"{folder}/store", workers=workers)
        start = perf_counter()
        manifest = prepare(
            items,
            partial(encode_midi, recipe=RECIPE),
            str(RECIPE),
            RECIPE.tokenizer,
            Corpus("bench", "none"),
            lambda _, keys: assign_splits(keys, 0.1, 0.1, 0),
            config,
        )
        seconds = perf_counter() - start
    return {
        "files": len(items),
        "seconds": round(seconds, 3),
        "tokens": sum(s.tokens for s in manifest.splits.values()),
    }


def report(f: Figures) -> str:
    """The figures as two tables."""
    lines = [f"{f.files} files, one core", f"{'':<18}{'files/s':>9}{'tokens/s':>13}   slowest … fastest files/s"]
    rate: dict[str, Any] = {}
    for name, times in f.one_core_s.items():
        rate[name] = f.files / median(times)
        spread = f"{f.files / max(times):.1f} … {f.files / min(times):.1f}"
        lines.append(f"{name:<18}{rate[name]:>9.1f}{f.tokens[name] / median(times):>13,.0f}   {spread}")
    ours, theirs = rate.values()
    lines += [f"ratio {ours / theirs:.1f}", f"whole preparation, {f.workers} workers, cluster start included"]
    lines += [f"{'files':>9}{'seconds':>9}{'files/s':>9}{'tokens/s':>13}"]
    for row in f.scaling:
        files, seconds, tokens = row["files"], row["seconds"], row["tokens"]
        lines.append(f"{files:>9,.0f}{seconds:>9.2f}{files / seconds:>9.1f}{tokens / seconds:>13,.0f}")
    lines.append(f"largest memory of this process: {f.peak_mb:.0f} MB")
    return "\n".join(lines)


COMMAND = Command("bench_prepare", bench_prepare, BenchPrepareConfig)
