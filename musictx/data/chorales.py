"""The 371 four-part chorales of J. S. Bach that the music21 package ships, as a store. No network."""

from pathlib import Path
from typing import Any

import numpy as np

from musictx.data.prepare import Encoded, encode_all
from musictx.data.split import assign_splits, content_key
from musictx.data.store import SPLITS, Corpus, Manifest, check_target, write_store
from musictx.errors import UserError
from musictx.notes.grid import N_VOICES, REST, STEPS_PER_QUARTER, Grid
from musictx.tokenizers.chorale import ChoraleTokenizer

STEP_S = 0.15  # a sixteenth at 100 quarters a minute, for counting hours
CORPUS = Corpus(
    "Bach chorales (Riemenschneider's 371, from music21)",
    "public domain scores; encodings as the music21 corpus states",
    "Cuthbert and Ariza, music21: A Toolkit for Computer-Aided Musicology, ISMIR 2010",
)


def prepare_chorales(
    out: Path, *, validation_fraction: float, test_fraction: float, seed: int, workers: int, overwrite: bool
) -> Manifest:
    """Every chorale as a grid of sixteenths, split by piece; the same chorale under two numbers stays on
    one side. Raises UserError when music21 is not installed, StoreError."""
    check_target(out, overwrite)
    tokenizer = ChoraleTokenizer()
    pieces, dropped = encode_all(chorale_list(), encode_chorale, workers)
    keys = [content_key(piece.ids, tokenizer) for piece in pieces]
    assigned = assign_splits(keys, validation_fraction, test_fraction, seed)
    splits = {s: [p for p, a in zip(pieces, assigned, strict=True) if a == s] for s in SPLITS}
    extra = {"seed": seed, "duplicates": len(keys) - len(set(keys))}
    return write_store(out, tokenizer, CORPUS, splits, dropped, extra, overwrite)


def chorale_list() -> list[tuple[str, str]]:
    """(name, file in the music21 corpus) of all 371: ("R001 bwv269", "bach/bwv269")."""
    try:
        from music21.corpus.chorales import ChoraleListRKBWV
    except ImportError:
        raise UserError("the chorales come with music21, which is not installed: pip install music21") from None
    table: dict[int, dict[str, Any]] = ChoraleListRKBWV().byRiemenschneider  # type: ignore[no-untyped-call]
    return [(f"R{n:03d} bwv{table[n]['bwv']}", f"bach/bwv{table[n]['bwv']}") for n in sorted(table)]


def encode_chorale(file: str) -> Encoded:
    """One chorale as (ids, seconds), or the reason why it is left out. Runs in a worker."""
    grid = read_chorale(file)
    if isinstance(grid, str):
        return grid
    return ChoraleTokenizer().encode_grid(grid).tobytes(), len(grid) * STEP_S


def read_chorale(file: str) -> Grid | str:
    """A score of the music21 corpus as a grid (steps, 4), or the reason why it is none."""
    voices = _four_voices(_parse(file))
    if voices is None:
        return "its voices are not soprano, alto, tenor, bass"
    notes = [
        (
            round(float(note.offset) * STEPS_PER_QUARTER),
            float(note.quarterLength),
            voice,
            note.pitches[-1].midi,
        )
        for voice, part in enumerate(voices)
        for note in part.flatten().notes
    ]
    ends = [max(start + round(length * STEPS_PER_QUARTER), start + 1) for start, length, *_ in notes]
    grid = np.full((max(ends, default=0), N_VOICES), REST, dtype=np.int16)
    for (start, _, voice, pitch), end in zip(notes, ends, strict=True):
        grid[start:end, voice] = pitch
    return grid


def first_bars_steps(file: str, bars: int) -> int:
    """How many sixteenths a chorale's upbeat and its first `bars` full bars take."""
    first, second = list(_parse(file).parts[0].getElementsByClass("Measure"))[:2]
    bar = float(second.barDuration.quarterLength)
    upbeat = float(first.duration.quarterLength) % bar
    return round((upbeat + bars * bar) * STEPS_PER_QUARTER)


def _parse(file: str) -> Any:
    from music21 import corpus

    return corpus.parse(file)


def _four_voices(score: Any) -> list[Any] | None:
    parts = list(score.parts)
    if len(parts) == N_VOICES:
        return parts
    named = [[p for p in parts if str(p.partName).startswith(v)] for v in ("Sopran", "Alto", "Tenor", "Bass")]
    return [found[0] for found in named] if all(len(found) == 1 for found in named) else None
