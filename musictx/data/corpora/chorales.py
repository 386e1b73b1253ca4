"""The 371 four-part chorales of J. S. Bach that the music21 package ships, as a store. No network."""

from importlib.metadata import version
from typing import Any

import numpy as np

from musictx.config.prepare import PrepareChoralesConfig
from musictx.data.prepare import by_piece, check_work, prepare
from musictx.data.recipe import Encoded
from musictx.data.similar import signature
from musictx.data.source import Item
from musictx.data.store import Corpus, Manifest
from musictx.errors import ConfigError, UserError
from musictx.music.grid import N_VOICES, REST, STEP_S, STEPS_PER_QUARTER, Grid, grid_to_score
from musictx.tokenizers.chorale import ChoraleTokenizer

CORPUS = Corpus(
    "Bach chorales (Riemenschneider's 371, from music21)",
    "public domain (the scores), encodings as the music21 corpus states",
    "Cuthbert and Ariza, music21: A Toolkit for Computer-Aided Musicology, ISMIR 2010",
)


def prepare_chorales(config: PrepareChoralesConfig) -> Manifest:
    """Every chorale as a grid of sixteenths, split by piece. Raises UserError without music21, ConfigError,
    StoreError."""
    check_work(config)
    chorales = chorale_list()
    if config.pieces is not None and not 0 < config.pieces <= len(chorales):
        raise ConfigError("pieces", got=config.pieces, allowed=f"1 to {len(chorales)}, or null for all")
    return prepare(
        chorales[: config.pieces],
        encode_chorale,
        f"music21 {version('music21')} chorales {ChoraleTokenizer.vocab.fingerprint}",
        ChoraleTokenizer(),
        CORPUS,
        by_piece(config),
        config,
    )


def chorale_list() -> list[Item]:
    """All 371 chorales; each loads its name in the music21 corpus: "R001 bwv269" loads b"bach/bwv269"."""
    try:
        from music21.corpus.chorales import ChoraleListRKBWV
    except ImportError:
        raise UserError("the chorales come with music21, which is not installed", "pip install music21") from None
    table: dict[int, dict[str, Any]] = ChoraleListRKBWV().byRiemenschneider
    return [chorale(n, f"bach/bwv{table[n]['bwv']}") for n in sorted(table)]


def chorale(number: int, file: str) -> Item:
    return Item(f"R{number:03d} {file.removeprefix('bach/')}", "", lambda _: file.encode())


def encode_chorale(file: bytes, name: str) -> Encoded:
    """A chorale as (ids, seconds, signature), or the reason to drop it; in a reader process."""
    grid = read_chorale(file.decode())
    if isinstance(grid, str):
        return grid
    ids = ChoraleTokenizer().encode_grid(grid)
    return ids.tobytes(), len(grid) * STEP_S, signature(grid_to_score(grid)).tobytes()


def read_chorale(file: str) -> Grid | str:
    """A score of the music21 corpus as a grid (steps, 4), or the reason for none."""
    voices = _four_voices(_parse(file))
    if voices is None:
        return "its voices are not soprano, alto, tenor, bass"
    notes = []  # step, end step, voice, pitch
    for voice, part in enumerate(voices):
        for note in part.flatten().notes:
            start, length = (round(float(x) * STEPS_PER_QUARTER) for x in (note.offset, note.quarterLength))
            notes.append((start, start + max(length, 1), voice, note.pitches[-1].midi))
    grid = np.full((max((end for _, end, *_ in notes), default=0), N_VOICES), REST, dtype=np.int16)
    for start, end, voice, pitch in notes:
        grid[start:end, voice] = pitch
    return grid


def first_bars_steps(file: str, bars: int) -> int:
    """The length of the upbeat and the first `bars` full bars, in sixteenths."""
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
    voices = [[p for p in parts if str(p.partName).startswith(v)] for v in ("Sopran", "Alto", "Tenor", "Bass")]
    return [voice[0] for voice in voices] if all(len(voice) == 1 for voice in voices) else None
