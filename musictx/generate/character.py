"""The character of a seed: bounds on density, polyphony, range and repetition, beyond which new notes are less
likely."""

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.generate.steering import RECENT_S, ends_of, strike_ids, strikes_of, velocities_of
from musictx.tokenizers import Ids, Tokenizer

SLOW_S = 8.0  # notes count for how dense music is on the whole, less and less the longer ago they began
RECENT = 8.0  # onsets count for how often a key comes, less and less the more onsets ago they were
CLOSE_S = 0.05  # notes within it are one onset
NEAR = 64  # onsets: a run that comes again so soon is a loop
NEWEST_IDS = 8192  # ids, the newest, say what a seed is like
FEW = 4  # notes: after so few, music may be twice as dense and as full, and go an octave further
LONGEST = 32  # notes of a run that may come again, however often the seed repeats its own: a bar or two
REMEMBERED = 1024  # onsets in which runs are looked for
MOST = 95  # percentile over the seed's notes
LEAST = {"density": 1.0, "polyphony": 1.0, "again": 3.0, "loop": 6.0, "run": 6.0}  # no seed has less
FIRM = 6.0  # a note at twice the most is 2 ** FIRM times as unlikely
FARTHEST = np.log(8.0)  # no note is less likely than one so far beyond
OCTAVE = 12.0  # a note an octave beyond the range is as unlikely as one at twice the most


class Bounds(NamedTuple):
    """The bounds of a seed's notes; infinite ones bound nothing."""

    density: float = np.inf  # notes a second, lately
    dense: float = np.inf  # and on the whole
    thin: float = 0.0
    polyphony: float = np.inf  # notes at once
    again: float = np.inf  # of the last onsets, those that have one key
    loop: float = np.inf  # notes in a row that came before, a moment ago
    run: float = np.inf  # or at any time
    low: float = -np.inf  # pitches
    high: float = np.inf


class Follower:
    """Measures the notes in the ids of a row, whose music has `mean` notes a second."""

    def __init__(self, tokenizer: Tokenizer, mean: float) -> None:
        assert tokenizer.pace is not None
        self.wait_s, self.strikes = np.maximum(tokenizer.pace, 0.0).tolist(), strikes_of(tokenizer).tolist()
        self.keys: list[int] = strike_ids(tokenizer).tolist()
        self.rate, self.slow, self.down = mean, mean, set[int]()
        self.again = np.zeros(len(self.keys))  # (V,) by key
        self.onset, self.onset_s = set[int](), 0.0  # the keys of the last onset, and the time since it began
        self.before = list[frozenset[int]]()  # the onsets before that one
        self.numbers = dict[frozenset[int], int]()  # of different onsets
        self.codes = np.zeros(REMEMBERED, np.int64)  # and of those before
        self.runs = np.zeros(REMEMBERED, np.int64)  # notes in a row, up to each of these, that came again up to now

    def runs_by_key(self, most: float = 0.0) -> dict[int, tuple[int, int]]:
        """For each key that continues a run of more than `most` notes, its length: lately (`NEAR`) and at any time."""
        repeats, n, began = dict[int, tuple[int, int]](), len(self.before), len(self.onset)
        runs = self.runs[: max(n - 1, 0)]
        for j in np.flatnonzero((runs > 0) & (runs + began >= most)).tolist():
            if self.onset <= self.before[j + 1]:
                run = int(self.runs[j]) + began + 1
                near = run if j >= n - 1 - NEAR else 0
                for key in self.before[j + 1] - self.onset:
                    loop, longest = repeats.get(key, (0, 0))
                    repeats[key] = max(loop, near), max(longest, run)
        return repeats

    def hear(self, i: int) -> None:
        """Takes one more id."""
        if wait_s := self.wait_s[i]:
            self.rate *= float(np.exp(-wait_s / RECENT_S))
            self.slow *= float(np.exp(-wait_s / SLOW_S))
            self.onset_s += wait_s
            if self.onset and self.onset_s > CLOSE_S:
                self._close()
        elif self.strikes[i]:
            if not self.onset:
                self.onset_s = 0.0
                self.again *= np.exp(-1 / RECENT)
            self.rate += 1 / RECENT_S
            self.slow += 1 / SLOW_S
            self.down.add(i)
            self.again[i] += i not in self.onset
            self.onset.add(i)
        else:
            self.down.discard(self.keys[i])

    def _close(self) -> None:
        """Adds the last onset to the runs."""
        n, onset = len(self.before), frozenset(self.onset)
        if n == REMEMBERED:
            n //= 2
            self.before = self.before[n:]
            self.codes[:n], self.runs[:n] = self.codes[n:], self.runs[n:]
        code = self.numbers.setdefault(onset, len(self.numbers))
        up_to = np.concatenate([[0], self.runs[: max(n - 1, 0)]])[:n]  # the onset before each
        self.runs[:n] = np.where(self.codes[:n] == code, up_to + len(onset), 0)
        self.runs[n], self.codes[n] = 0, code
        self.before.append(onset)
        self.onset = set()


class AtNote(NamedTuple):
    """The measures of the music at a note."""

    density: float
    slow: float
    polyphony: float
    again: float
    loop: float
    run: float
    pitch: int


def at_notes(ids: Ids, tokenizer: Tokenizer) -> list[AtNote]:
    """The measures at each note of ids (T,)."""
    follower, notes, strikes = Follower(tokenizer, mean_of(ids, tokenizer)), list[AtNote](), strikes_of(tokenizer)
    for i in ids.tolist():
        loop, run = follower.runs_by_key().get(i, (0, 0)) if strikes[i] else (0, 0)
        follower.hear(i)
        if strikes[i]:
            now = follower.rate, follower.slow, len(follower.down), float(follower.again[i])
            notes.append(AtNote(*now, loop, run, int(tokenizer.pitch[i])))
    return notes


def mean_of(ids: Ids, tokenizer: Tokenizer) -> float:
    """The density of ids (T,) in notes a second."""
    assert tokenizer.pace is not None
    seconds = float(np.maximum(tokenizer.pace, 0.0)[ids].sum())
    return int(strikes_of(tokenizer)[ids].sum()) / max(seconds, 1.0)


def bounds_of(parts: Sequence[Ids], tokenizer: Tokenizer, free: Sequence[str] = ()) -> Bounds:
    """The bounds of music in parts, but for the `free` ones; few notes give wider bounds."""
    notes = [note for ids in parts for note in at_notes(ids[-NEWEST_IDS:], tokenizer)]
    if not notes:
        return Bounds()

    def percentile(name: str, share: float) -> float:
        return float(np.percentile([getattr(note, name) for note in notes], share))

    wide, pitch = 1 + FEW / len(notes), [note.pitch for note in notes]
    most = {name: max(percentile(name, MOST), least) for name, least in LEAST.items()}
    most |= {name: wide * most[name] for name in ("density", "polyphony")}
    most |= {name: min(most[name], LONGEST) for name in ("loop", "run")}
    most |= {"dense": percentile("slow", MOST) * wide, "thin": percentile("slow", 100 - MOST) / wide}
    most |= {"low": min(pitch) - OCTAVE * (wide - 1), "high": max(pitch) + OCTAVE * (wide - 1)}
    return Bounds(**{name: value for name, value in most.items() if name not in free})


class Character:
    """The rows of a batch and the bounds of their seeds."""

    def __init__(self, most: Sequence[Bounds], tokenizer: Tokenizer, prompts: Sequence[Ids]) -> None:
        strikes, pitch = strikes_of(tokenizer), tokenizer.pitch.astype(float)
        self.strikes, self.sounds = strikes, strikes | (velocities_of(tokenizer) >= 0)  # (V,)
        self.ends = ends_of(tokenizer)  # (V,)
        assert tokenizer.pace is not None
        self.wait_s = np.maximum(tokenizer.pace, 0.0)  # (V,)
        away = [np.maximum(np.maximum(row.low - pitch, pitch - row.high), 0.0) for row in most]
        self.of_range = [-FIRM * np.log(2) * each / OCTAVE * strikes for each in away]  # (V,) each
        followers = dict[bytes, Follower]()
        for ids in prompts:
            if (key := ids.tobytes()) not in followers:
                followers[key] = Follower(tokenizer, mean_of(ids, tokenizer))
                for i in ids[-NEWEST_IDS:].tolist():
                    followers[key].hear(i)
        self.rows = [deepcopy(followers[ids.tobytes()]) for ids in prompts]
        # where too little sounds already, as before a first note, thinness is no fault of the new music
        self.most = [each._replace(thin=min(each.thin, row.slow)) for each, row in zip(most, self.rows, strict=True)]
        self.more, self.each = np.zeros((2, len(prompts), len(strikes)))  # as `__call__` gives them
        self.loops = np.zeros(len(prompts), bool)  # whether a row would go on with a loop
        self.held = np.zeros(len(prompts), np.int64)  # notes that were less likely by this

    def __call__(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Terms of logits, (B, V), and those that move probability among notes, (B, V)."""
        shape = len(self.rows), len(self.strikes)
        self.more, self.each = np.zeros(shape), np.zeros(shape)
        for k, (row, most) in enumerate(zip(self.rows, self.most, strict=True)):
            n = len(row.down)
            over = penalty(row.rate + 1 / RECENT_S, most.density) + penalty(n + 1, most.polyphony)
            over += penalty(row.slow + 1 / SLOW_S, most.dense)
            self.more[k] = penalty(n, most.polyphony) * self.ends - over * self.sounds
            if (under := penalty(most.thin, row.slow)) > 0:
                self.more[k] += under * (self.sounds - np.minimum(most.thin * self.wait_s, 1.0))
            self.each[k] = self.of_range[k]
            again = row.again * (1.0 if row.onset else np.exp(-1 / RECENT)) + 1
            for i in np.flatnonzero(again > most.again).tolist():
                self.each[k, i] -= penalty(float(again[i]), most.again)
            self.loops[k] = False
            for i, (loop, run) in row.runs_by_key(min(most.loop, most.run)).items():
                self.each[k, i] -= max(penalty(loop, most.loop), penalty(run, most.run))
                self.loops[k] |= loop > most.loop
        return self.more, self.each

    def update(self, ids: Sequence[int]) -> None:
        """Takes one more token a row."""
        for k, (row, i) in enumerate(zip(self.rows, ids, strict=True)):
            self.held[k] += bool(self.strikes[i]) and bool(self.more[k, i] < 0 or self.each[k, i] < 0)
            row.hear(i)

    def move(self, rows: Sequence[int]) -> None:
        self.rows, self.held = [deepcopy(self.rows[k]) for k in rows], self.held[list(rows)]


def can_hold(tokenizer: Tokenizer) -> bool:
    """Whether ids begin and end each key."""
    return tokenizer.pace is not None and bool(ends_of(tokenizer).any() and strikes_of(tokenizer).any())


def penalty(value: float, most: float) -> float:
    """The loss of log-probability beyond a bound."""
    return FIRM * min(float(np.log(value / max(most, 1e-9))), FARTHEST) if value > most else 0.0
