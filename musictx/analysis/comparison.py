"""The measures of `musictx compare` beside likelihood: passages, seed gain, memory of seeds and of the training set."""

from pathlib import Path

import numpy as np

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.continuations import Beginnings
from musictx.analysis.embedding import Embedder, Vectors
from musictx.analysis.motif import held_in, retention
from musictx.analysis.repeats import CorpusIndex, repeated_share
from musictx.analysis.report import Knowledge, Memory, splice
from musictx.analysis.seed_gain import Place, places, seed_gain
from musictx.data.store import Split
from musictx.errors import ConfigError, UserError
from musictx.generate.open_bundle import Opened, open_bundle
from musictx.model.header import read_header
from musictx.model.packaged import CHORALE, PIANO, bundle_path, is_packaged
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer
from musictx.waiting import estimated

PASSAGE_S = 10.0  # for the Fréchet distance


def listener(tokenizer: Tokenizer, device: str) -> Embedder | None:
    """The model that hears all music, for the Fréchet distance; None in a package without it."""
    name = CHORALE if tokenizer.voices else PIANO
    if not is_packaged(name):
        return None
    opened = open_bundle(bundle_path(name), device, continues=False)
    return Embedder(opened.model, opened.tokenizer)


def passage_vectors(ear: Embedder | None, scores: list[Score]) -> list[Vectors]:
    """The vectors (N, C) of each piece with a passage; [] without an ear."""
    if ear is None:
        return []
    parts = [part for score in scores if (part := ear.passages(score, PASSAGE_S))]
    vectors = ear.vectors([passage.score for part in parts for passage in part])
    return np.split(vectors, np.cumsum([len(part) for part in parts])[:-1]) if parts else []


def gain_places(
    bundles: list[Path], split: Split, tokenizer: Tokenizer, seed_s: float, length_s: float, part_s: float
) -> list[Place] | str:
    """The places for the seed gain of all models, or the reason for none."""
    period = max(tokenizer.group, *(read_header(bundle).model.get("cycle", 1) for bundle in bundles))
    try:
        return places(split, tokenizer, seed_s, int(length_s / part_s + 1e-9), part_s, period)
    except UserError as error:
        return f"seed gain could not be measured: {error}"


def knowledge(opened: Opened, cut: list[Place] | str, part_s: float, device: str) -> Knowledge:
    """The seed gain of a model, or the reason for none."""
    if isinstance(cut, str):
        return Knowledge(unmeasured=cut)
    try:
        gain = seed_gain(opened.model, opened.tokenizer, cut, part_s, device=device)
    except ConfigError as error:  # a model of learned positions ends with its table
        return Knowledge(unmeasured=f"seed gain could not be measured: {error}")
    return Knowledge(gain, opened.model.window)


def memory(
    scores: list[Score], held_out: Beginnings, index: CorpusIndex | None, span_s: float, metrical: bool
) -> Memory:
    """Motif retention, copies and repeats of continuations; `index`: of the training set."""
    length_s = held_out.length_s
    arguments = held_out.seeds, scores, held_out.true, held_in(metrical)
    progress = estimated(scores, "looking for copies")
    copied = interval([index.longest_copy(score).notes for score in progress]) if index is not None else None
    pairs = zip(held_out.seeds, scores, strict=True)
    from_seed = interval([CorpusIndex([a]).longest_copy(b).notes if len(a) > 1 else 0 for a, b in pairs])
    repeated = repeated_bars(scores, held_out) if metrical else None
    try:
        whole = retention(*arguments, span_s=length_s, horizon_s=length_s)
        curve = retention(*arguments, span_s=min(span_s, length_s), horizon_s=length_s)
    except UserError as error:  # too few pieces, or too short ones: all else can still be reported
        return Memory(None, None, copied, str(error), from_seed, repeated)
    retained = Interval(*(float(x[0]) for x in (whole.mean, whole.low, whole.high)))
    return Memory(curve, retained, copied, "", from_seed, repeated)


def repeated_bars(scores: list[Score], held_out: Beginnings) -> Interval | None:
    """The share of a continuation's bars that occurred before; a bar across the border belongs to the seed."""
    shares = []
    for seed, score in zip(held_out.seeds, scores, strict=True):
        bar_s = 4 * seed.quarter_s
        whole = splice(seed, score, held_out.seed_s)
        shares.append(repeated_share(whole, from_bar=int(np.ceil(held_out.seed_s / bar_s - 1e-6))))
    finite = [share for share in shares if np.isfinite(share)]
    return interval(finite) if finite else None
