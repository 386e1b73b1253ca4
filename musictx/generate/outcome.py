"""The effect of a `Control` on new music, in numbers and words."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from musictx.generate.chords import CLOSE
from musictx.generate.control import Control
from musictx.music.curve import along
from musictx.music.harmony import ChordLine, pitch_name
from musictx.music.score import Score

MOST_SPANS = 2000  # more are not seen in a picture


class ChordSpan(NamedTuple):
    """A requested chord, and its share of the new notes' sounding time."""

    name: str
    from_s: float
    to_s: float
    share: float | None  # None: no new note sounds

    def later(self, seconds: float) -> Self:
        return self._replace(from_s=self.from_s + seconds, to_s=self.to_s + seconds)


def outcome(
    control: Control,
    new: Score,
    from_s: float,
    to_s: float,
    lines_s: NDArray[np.float64],
    line: ChordLine | None = None,
) -> tuple[tuple[ChordSpan, ...], str]:
    """The chords from `from_s` to `to_s`, and words: `92% in chords, 97% in D minor, 3.1 to 5.8 notes a second`.

    Chords count sounding time, keys count notes, curves show their first and last third. `lines_s` are bar lines
    or seconds from which `line` counts: the chords, where `control` does not spell them."""
    spans, phrases = list[ChordSpan](), list[str]()
    line = line or control.line
    if line is not None:
        within_s, all_s = 0.0, 0.0
        for k, start_s, end_s in changes(line, lines_s, from_s, to_s):
            chord = line.chords[k]
            sounds_s = (np.minimum(new.offset_s, end_s) - np.maximum(new.onset_s, start_s)).clip(min=0)  # (N,)
            in_s, of_s = float(sounds_s[np.isin(new.pitch % 12, list(chord.classes))].sum()), float(sounds_s.sum())
            within_s, all_s = within_s + in_s, all_s + of_s
            spans.append(ChordSpan(str(chord), start_s, end_s, in_s / of_s if of_s else None))
        phrases += [f"{within_s / all_s:.0%} in chords"] if all_s else []
        spans = spans if len(spans) <= MOST_SPANS else []
    if control.classes is not None and len(new):
        phrases += [f"{np.isin(new.pitch % 12, list(control.classes)).mean():.0%} in {control.key}"]
    for name, curve in control.curves().items():
        third_s = (to_s - from_s) / 3
        parts = [(from_s, from_s + third_s), (to_s - third_s, to_s)] if len(set(curve.values)) > 1 else [(from_s, to_s)]
        if from_s < to_s and any(values := [_measure(name, new, *part) for part in parts]):
            phrases += [PHRASES[name].format(" to ".join(value or "–" for value in values))]
    return tuple(spans), ", ".join(phrases)


def changes(
    line: ChordLine, lines_s: NDArray[np.float64], from_s: float, to_s: float
) -> Iterator[tuple[int, float, float]]:
    """The number and time of each chord from `from_s` to `to_s`; `lines_s` are bar lines or seconds."""
    units = np.arange(len(lines_s), dtype=np.float64)
    rounds = int(np.ceil(along(np.array([to_s]), lines_s, units)[0] / line.length))
    begins = (np.arange(max(rounds, 0))[:, None] * line.length + np.array(line.begins)).ravel()
    starts = np.append(along(begins, units, lines_s)[1:], to_s).clip(from_s, to_s).tolist()
    for k, (start_s, end_s) in enumerate(pairwise([from_s, *starts])):
        if end_s - start_s >= CLOSE:
            yield k % len(line.chords), start_s, end_s


PHRASES = {
    "density": "{} notes a second",
    "polyphony": "{} at once",
    "register": "around {}",
    "loudness": "velocity {}",
}


def _measure(name: str, new: Score, from_s: float, to_s: float) -> str | None:
    """One of `CURVES` measured between two moments; None for the mean of no notes."""
    inside = (new.onset_s >= from_s - CLOSE) & (new.onset_s < to_s - CLOSE)
    if name == "density":
        return f"{inside.sum() / (to_s - from_s):.1f}"
    if name == "polyphony":
        sounds_s = np.minimum(new.offset_s, to_s) - np.maximum(new.onset_s, from_s)
        return f"{sounds_s.clip(min=0).sum() / (to_s - from_s):.1f}"
    if not inside.any():
        return None
    if name == "register":
        return pitch_name(round(float(new.pitch[inside].mean())))
    return f"{new.velocity[inside].mean():.0f}"
