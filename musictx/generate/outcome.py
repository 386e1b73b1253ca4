"""What became of a `Control` in new music: each chord with its share of the notes, and all of it in words."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.generate.control import Control
from musictx.music.harmony import Classes
from musictx.music.score import Score

CLOSE_S = 1e-6  # times are sums of floats


class ChordSpan(NamedTuple):
    """A chord that was asked for, its time in seconds, and the share of the notes begun in it that belong to it."""

    name: str
    from_s: float
    to_s: float
    share: float | None  # None: no note begins


def outcome(
    control: Control, new: Score, from_s: float, to_s: float, bar_s: float
) -> tuple[tuple[ChordSpan, ...], str]:
    """The chords from `from_s` to `to_s`, where a bar of the seed lasts `bar_s`, and words as in `92% in chords, 97% in
    D minor, 5.8 notes a second`: shares of the new notes."""
    spans, said, inside = list[ChordSpan](), list[str](), np.zeros(len(new), bool)
    if (line := control.line) is not None and from_s < to_s:
        unit_s = control.unit_s(bar_s)
        rounds = range(int(np.ceil((to_s - from_s) / (line.length * unit_s))))
        starts = [(from_s + (k * line.length + at) * unit_s, n) for k in rounds for n, at in enumerate(line.begins)]
        starts = [(at, n) for at, n in starts if at < to_s - CLOSE_S]
        for (at, n), (end_s, _) in pairwise([*starts, (to_s, 0)]):
            here = slice(*np.searchsorted(new.onset_s, [at - CLOSE_S, end_s - CLOSE_S]))
            inside[here] = of_classes(new.pitch[here], line.chords[n].classes)
            share = float(inside[here].mean()) if len(inside[here]) else None
            spans.append(ChordSpan(str(line.chords[n]), at, end_s, share))
        said += [f"{inside.mean():.0%} in chords"] if len(new) else []
    if control.classes is not None and len(new):
        said += [f"{of_classes(new.pitch, control.classes).mean():.0%} in {control.key}"]
    if control.density is not None and from_s < to_s:
        said += [f"{len(new) / (to_s - from_s):.1f} notes a second"]
    return tuple(spans), ", ".join(said)


def of_classes(pitch: NDArray[np.integer], classes: Classes) -> NDArray[np.bool_]:
    """(N,) which pitches belong to these pitch classes."""
    return np.isin(pitch % 12, list(classes))
