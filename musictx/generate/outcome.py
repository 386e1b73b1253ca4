"""What became of a `Control` in new music: each chord with its share of the notes, and all of it in words."""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from musictx.generate.control import Control
from musictx.music.curve import along
from musictx.music.harmony import ChordLine, pitch_name
from musictx.music.score import Meter, Score

CLOSE = 1e-6  # of a bar or a second: times are sums of floats
MOST_SPANS = 2000  # more are not seen in a picture


class ChordSpan(NamedTuple):
    """A chord that was asked for, its time in seconds, and the share of the notes begun in it that belong to it."""

    name: str
    from_s: float
    to_s: float
    share: float | None  # None: no note begins

    def later(self, seconds: float) -> Self:
        return self._replace(from_s=self.from_s + seconds, to_s=self.to_s + seconds)


def outcome(
    control: Control, new: Score, from_s: float, to_s: float, meter: Meter, line: ChordLine | None = None
) -> tuple[tuple[ChordSpan, ...], str]:
    """The chords from `from_s` to `to_s` after a seed in this meter, and words as in `92% in chords, 97% in D minor,
    3.1 to 5.8 notes a second`. These are shares of the new notes; of a curve its first and last third. `line`: the
    chords, where the text does not say them."""
    spans, said = list[ChordSpan](), list[str]()
    line = line or control.line
    if line is not None:
        lines, count = control.lines_s(meter, from_s)[1], len(line.chords)
        units = np.arange(len(lines), dtype=np.float64)
        at = along(new.onset_s, lines, units).clip(min=0) + CLOSE  # (N,) in units
        chord = np.searchsorted(line.begins, at % line.length, side="right") - 1
        table = np.array([[each in asked.classes for each in range(12)] for asked in line.chords])  # (K, 12)
        inside, span = table[chord, new.pitch % 12], at // line.length * count + chord
        said += [f"{inside.mean():.0%} in chords"] if len(new) else []
        rounds = int(np.ceil(along(np.array([to_s]), lines, units)[0] / line.length))
        if rounds * count <= MOST_SPANS:
            begins = [k * line.length + begin for k in range(rounds) for begin in line.begins]
            starts = np.append(along(np.array(begins), units, lines)[1:], to_s).clip(from_s, to_s).tolist()
            for k, (start, end) in enumerate(pairwise([from_s, *starts])):
                if end - start < CLOSE:
                    continue
                here = inside[span == k]
                share = float(here.mean()) if len(here) else None
                spans.append(ChordSpan(str(line.chords[k % count]), start, end, share))
    if control.classes is not None and len(new):
        said += [f"{np.isin(new.pitch % 12, list(control.classes)).mean():.0%} in {control.key}"]
    for name, curve in control.curves().items():
        third_s = (to_s - from_s) / 3
        parts = [(from_s, from_s + third_s), (to_s - third_s, to_s)] if len(set(curve.values)) > 1 else [(from_s, to_s)]
        if from_s < to_s and any(became := [_measured(name, new, *part) for part in parts]):
            said += [SAID[name].format(" to ".join(x or "–" for x in became))]
    return tuple(spans), ", ".join(said)


SAID = {"density": "{} notes a second", "polyphony": "{} at once", "register": "around {}", "loudness": "velocity {}"}


def _measured(name: str, new: Score, from_s: float, to_s: float) -> str | None:
    """What CURVES name, between two moments; None for the mean of no notes."""
    begun = (new.onset_s >= from_s - CLOSE) & (new.onset_s < to_s - CLOSE)
    if name == "density":
        return f"{begun.sum() / (to_s - from_s):.1f}"
    if name == "polyphony":
        sounds_s = np.minimum(new.offset_s, to_s) - np.maximum(new.onset_s, from_s)
        return f"{sounds_s.clip(min=0).sum() / (to_s - from_s):.1f}"
    if not begun.any():
        return None
    if name == "register":
        return pitch_name(round(float(new.pitch[begun].mean())))
    return f"{new.velocity[begun].mean():.0f}"
