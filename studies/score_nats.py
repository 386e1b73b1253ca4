"""The nats of held-out scores, for `score_measures.py`: of whole works, of the notes after a gap, of an accompaniment.

A work's ids are scored in inputs of `WINDOW` ids, moved on by half of that: each id but the first ones of a work has
half a window before it. A note counts once, where its pitch is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from score_works import SCORE, Work

from musictx.analysis.likelihood import unigram_nll
from musictx.data.scoring import scoring_segments
from musictx.data.store import Split
from musictx.music.notation.notation import Notation
from musictx.tokenizers import Ids
from musictx.tokenizers.score.slots import TUNE
from musictx.tokenizers.score.tokens import Section

WINDOW, STRIDE = 1024, 512  # ids
Row = dict[str, Any]


@torch.inference_mode()
def nats_of(model: Any, ids: Ids) -> NDArray[np.float64]:
    """(T,) the nats of each id (T,)."""
    out = np.zeros(len(ids))
    segments = scoring_segments(Split(ids, np.array([0, len(ids)]), [""]), SCORE, WINDOW, 1, STRIDE)
    for n, segment in enumerate(segments):
        x = torch.from_numpy(segment.ids.astype(np.int64))  # (T + 1,)
        nats = F.cross_entropy(model(x[None, :-1])[0].float(), x[1:], reduction="none")
        first = n * STRIDE + segment.context
        out[first : n * STRIDE + len(nats)] = nats[segment.context :].numpy()
    return out


def likelihood(model: Any, work: Work, trained: Ids) -> Row:
    """The nats of a work, beside those of ids drawn by their frequencies in the music `trained`."""
    return {
        "nats": float(nats_of(model, work.ids).sum()),
        "unigram": unigram_nll(trained, work.ids, SCORE.vocab) * len(work.ids),
        "notes": int((SCORE.pitch[work.ids] >= 0).sum()),
        "bars": len(work.notation.bars),
    }


def stream(notation: Notation, slots: Sequence[int | None], ahead: int | None) -> tuple[Ids, list[tuple[int, Section]]]:
    """The ids (T,), and where in them each section of a part begins."""
    ids, places = list[int](), list[tuple[int, Section]]()
    for section in (each for group in SCORE.sections(notation, slots, ahead) for each in group):
        if section.slot is not None:
            places.append((len(ids), section))
        ids += section.ids
    return np.array(ids, np.uint16), places


def after_gap(model: Any, notation: Notation, slots: Sequence[int | None], bar: int) -> Row:
    """The nats of the first note of each part in a bar, place and length included, given all bars before."""
    ids, places = stream(notation, slots, TUNE)
    nats, total, notes = nats_of(model, ids), 0.0, 0
    for begin, section in places:
        pitches = np.flatnonzero(SCORE.pitch[section.ids] >= 0)
        if section.bar == bar and len(pitches):  # the id PART is no part of a note
            total += float(nats[begin + 1 : begin + int(pitches[0]) + 1].sum())
            notes += 1
    return {"nats": total, "notes": notes}
