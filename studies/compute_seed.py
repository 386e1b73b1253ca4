"""What the models of `compute.py` keep of a seed: how much it saves later on, and how many of its motifs return.

Seed gain compares nats of the true continuation after its own seed with those after another piece's, which ends with
the last beat of its own. The KV reset (arXiv 2602.19816) compares with the last id alone. Both need no drawing.
Retention is of drawn music: 0 is chance, 1 is what the composers did. Intervals are over pieces.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from compute_runs import Kind, Way
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.continuations import beginnings, continue_beginnings
from musictx.analysis.motif import held_in, retention
from musictx.analysis.seed_gain import END_TOKENS, Place, log_p_of_last, places
from musictx.generate.requests import Continue, Sampling
from musictx.model.steps import newest
from musictx.model.torch_steps import TorchPlayer
from musictx.model.weights import for_steps
from musictx.tokenizers import Tokenizer


class Cut(NamedTuple):
    """How pieces are cut, in seconds."""

    seed_s: float
    part_s: float
    parts: int
    pieces: int  # at most


CUTS = {"chorales": Cut(9.6, 2.4, 6, 64), "MAESTRO": Cut(10.0, 5.0, 6, 64)}
READINGS = ("seed gain", "KV reset")


def befores(found: list[Place], k: int, bos: int, period: int) -> Iterator[NDArray[np.integer]]:
    """Of the place k: the true past of its continuation, then those that the `READINGS` compare with it."""
    ids, cuts = found[k]
    seed, begin = ids[: cuts[0]], np.array([bos])
    end = seed[newest(len(seed), END_TOKENS, period) :]
    yield np.concatenate([begin, seed])
    # a short piece once more; so every token keeps its place, and positions alone gain nothing
    stranger = np.resize(found[(k + 1) % len(found)].ids, len(seed) - len(end))
    yield np.concatenate([begin, stranger, end])
    yield seed[newest(len(seed), 1, period) :]


def gains(model: Any, tokenizer: Tokenizer, found: list[Place], device: str) -> dict[str, list[Interval]]:
    """Nats a token that the seed saves in each part of the continuation, by reading. Places are read whole, whatever
    the window."""
    period, saved = max(model.cycle, tokenizer.group), []
    for k, (ids, cuts) in enumerate(found):
        rest = ids[cuts[0] :]
        pasts = befores(found, k, tokenizer.vocab.bos, period)
        own, *others = (log_p_of_last(model, np.concatenate([past, rest]), len(rest), device) for past in pasts)
        parts = [slice(a - cuts[0], b - cuts[0]) for a, b in pairwise(cuts)]
        saved.append([[(own - other)[part].sum() for part in parts] for other in others])
    counts = np.array([np.diff(cuts) for _, cuts in found])  # (P, W)
    columns = np.array(saved)  # (P, readings, W)
    return {
        name: [interval(columns[:, r, w], counts[:, w]) for w in range(counts.shape[1])]
        for r, name in enumerate(READINGS)
    }


def remembered(kind: Kind, minutes: float, way: Way, split: str) -> dict[str, Any]:
    """Gains and retention of a choice, each part with its interval, and how pieces are cut."""

    def make() -> Any:
        music, cut = kind.music, CUTS[kind.music.name]
        model, tokenizer, pieces = kind.model(minutes, way), music.tokenizer, music.scored(split)[0]
        found = places(pieces, tokenizer, cut.seed_s, cut.parts, cut.part_s, max(model.cycle, tokenizer.group))
        kept = {"pieces": len(found[: cut.pieces]), **gains(model, tokenizer, found[: cut.pieces], music.device)}
        held_out = beginnings(pieces, tokenizer, cut.pieces, cut.seed_s, cut.parts * cut.part_s)
        window = None if kind.kind == "LSTM" else way.window
        request = Continue(Sampling(seed_guidance=None), window=window)
        drawn = continue_beginnings(TorchPlayer(for_steps(model)), tokenizer, held_out, request).scores
        arguments = held_out.seeds, drawn, held_out.true, held_in(tokenizer.metrical)
        curve = retention(*arguments, span_s=cut.part_s, horizon_s=held_out.length_s)
        rows = np.stack([curve.mean, curve.low, curve.high], -1)
        return kept | {"retention": [[None if np.isnan(x) else x for x in row] for row in rows.tolist()]}

    key = f"{way}, {kind.steps(minutes, way)} steps, {split}, seed, {crc32(f'{kind.settings}, {CUTS}'.encode()):08x}"
    known: dict[str, Any] = kind.runs.get(key, make)
    return CUTS[kind.music.name]._asdict() | known
