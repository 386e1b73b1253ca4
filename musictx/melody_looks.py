"""Which notes of a melody an encoder-decoder looks at while it writes a note below it."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.model.encoder_decoder import EncoderDecoder
from musictx.model.readout import read_cross_attention
from musictx.notes.grid import REST, score_to_grid
from musictx.notes.score import Score
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.trace import Trace


class MelodyLooks(NamedTuple):
    """Of L layers and H heads: what one note looks at in the melody."""

    weight: NDArray[Any]  # (L, H, N) on each note of the piece, which are the melody's; the rest lies on its rests
    sounding: NDArray[Any]  # (L, H) share on the sixteenth that the note begins with
    steps_away: NDArray[Any]  # (L, H) mean distance in sixteenths, earlier or later


def ids_by_height(tokenizer: Tokenizer, score: Score) -> Ids:
    """Four voices as ids (T,), the highest first in every sixteenth: a file does not say which voice a note is of, and
    a harmoniser's do not cross. Raises TokenError for more than four."""
    assert isinstance(tokenizer, ChoraleTokenizer)
    grid = score_to_grid(score)
    for step in grid:
        sung = step != REST
        step[sung] = -np.sort(-step[sung])
    return tokenizer.encode_grid(grid)


def look_at_melody(
    model: EncoderDecoder, tokenizer: Tokenizer, ids: Ids, traced: Trace, note: int, device: str
) -> MelodyLooks:
    """At the note number `note` of a piece's ids (T,), soprano, alto, tenor and bass. Raises ConfigError for a note of
    the melody, which is read and not written."""
    steps = ids.reshape(-1, tokenizer.voices).astype(np.int64)  # (S, 4)
    step, voice = divmod(int(traced.struck_by[note]), tokenizer.voices)
    if voice == 0:
        raise ConfigError(
            f"note {note + 1}, at {traced.score.onset_s[note]:.2f} s, is one of the melody, which is read and not "
            "written: give the at= of a note below it"
        )
    lower = steps[:, 1:].reshape(-1)
    query = step * (tokenizer.voices - 1) + voice - 1
    read = np.concatenate([[tokenizer.vocab.bos], lower[:query]])
    melody, before = (torch.from_numpy(x)[None].to(device) for x in (steps[:, 0], read))
    rows = read_cross_attention(model, melody, before, query)
    w = rows.double().cpu().numpy()  # (L, H, S)
    owner = traced.note[:: tokenizer.voices]  # (S,) the soprano's note in each sixteenth, -1 in a rest
    weight = np.zeros((*w.shape[:2], len(traced.score)))
    for s in np.flatnonzero(owner >= 0):
        weight[:, :, owner[s]] += w[:, :, s]
    away = np.abs(np.arange(len(steps)) - step)
    return MelodyLooks(weight, w[:, :, step], (w * away).sum(-1))


def last_below(traced: Trace, tokenizer: Tokenizer) -> int:
    """The last note that is not the melody's. Raises ConfigError where all are."""
    below = np.flatnonzero(traced.struck_by % tokenizer.voices > 0)
    if not len(below):
        raise ConfigError("all notes are of one line: give a file that `musictx accompany` wrote, or other four voices")
    return int(below[np.argmax(traced.struck_by[below])])
