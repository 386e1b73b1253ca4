"""MIDI files -> pieces on every core. Workers return values; only the parent writes."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.progress import track

from musictx.data.store import Manifest, Piece
from musictx.errors import MidiError, TokenError, UserError
from musictx.notes.read import read_midi
from musictx.tokenizers import build_tokenizer

Encoded = tuple[bytes, float] | str  # ids and seconds, or the reason why it is left out
Dropped = list[tuple[str, str]]  # (file, reason)
T = TypeVar("T")


def encode_file(path: Path, tokenizer: str) -> Encoded:
    """One file as (ids, seconds), or the reason why it is left out. Runs in a worker."""
    try:
        score = read_midi(path)
        if not len(score):
            return "no notes"
        return build_tokenizer(tokenizer).encode(score).tobytes(), score.duration_s
    except MidiError as error:
        return error.reason
    except TokenError as error:
        return str(error)


def encode_files(files: Sequence[tuple[str, Path]], tokenizer: str, workers: int) -> tuple[list[Piece], Dropped]:
    """Named MIDI files as pieces, in the order given, and those left out with their reasons."""
    return encode_all(files, partial(encode_file, tokenizer=tokenizer), workers)


def encode_all(
    items: Sequence[tuple[str, T]], encode: Callable[[T], Encoded], workers: int
) -> tuple[list[Piece], Dropped]:
    """Runs `encode` on every named item in `workers` processes; pieces and left-outs in the order given."""
    pieces: list[Piece] = []
    dropped: Dropped = []
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(max(workers, 1), mp_context=context) as pool:
        results = pool.map(encode, [item for _, item in items], chunksize=8)
        try:
            for (name, _), result in track(zip(items, results, strict=True), "reading", len(items)):
                if isinstance(result, str):
                    dropped.append((name, result))
                else:
                    pieces.append(Piece(name, np.frombuffer(result[0], dtype=np.uint16), result[1]))
        except BrokenProcessPool:
            near = items[min(len(pieces) + len(dropped), len(items) - 1)][0]
            raise UserError(f"a worker died at or soon after {near}: move that file away and try again") from None
    return pieces, dropped


def summary(out: Path, manifest: Manifest) -> str:
    """The store in a few lines: pieces, tokens and hours per split, dropped files by reason."""
    lines = [f"{out}: {manifest.corpus.name}, tokenizer {manifest.tokenizer}, licence {manifest.corpus.licence}"]
    lines.append(f"  {'split':<12}{'pieces':>8}{'tokens':>13}{'hours':>9}")
    for name, info in manifest.splits.items():
        lines.append(f"  {name:<12}{len(info.pieces):>8}{info.tokens:>13,}{info.seconds / 3600:>9.2f}")
    reasons: dict[str, int] = {}
    for _, reason in manifest.dropped:
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:10]:
        lines.append(f"  left out {count}: {reason}")
    if len(reasons) > 10:
        lines.append(f"  … and {len(reasons) - 10} more reasons, all in {out / 'manifest.json'}")
    return "\n".join(lines)
