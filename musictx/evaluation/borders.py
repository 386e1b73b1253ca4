"""How a filled part meets the music after it: notes cut at the border, silence around it, onsets beside it.

Set what a model filled in beside the composer's own notes at the same borders: notes end, repeat and pause there too.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from musictx.errors import ConfigError
from musictx.evaluation.bootstrap import Interval, interval
from musictx.notes.score import Score

WITHIN_S = 0.005  # half a step of the 10 ms clock: what is nearer falls on the border
SILENT_S = 0.5  # at about 1 in 80 true borders of MAESTRO's validation pieces, 1 in 230 of the JSB chorales'


class Border(NamedTuple):
    """What stands at a border. Silence begins no earlier than the filled part does, the last onset is no farther back;
    silence lasts to the first onset after the border."""

    cut_notes: int  # end on the border, where their pitch is struck anew
    ending_notes: int  # end on the border, those that are cut among them
    silence_s: float  # that holds the border or touches it; 0 where a note sounds over it
    last_onset_s: float  # before the border
    first_onset_s: float  # after it; 0 for notes on it

    @property
    def silent(self) -> bool:
        return self.silence_s > SILENT_S

    @property
    def met(self) -> bool:
        """Neither a note is cut nor is there silence."""
        return not (self.cut_notes or self.silent)


def border(score: Score, from_s: float, to_s: float) -> Border:
    """The border at `to_s` of a whole piece whose notes from `from_s` to there were filled in. Raises ConfigError for a
    part that has no length or no music after it."""
    begun = score.onset_s < to_s - WITHIN_S
    if not 0 <= from_s < to_s or begun.all():
        last_s = score.onset_s.max(initial=0.0)
        raise ConfigError(f"from_s={from_s:g}, to_s={to_s:g}: give 0 <= from_s < to_s <= {last_s:g}, the last onset")
    first_s = float(score.onset_s[~begun].min())
    before = score.select(begun)
    ending = np.abs(before.offset_s - to_s) < WITHIN_S
    struck = score.pitch[np.abs(score.onset_s - to_s) < WITHIN_S]
    heard_s = max(before.duration_s, from_s)
    return Border(
        cut_notes=int(np.isin(before.pitch[ending], struck).sum()),
        ending_notes=int(ending.sum()),
        silence_s=max(first_s - heard_s, 0.0) if heard_s < to_s + WITHIN_S else 0.0,
        last_onset_s=to_s - max(float(before.onset_s.max(initial=0.0)), from_s),
        first_onset_s=max(first_s - to_s, 0.0),
    )


def summary(pieces: Sequence[Sequence[Border]]) -> dict[str, Interval]:
    """The shares of borders that have a cut note, have silence, are met, and how many notes end on a border, with
    intervals over N pieces of any number of borders each. Raises ConfigError for no borders."""
    count = [len(piece) for piece in pieces]
    measures: dict[str, Callable[[Border], float]] = {
        "cut": lambda b: b.cut_notes > 0,
        "silent": lambda b: b.silent,
        "met": lambda b: b.met,
        "ending_notes": lambda b: b.ending_notes,
    }
    return {name: interval([sum(map(of, piece)) for piece in pieces], count) for name, of in measures.items()}
