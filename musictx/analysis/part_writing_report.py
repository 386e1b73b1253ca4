"""Four voices' findings against the rules of part-writing, and those of a store's chorales."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from musictx.analysis.part_writing import RULES, Finding, beats_of, findings
from musictx.data.store import Store
from musictx.errors import StoreError
from musictx.music.grid import N_VOICES, REST, STEPS_PER_QUARTER, Grid, by_height, in_steps, quantise, score_to_grid
from musictx.music.score import Meter, Score
from musictx.music.ticks import Tracks
from musictx.tokenizers.chorale import ChoraleTokenizer

TRACKS, HEIGHT, BOTH = "tracks", "by height", "tracks and height"  # where voices are from


def rules_report(tracks: Tracks, beside: Store | None = None) -> dict[str, Any]:
    """Count, rate and findings of each rule in a file. Raises StoreError, TokenError."""
    grid, voices = read_voices(tracks)
    by_rule, beats, meter = findings(grid), beats_of(grid), tracks.meter()
    corpus_rates = {}
    if beside is not None:
        # compared as the file is read: by height where any of its voices are
        grids = chorales(beside)
        corpus_rates = rates(grids if voices == TRACKS else map(by_height, grids))
    return {
        "beats": beats,
        "voices": voices,
        "beside": None if beside is None else beside.manifest.corpus.name,
        "rules": [
            {
                "rule": rule.name,
                "meaning": rule.meaning,
                "count": len(by_rule[rule.name]),
                "per_100_beats": round(100 * len(by_rule[rule.name]) / beats, 3),
                "beside_per_100_beats": round(corpus_rates[rule.name], 3) if corpus_rates else None,
                "findings": [place(finding, meter) for finding in by_rule[rule.name]],
            }
            for rule in RULES
        ],
    }


def read_voices(tracks: Tracks) -> tuple[Grid, str]:
    """The voices of a file on the grid, and their source: tracks or height."""
    # each passage has its own tracks: a seed, and the music that a model wrote after it
    grid, kinds = np.full((0, N_VOICES), REST, dtype=np.int16), set[str]()
    for parts in passages([t.score for t in tracks.tracks if len(t.score) and not t.is_drums]):
        voices = separate_voices(parts)
        kinds.add(HEIGHT if voices is None else TRACKS)
        if voices is None:
            voices = by_height(score_to_grid(quantise(Score.merge(parts, tracks.quarter_s)).score))
        taller = np.full((max(len(grid), len(voices)), N_VOICES), REST, dtype=np.int16)
        taller[: len(grid)] = grid
        taller[: len(voices)] = np.where(voices != REST, voices, taller[: len(voices)])
        grid = taller
    return grid, kinds.pop() if len(kinds) == 1 else BOTH


def passages(parts: Sequence[Score]) -> list[list[Score]]:
    """Groups of parts that sound at the same time, in order."""
    groups, end = list[list[Score]](), -1
    for part in sorted(parts, key=lambda part: float(part.onset_s.min())):
        onset, offset = in_steps(part)
        if int(onset.min()) >= end:
            groups.append([])
        groups[-1].append(part)
        end = max(end, int(offset.max()))
    return groups


def separate_voices(parts: Sequence[Score]) -> Grid | None:
    """Four parts of one note at a time as voices, the highest as soprano; None for others."""
    if len(parts) != N_VOICES:
        return None
    parts = sorted(parts, key=lambda part: -float(part.pitch.mean()))
    spans = [in_steps(part) for part in parts]
    if any((onset[1:] < end[:-1]).any() for onset, end in spans):
        return None
    grid = np.full((max(int(end.max()) for _, end in spans), N_VOICES), REST, dtype=np.int16)
    for voice, (part, span) in enumerate(zip(parts, spans, strict=True)):
        for onset, end, pitch in zip(*span, part.pitch, strict=True):
            grid[onset:end, voice] = pitch
    return grid


def chorales(store: Store) -> Iterator[Grid]:
    """The training chorales of a store as grids. Raises StoreError for a store of another encoding."""
    tokenizer = store.tokenizer
    if not isinstance(tokenizer, ChoraleTokenizer):
        what = f"{store.path} has {tokenizer.name} tokens, and no separate voices"
        raise StoreError(what, "give a store that `musictx prepare chorales` made")
    split = store.split("train")
    if not len(split.ids):
        raise StoreError(f"{store.path} has no training pieces to compare with", "prepare more chorales")
    return map(tokenizer.decode_grid, split)


def rates(grids: Iterable[Grid]) -> dict[str, float]:
    """Findings of each rule per 100 beats of all grids together."""
    counts: Counter[str] = Counter()
    beats = 0.0
    for grid in grids:
        beats += beats_of(grid)
        counts.update({name: len(by_rule) for name, by_rule in findings(grid).items()})
    return {rule.name: 100 * counts[rule.name] / beats for rule in RULES}


def place(finding: Finding, meter: Meter) -> dict[str, Any]:
    """Bar, beat and voices of a finding; an upbeat is bar 0."""
    at_s = finding.step * meter.quarter_s / STEPS_PER_QUARTER
    lines_s, numbers = meter.numbered(at_s + meter.bar_s)
    bar = int(np.searchsorted(lines_s, at_s + 1e-6, side="right"))
    beat = 1 + (at_s - lines_s[bar - 1]) / (4 * meter.quarter_s / meter.signature[1])
    return {"bar": int(numbers[bar - 1]), "beat": round(float(beat), 3), "voices": finding.voices}
