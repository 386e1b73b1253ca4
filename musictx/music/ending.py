"""The ending of a finished piece: its last chord and the slow ones before it, or all that rings long to the end."""

import numpy as np

from musictx.music.score import Score

# new music begins before an ending: after one a model only sustains the last chord
TOGETHER_S = 0.05  # notes that begin so close together are one chord
FEW = 8  # chords; with fewer nothing is known of the pace
RECENT_S = 30.0  # the pace is that of so much music at the end
USUAL = 0.9  # share of the waits between chords that are no longer than a usual one
REST = 2.0  # a last chord that sounds for so many usual waits, and for `REST_S`, is an ending
REST_S = 0.75
LONG = 1.5  # and it has a note that is so many times as long as the usual one: under a pedal all notes are long
SLOW = 1.5  # a chord belongs to the ending too if the wait after it is so many times the usual one
RINGING, RINGING_S = 8, 2.0  # so many notes that sound at the end, half of them for so long, are an ending too
MOST_S = 12.0  # an ending is no longer than this, nor than a third of the music


# only the times of notes count, so that it serves music of any style
def ending_s(score: Score) -> float | None:
    """The second at which the ending begins; None for music that is not finished."""
    onset_s = np.unique(score.onset_s)
    onset_s = onset_s[np.diff(onset_s, prepend=-np.inf) > TOGETHER_S]
    end_s = score.duration_s
    if len(onset_s) < FEW:
        return None
    earliest_s = end_s - min(MOST_S, end_s / 3)
    lengths_s = score.offset_s - score.onset_s
    ringing = (score.offset_s > end_s - TOGETHER_S) & (score.onset_s >= earliest_s)
    if ringing.sum() >= RINGING and (onset_s < (first_s := float(score.onset_s[ringing].min()))).sum() >= FEW:
        usual_s = float(np.median(lengths_s[~ringing]))
        if np.median(lengths_s[ringing]) >= max(RINGING_S, LONG * usual_s):
            return first_s
    waits_s = np.diff(onset_s)
    recent = waits_s[onset_s[1:] >= end_s - RECENT_S]
    usual_s = float(np.quantile(recent if len(recent) >= FEW else waits_s, USUAL))
    if end_s - onset_s[-1] < max(REST * usual_s, REST_S):
        return None
    last = score.onset_s >= onset_s[-1]
    before = lengths_s[~last & (score.onset_s >= end_s - RECENT_S)]
    if len(before) and lengths_s[last].max() < LONG * float(np.median(before)):
        return None
    first = len(onset_s) - 1
    while waits_s[first - 1] > SLOW * usual_s and onset_s[first - 1] >= earliest_s:
        first -= 1
    return float(onset_s[first])
