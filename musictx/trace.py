"""Which note each token is about, and when: the bridge from attention over tokens to pictures of notes."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.notes.grid import STEPS_PER_QUARTER
from musictx.notes.score import DRUMS, Score
from musictx.tokenizers import Ids, Tokenizer, miditok
from musictx.tokenizers.performance import STEPS_PER_S

Indices = NDArray[np.int64]
Waiting = dict[tuple[int, int, int], list[int]]  # (program, pitch, step) -> notes of the score that are struck then


class Trace(NamedTuple):
    """The music of a piece's ids (T,), token by token."""

    score: Score  # (N,) as the tokens say it
    time_s: NDArray[Any]  # (T,) of the music when the token stands
    note: Indices  # (T,) the note of `score` that it belongs to; -1: none, as for a wait
    struck_by: Indices  # (N,) the token that begins each note


def trace(tokenizer: Tokenizer, ids: Ids, quarter_s: float) -> Trace:
    """Of ids that `tokenizer.encode` made. Raises ConfigError for tokens that hold several notes, which BPE makes."""
    score = tokenizer.decode(ids, quarter_s)
    types = tokenizer.vocab.offsets
    if "NOTE_ON" in types:
        time_s, note, first = _events(tokenizer, ids, score)
    elif "REST" in types:
        time_s, note, first = _grid(tokenizer, ids, score, quarter_s)
    elif "BPE" not in types:
        time_s, note, first = _words(tokenizer, ids, score, quarter_s)
    else:
        raise ConfigError(
            f"a token of {tokenizer.name} with BPE holds several notes, and attention to it cannot be told apart: give "
            "a bundle without BPE"
        )
    return Trace(score, time_s, note, first)


def _waiting(score: Score, step_s: float) -> Waiting:
    waiting: Waiting = defaultdict(list)
    step = np.rint(score.onset_s / step_s).astype(np.int64)
    for n, key in enumerate(zip(score.program.tolist(), score.pitch.tolist(), step.tolist(), strict=True)):
        waiting[key].append(n)
    return waiting


def _events(tokenizer: Tokenizer, ids: Ids, score: Score) -> tuple[NDArray[Any], Indices, Indices]:
    """A VELOCITY belongs to the note it colours, a NOTE_OFF to the one it ends."""
    assert tokenizer.pace is not None
    vocab, waiting = tokenizer.vocab, _waiting(score, 1 / STEPS_PER_S)
    on, off, velocity = (vocab.offsets[name] for name in ("NOTE_ON", "NOTE_OFF", "VELOCITY"))
    time_s = np.cumsum(tokenizer.pace[ids])
    note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
    sounding: dict[int, int] = {}
    colours: list[int] = []
    for t, i in enumerate(ids.tolist()):
        if on <= i < on + 128:
            n = waiting[0, i - on, round(time_s[t] * STEPS_PER_S)].pop(0)
            note[[t, *colours]] = sounding[i - on] = n
            first[n], colours = t, []
        elif off <= i < off + 128:
            note[t] = sounding.pop(i - off, -1)
        elif velocity <= i < vocab.n_events:
            colours.append(t)
    return time_s, note, first


def _grid(tokenizer: Tokenizer, ids: Ids, score: Score, quarter_s: float) -> tuple[NDArray[Any], Indices, Indices]:
    """A held note's repeats belong to it."""
    step_s = quarter_s / STEPS_PER_QUARTER
    waiting, rest, voices = _waiting(score, step_s), tokenizer.vocab.offsets["REST"], tokenizer.voices
    step = np.arange(len(ids)) // voices
    note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
    for t, i in enumerate(ids.tolist()):
        if i == rest:
            continue
        if t >= voices and ids[t - voices] == i:
            note[t] = note[t - voices]
        else:
            note[t] = waiting[0, i + tokenizer.lo, int(step[t])].pop(0)
            first[note[t]] = t
    return step * step_s, note, first


def _words(tokenizer: Tokenizer, ids: Ids, score: Score, quarter_s: float) -> tuple[NDArray[Any], Indices, Indices]:
    """MidiTok's words: Program before a Pitch, Velocity and Duration after it belong to its note."""
    words = [row.type.split("_") for row in tokenizer.vocab.table]
    step_s = quarter_s / miditok.STEPS_PER_QUARTER
    waiting, time_s = _waiting(score, step_s), np.zeros(len(ids))
    note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
    now_s, n, program = 0.0, -1, 0
    for t, i in enumerate(ids.tolist()):
        kind, value = words[i][0], words[i][-1]
        if kind in ("Bar", "Position", "TimeShift"):
            now_s, n = tokenizer.seconds(ids[: t + 1], quarter_s), -1
        elif kind == "Program":
            program, n = int(value) % (DRUMS + 1), -1  # -1 is drums
        elif kind in ("Pitch", "PitchDrum"):
            n = waiting[program, int(value), round(now_s / step_s)].pop(0)
            first[n] = t
            note[t - 1] = n  # its Program
        time_s[t], note[t] = now_s, n
    return time_s, note, first
