"""MIDI in: symusic first, since it is fast; what it refuses goes to mido and pretty_midi, since they forgive."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mido
import numpy as np
import pretty_midi
import symusic
from numpy.typing import NDArray

from musictx.errors import MidiError
from musictx.notes.score import Score
from musictx.notes.sustain import apply_sustain

PEDAL = 64
Clock = Callable[[NDArray[np.int64]], NDArray[np.float64]]  # ticks -> seconds

DEFAULT_MSPQ = 500_000  # microseconds per quarter where a file states no tempo


def read_midi(path: str | Path, *, drums: bool = False, sustain: bool = True) -> Score:
    """The notes of a MIDI file, all tracks together, the pedal written into their lengths.

    Drums (channel 10) are left out unless asked for. A file may hold no notes. Raises MidiError with a reason a
    person understands, and nothing else.
    """
    try:
        data = Path(path).read_bytes()
    except IsADirectoryError:
        raise MidiError(path, "is a folder: give a MIDI file") from None
    except FileNotFoundError:
        raise MidiError(path, "no such file: give an existing MIDI file") from None
    except OSError as error:
        raise MidiError(path, f"cannot be read ({error.strerror}): give a readable MIDI file") from None
    if not data:
        raise MidiError(path, "the file is empty: give a MIDI file")
    try:
        return _read_symusic(data, drums, sustain)
    except Exception:  # symusic raises many types; whatever it was, the second reader decides
        pass
    try:
        return _read_tolerant(data, drums, sustain)
    except Exception as error:  # mido and pretty_midi raise whatever the damage leads to
        if not data.startswith(b"MThd"):
            reason = f"not a MIDI file: it begins with {data[:4]!r}, MIDI files begin with b'MThd'"
        else:
            reason = f"damaged MIDI file: no reader makes sense of it ({_reason(error)})"
        raise MidiError(path, reason) from None


def _read_symusic(data: bytes, drums: bool, sustain: bool) -> Score:
    smpte = data[:4] == b"MThd" and len(data) > 13 and data[12] >= 128
    # symusic refuses SMPTE time: any division will do, its ticks are the same
    midi = symusic.Score.from_midi(data[:12] + b"\x01\xe0" + data[14:] if smpte else data)
    seconds, quarter_s = _smpte_clock(data) if smpte else _clock(midi)
    scores = []
    for track in midi.tracks:
        if track.is_drum and not drums:
            continue
        notes = track.notes.numpy()
        start = notes["time"].astype(np.int64)
        end = start + notes["duration"].astype(np.int64)
        controls = track.controls.numpy()
        pedal = controls["number"] == PEDAL
        scores.append(
            _track(
                seconds(start),
                seconds(end),
                notes["pitch"],
                notes["velocity"],
                seconds(controls["time"][pedal].astype(np.int64)),
                controls["value"][pedal],
                quarter_s,
                sustain,
            )
        )
    return Score.merge(scores, quarter_s)


def _smpte_clock(data: bytes) -> tuple[Clock, float]:
    """Frames a second and ticks a frame; there is no tempo."""
    tick_s = 1 / ((256 - data[12]) * max(data[13], 1))
    return lambda ticks: np.maximum(ticks, 0) * tick_s, DEFAULT_MSPQ / 1e6


def _clock(midi: Any) -> tuple[Clock, float]:
    """Ticks -> seconds in float64 (symusic's own seconds are float32), and the seconds of a first quarter."""
    if midi.ticks_per_quarter <= 0:
        raise ValueError(f"{midi.ticks_per_quarter} ticks per quarter")
    tempos = midi.tempos.numpy()
    order = np.argsort(tempos["time"], kind="stable")
    tick, mspq = tempos["time"][order].astype(np.int64), tempos["mspq"][order].astype(np.float64)
    first = float(mspq[0]) if len(mspq) else DEFAULT_MSPQ
    if not len(tick) or tick[0] > 0:
        tick, mspq = np.append(0, tick), np.append(DEFAULT_MSPQ, mspq)
    tick_s = mspq / 1e6 / midi.ticks_per_quarter
    base_s = np.append(0, np.cumsum(np.diff(tick) * tick_s[:-1]))

    def seconds(ticks: NDArray[np.int64]) -> NDArray[np.float64]:
        ticks = np.maximum(ticks, 0)
        at = np.searchsorted(tick, ticks, side="right") - 1
        result: NDArray[np.float64] = base_s[at] + (ticks - tick[at]) * tick_s[at]
        return result

    return seconds, first / 1e6


def _read_tolerant(data: bytes, drums: bool, sustain: bool) -> Score:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        midi = pretty_midi.PrettyMIDI(mido_object=mido.MidiFile(file=io.BytesIO(data), clip=True))
    quarter_s = 60 / float(midi.get_tempo_changes()[1][0])
    scores = []
    for part in midi.instruments:
        if part.is_drum and not drums:
            continue
        notes = np.array([(n.start, n.end, n.pitch, n.velocity) for n in part.notes]).reshape(-1, 4).T
        pedal = sorted((c.time, c.value) for c in part.control_changes if c.number == PEDAL)
        pedal_s, value = np.array(pedal).reshape(-1, 2).T
        scores.append(_track(notes[0], notes[1], notes[2], notes[3], pedal_s, value, quarter_s, sustain))
    return Score.merge(scores, quarter_s)


def _track(
    onset_s: NDArray[Any],
    offset_s: NDArray[Any],
    pitch: NDArray[Any],
    velocity: NDArray[Any],
    pedal_s: NDArray[Any],
    pedal_value: NDArray[Any],
    quarter_s: float,
    sustain: bool,
) -> Score:
    """One track's notes, repaired where a file says impossible things, with its own pedal."""
    sounding = (pitch >= 0) & (pitch <= 127) & (velocity > 0)
    onset_s = onset_s[sounding]
    offset_s = np.maximum(offset_s[sounding], onset_s)
    score = Score(onset_s, offset_s, pitch[sounding], np.minimum(velocity[sounding], 127), quarter_s)
    if not sustain:
        return score
    order = np.argsort(pedal_s, kind="stable")
    return apply_sustain(score, pedal_s[order], pedal_value[order])


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
