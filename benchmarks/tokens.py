"""How fast MIDI becomes Scores and Scores become ids, on one core.

The three jobs take turns over the same files; each figure is the median of the repeats with its range.
"""

import contextlib
import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from musictx.config.command import Command
from musictx.config.train import TokenizerConfig
from musictx.data.source import open_source
from musictx.errors import ConfigError, MidiError, TokenError, UserError
from musictx.files import replacing
from musictx.music.read import read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.setting import setting
from musictx.tokenizers import build_tokenizer


@dataclass
class BenchTokensConfig:
    """musictx benchmarks/tokens.py: files/s and events/s of reading, encoding and decoding."""

    path: str | None = setting(None, "a folder or zip of MIDI files; null: random performances")
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    max_files: int = setting(100, "read this many files from the start")
    repeats: int = setting(5, "runs of each measurement")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


MAX_BYTES = 2**25


@dataclass(frozen=True)
class Figures:
    """The results; `seconds` holds every repeat of each job over all files."""

    tokenizer: str
    files: int
    files_encoded: int
    notes: int
    events: int
    seconds: dict[str, list[float]]
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    python: str = field(default_factory=platform.python_version)


def bench_tokens(config: BenchTokensConfig) -> None:
    for name in ("max_files", "repeats"):
        if getattr(config, name) < 1:
            raise ConfigError(name, got=getattr(config, name), allowed="1 or more")
    with TemporaryDirectory(prefix="musictx-") as temporary:
        folder = Path(config.path) if config.path else Path(temporary)
        if not config.path:
            print("no path= given: 20 random performances of 10,000 notes")
            write_random_performances(folder, 20)
        with open_source(folder) as found:
            chosen = found[:: max(len(found) // config.max_files, 1)][: config.max_files]
            files = [item.load(MAX_BYTES) for item in chosen]
        figures = measure(files, config.tokenizer.name, config.repeats)
    print(report(figures))
    if config.out:
        Path(config.out).parent.mkdir(parents=True, exist_ok=True)
        with replacing(Path(config.out)) as partial:
            partial.write_text(json.dumps(asdict(figures), indent=1))


def measure(files: list[bytes], tokenizer_name: str, repeats: int) -> Figures:
    """Seconds of each repeat of reading, encoding and decoding all files. Raises UserError if it can encode none."""
    tokenizer = build_tokenizer(tokenizer_name)
    scores: list[Score] = []
    for data in files:
        try:
            score = read_tracks(data, "").merge()
            tokenizer.encode(score)
        except (TokenError, MidiError):
            continue
        scores.append(score)
    ids = [tokenizer.encode(score) for score in scores]
    events = sum(map(len, ids))
    if not events:
        raise UserError(f"none of the {len(files)} files can be encoded by {tokenizer_name}")
    jobs: dict[str, Callable[[], object]] = {
        "read": lambda: read_all(files),
        "encode": lambda: [tokenizer.encode(score) for score in scores],
        "decode": lambda: [tokenizer.decode(row) for row in ids],
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            start = perf_counter()
            job()
            seconds[name].append(perf_counter() - start)
    notes = sum(map(len, scores))
    return Figures(tokenizer_name, len(files), len(scores), notes, events, seconds)


def report(figures: Figures) -> str:
    """The figures as a table: rates at the median, slowest and fastest repeat."""
    f = figures
    lines = [
        f"{f.files} files, {f.notes:,} notes, {f.events:,} {f.tokenizer} events, one core of {f.cores}",
        f"{'':<9}{'files/s':>10}{'events/s':>15}   slowest … fastest of {len(f.seconds['read'])}",
    ]
    for name, times in f.seconds.items():
        files = f.files if name == "read" else f.files_encoded
        at = median(times)
        spread = f"{f.events / max(times):,.0f} … {f.events / min(times):,.0f}"
        lines.append(f"{name:<9}{files / at:>10,.0f}{f.events / at:>15,.0f}   {spread}")
    return "\n".join(lines)


def write_random_performances(folder: Path, count: int, notes: int = 10_000) -> None:
    """Writes random piano pieces, the same every time, with about ten notes a second."""
    rng = np.random.default_rng(0)
    for k in range(count):
        onset = np.sort(rng.uniform(0, notes / 10, notes))
        score = Score(
            onset,
            onset + rng.exponential(0.4, notes),
            rng.integers(21, 109, notes),
            rng.integers(20, 110, notes),
        )
        write_midi(score, folder / f"random-{k:02d}.mid")


def read_all(files: list[bytes]) -> int:
    """How many of the files can be read."""
    count = 0
    for data in files:
        with contextlib.suppress(MidiError):
            read_tracks(data, "").merge()
            count += 1
    return count


COMMAND = Command("bench_tokens", bench_tokens, BenchTokensConfig, {"tokenizer": "performance"})
