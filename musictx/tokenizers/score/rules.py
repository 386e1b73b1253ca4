"""The rules of scores: which ids may come next.

- METER, KEY, each part once and in the order of the bars before, BAR. A new bar has a meter and a key of the seed, and
  is whole.
- In a part AT goes forward within the bar. A place has lengths, each once, with their pitches from low to high.
- No pitch that its part sounds already.
- Places and ends on the seed's grid; no note, silence or wait for a new note longer than the rules say.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music.beat_grid import SHARE, SWING, grid_by_name
from musictx.music.notation.notation import Notation
from musictx.music.score import UNITS
from musictx.tokenizers.rules import AUTO, BEAT_NOTE, OFF, Rules
from musictx.tokenizers.score.slots import SLOTS, TUNE
from musictx.tokenizers.score.tokens import LENGTHS, MOST_LONG, MOST_UNITS, PITCHES, ScoreTokenizer

REMEMBERED = 256  # notes that may still sound, or that say when one began last
GRIDS = ("1/8", "1/8t", "1/16", "1/16t", "1/16+1/8t", "1/32")  # the coarsest first; these have exact places

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Limits:
    """The limits of one row, in units."""

    pitches: Mask  # (PITCHES,)
    meters: Mask  # (M,)
    keys: Mask  # (K,) none: no bar says one
    places: Mask  # (UNITS,) of a quarter
    ends: Mask  # (UNITS,)
    note: int
    still: int
    silence: int
    polyphony: int
    at_once: Mapping[int, int] = field(default_factory=dict)  # how many notes of a slot may sound together
    reach: Mapping[int, Mask] = field(default_factory=dict)  # (PITCHES,) the pitches of slots that have not all
    drawn: frozenset[int] = frozenset(range(SLOTS))  # slots of new music, which alone may not be silent for long
    span: tuple[int, int] | None = None  # where new music begins and ends

    @classmethod
    def after(cls, seed: Notation, meters: Mask, keys: Mask, rules: Rules, unit_s: float) -> "Limits":
        """Those of a seed. Raises ConfigError for a grid without exact places."""
        if rules.grid == SWING:
            why = "a score has exact places, and swing is played"
            raise ConfigError("grid", got=rules.grid, why=why, allowed=f"auto, off, or one of {', '.join(GRIDS)}")
        notes = [note for part in seed.parts for note in part.notes]
        both = [note.onset for note in notes], [note.offset for note in notes]
        onsets, ends = (np.unique(at).astype(np.int64) for at in both)
        lines = np.array([bar.onset for bar in seed.bars])
        begin, end = ((at - lines[np.searchsorted(lines, at, side="right") - 1]) % UNITS for at in (onsets, ends))
        lengths_s = np.array([note.length for note in notes]) * unit_s
        return cls(
            rules.pitches(),
            meters,
            keys,
            places=_grid(rules, begin),
            ends=_grid(rules, np.concatenate([begin, end])),
            note=max(int(rules.note_s(lengths_s, BEAT_NOTE) / unit_s + 1e-6), 1),
            still=max(int(rules.still_s(np.diff(onsets) * unit_s) / unit_s + 1e-6), 1),
            silence=max(int(rules.max_silence_s / unit_s + 1e-6), 1),
            polyphony=rules.max_polyphony or PITCHES * SLOTS,
        )


def _grid(rules: Rules, used: NDArray[np.int64]) -> Mask:
    """(UNITS,) the places of a quarter for new notes, where nearly all of a seed's are among `used`; where they are on
    no grid, as quintuplets that got the nearest places, those of all grids, which notation can write."""
    if rules.grid not in (AUTO, OFF):
        return _at(grid_by_name(rules.grid).places)
    if rules.grid == OFF:
        return np.ones(UNITS, bool)
    grids = [_at(grid_by_name(name).places) for name in GRIDS]
    return next((grid for grid in grids if len(used) and grid[used].mean() >= SHARE), np.any(grids, axis=0))


def _at(places: Sequence[float]) -> Mask:
    return np.isin(np.arange(UNITS), places)


@dataclass
class Row:
    """The place of one row in its score; times are units from its beginning."""

    tokenizer: ScoreTokenizer
    limits: Limits
    ahead: int | None = None  # the part that is a bar ahead
    order: tuple[int, ...] = ()  # parts of a whole bar, the one ahead first; () before the first one is over
    seen: tuple[int, ...] = ()  # of this bar
    is_fragment: bool = False  # whether this bar began before the first id
    is_over: bool = False  # whether the part ahead has no more bars, and the others have its last one
    last: str = "BAR"  # kind of the last id
    before: tuple[int, int] = (0, 0)  # where the bar before begins and ends
    now: tuple[int, int] = (0, 0)  # and the bar of the last METER
    at: int = -1  # in the part's bar; -1 before its first note
    longer: int = 0
    length: int = 0  # of the part's last note in this bar; 0 before it
    lengths: tuple[int, ...] = ()  # of this place
    struck: tuple[int, ...] = ()  # pitches of this place
    first: int = -1  # the lowest pitch of the last length
    notes: tuple[tuple[int, int, int, int], ...] = ()  # (slot, onset, offset, pitch), the last ones

    @property
    def slot(self) -> int:
        return self.seen[-1]

    @property
    def is_whole(self) -> bool:
        """Whether this bar has all its parts."""
        return bool(self.order) and len(self.seen) + self.is_over == len(self.order)

    @property
    def is_first(self) -> bool:
        """Whether no bar comes before this one."""
        return self.before[0] == self.before[1]

    @property
    def bar(self) -> tuple[int, int]:
        """The bar of the part under way."""
        return self.before if self.ahead is not None and self.slot != self.ahead else self.now

    def take(self, i: int) -> None:
        """Moves on by one id."""
        t = self.tokenizer
        if i < t.span:
            beats, unit = t.meters[i]
            self.before = self.now
            self.now = (self.now[1], self.now[1] + UNITS * 4 * beats // unit)
            self.last = "METER"
        elif i == t.span:
            self.last = "SPAN"
        elif i < t.ahead0:
            self.last = "KEY"
        elif i < t.at0:
            slot = i - (t.ahead0 if i < t.part0 else t.part0)
            if i < t.part0:
                self.ahead = slot
            elif self.last == "BAR" and self.ahead is not None:
                self.is_over, self.before = True, self.now
            self.seen, self.last = (*self.seen, slot), "PART"
            self.at, self.length, self.lengths, self.struck = -1, 0, (), ()
        elif i < t.long0:
            if self.last == "SPAN":
                self.now, self.last = (self.now[0], self.now[0] + max(i - t.at0, 1)), "METER"
            else:
                self.at, self.last, self.lengths, self.struck, self.first = i - t.at0, "AT", (), (), -1
        elif i < t.length0:
            self.longer, self.last = self.longer + i - t.long0 + 1, "LONG"
        elif i < t.pitch0:
            self.length = self.longer * LENGTHS + i - t.length0 + 1
            self.longer, self.lengths, self.last = 0, (*self.lengths, self.length), "LENGTH"
        elif i < t.bar:
            self._strike(i - t.pitch0)
        elif i == t.bar:
            if not (self.is_fragment or self.is_over) and (self.ahead is None or len(self.seen) > 1):
                self.order = self.order or self.seen
            self.seen, self.last, self.at, self.is_fragment, self.is_over = (), "BAR", -1, False, False

    def _strike(self, pitch: int) -> None:
        if self.last != "PITCH":
            self.first = pitch
        if self.last == "AT":
            self.lengths = (self.length,)
        self.struck, self.last = (*self.struck, pitch), "PITCH"
        onset = self.bar[0] + max(self.at, 0)
        self.notes = (*self.notes, (self.slot, onset, onset + self.length, pitch))[-REMEMBERED:]

    def legal(self) -> Mask:
        """(V,) the ids that may come next."""
        t, mask = self.tokenizer, np.zeros(self.tokenizer.vocab.size, dtype=bool)
        if self.last == "BAR":
            mask[: t.span] = self.limits.meters
        elif self.last == "SPAN":
            mask[t.at0 + 1 : t.long0] = True
        elif self.last == "METER" and self.limits.keys.any():
            mask[t.key0 : t.ahead0] = self.limits.keys
        elif self.last in ("METER", "KEY"):
            self._parts(mask)
        elif self.last in ("AT", "LONG"):
            if self.last == "AT" and self._may_last(self.length):
                mask[t.pitch0 : t.bar] = self._pitches(self.at, -1)
            self._lengths(mask)
        elif self.last == "LENGTH":
            mask[t.pitch0 : t.bar] = self._pitches(self.at, self.first)
        else:
            self._go_on(mask)
        return mask

    def _parts(self, mask: Mask) -> None:
        """The parts that may come next."""
        t, ahead = self.tokenizer, self.ahead
        if self.order:
            slot = self.order[len(self.seen) + self.is_over]
            mask[(t.ahead0 if slot == ahead else t.part0) + slot] = True
        elif self.seen and ahead is not None and self.is_first:
            pass  # the first bar has only the part that is ahead
        elif self.seen or ahead is None:
            last = max((slot for slot in self.seen if slot != ahead), default=-1)
            mask[t.part0 + last + 1 : t.at0] = True
            if ahead is not None:
                mask[t.part0 + ahead] = False
            elif not self.seen:
                mask[t.ahead0 : t.part0] = True
        else:
            mask[t.ahead0 + ahead] = True

    def _go_on(self, mask: Mask) -> None:
        """After a part's beginning or a pitch: higher pitches, other lengths, later places, the next part or BAR."""
        t = self.tokenizer
        if self.last == "PITCH":
            mask[t.pitch0 : t.bar] = self._pitches(self.at, self.struck[-1])
            if self._pitches(self.at, self.first).any():
                self._lengths(mask)
        by = self._strike_by()
        places = np.arange(self.at + 1, max(min(self.bar[1] - self.bar[0], by + 1), self.at + 1))
        mask[t.at0 + places] = self.limits.places[places % UNITS] & self._has_room(places)
        is_first_ahead = self.ahead is not None and self.is_first  # it has only the part that is ahead
        may_end = self.is_whole or (not self.order and (is_first_ahead or self.ahead is None or len(self.seen) > 1))
        if may_end:
            mask[t.bar] = by >= MOST_UNITS or not mask[t.at0 : t.long0].any()
        if not self.is_whole and (by >= MOST_UNITS or not mask[t.at0 : t.long0].any()):
            self._parts(mask)

    def _has_room(self, places: NDArray[np.int64]) -> Mask:
        """Whether a note may begin at places of the bar."""
        slot, onset, offset, pitch = np.array(self.notes, dtype=np.int64).reshape(-1, 4).T[..., None]
        sounds = (onset <= self.bar[0] + places) & (offset > self.bar[0] + places)  # (N, places)
        own, pitches = sounds & (slot == self.slot), self._reach
        is_full: Mask = (sounds.sum(0) >= self.limits.polyphony) | ((own & pitches[pitch]).sum(0) >= pitches.sum())
        free: Mask = ~(is_full | (own.sum(0) >= self._at_once))
        return free

    @property
    def _at_once(self) -> int:
        return self.limits.at_once.get(self.slot, PITCHES)

    @property
    def _reach(self) -> Mask:
        """(PITCHES,) those of the part under way."""
        return self.limits.reach.get(self.slot, self.limits.pitches)

    def _strike_by(self) -> int:
        """The last place for a note that must come in the bar's last part of new music; `MOST_UNITS` for none."""
        begin, end = self.bar
        drawn, others = self.limits.drawn, self.limits.drawn - {self.ahead}  # the part ahead comes first in its bar
        notes = [(onset, offset) for slot, onset, offset, _ in self.notes if slot in drawn]
        is_last = self.is_whole if self.limits.span is None else self.slot == max(others or drawn)
        if not is_last or any(begin <= onset < end for onset, _ in notes):
            return MOST_UNITS
        earlier = [(onset, offset) for onset, offset in notes if onset < begin]
        if not earlier and self.limits.span is None:
            return MOST_UNITS
        wait = self.limits.still
        if not earlier:  # new music may begin late, but not in its second half
            since, until = self.limits.span or (begin, end)
            earlier, wait = [(since, since)], min(wait, (until - since) // 2)
        by = min(
            max(onset for onset, _ in earlier) + wait,
            max(offset for _, offset in earlier) + self.limits.silence,
        )
        if by >= end:
            return MOST_UNITS
        first = next((at for at in range(end - begin) if self.limits.places[at % UNITS]), 0)
        return max(by - begin, first)

    def _lengths(self, mask: Mask) -> None:
        """LONG and LENGTH: another length than that of the note before, and than the others of this place."""
        t, base = self.tokenizer, self.longer * LENGTHS
        lengths = base + np.arange(1, LENGTHS + 1)
        new = ~np.isin(lengths, (*self.lengths, self.length))
        mask[t.length0 : t.pitch0] = new & self._may_last(lengths)
        room = max((self.limits.note - base - 1) // LENGTHS, 0)
        mask[t.long0 : t.long0 + min(room, MOST_LONG)] = True
        if not mask[t.long0 : t.bar].any():  # no length ends on the grid
            mask[t.length0 : t.pitch0] = new & (lengths <= max(self.limits.note, base + 1))
        if not mask[t.long0 : t.bar].any():
            mask[t.length0 : t.pitch0] = new

    def _may_last(self, length: Any) -> Any:
        """Whether notes of this place may last so long."""
        return (length > 0) & (length <= self.limits.note) & self.limits.ends[(self.at + length) % UNITS]

    def _pitches(self, at: int, above: int) -> Mask:
        """(PITCHES,) those that may begin at a place of the bar."""
        moment = self.bar[0] + at
        legal: Mask = self._reach & (np.arange(PITCHES) > above)
        sounding = [(slot, pitch) for slot, onset, offset, pitch in self.notes if onset <= moment < offset]
        own = [pitch for slot, pitch in sounding if slot == self.slot]
        legal[own] = False
        legal &= len(own) < self._at_once
        if self.last != "LENGTH":
            legal &= len(sounding) < self.limits.polyphony
        return legal


class ScoreRules:
    """A `Grammar`. Raises ConfigError for rules that a score cannot keep."""

    def __init__(
        self,
        tokenizer: ScoreTokenizer,
        rules: Rules,
        prompts: Sequence[NDArray[np.integer]],
        quarter_s: Sequence[float],
    ) -> None:
        self.rows = list[Row]()
        for prompt, each_s in zip(prompts, quarter_s, strict=True):
            t, seed = tokenizer, tokenizer.decode_notation(prompt)
            used = np.isin(np.arange(t.ahead0), prompt) | (not len(prompt))  # a piece from nothing has any
            limits = Limits.after(seed, used[: t.span], used[t.key0 :], rules, each_s / UNITS)
            row = Row(tokenizer, limits)
            if len(prompt) and tokenizer.begins_within(prompt.tolist()):
                bar = seed.bars[0]
                row = replace(row, seen=(TUNE,), is_fragment=True, last="PART", now=(0, bar.full))
            for i in prompt.tolist():
                row.take(i)
            self.rows.append(row)

    def legal(self) -> Mask:
        return np.stack([row.legal() for row in self.rows])  # (B, V)

    def update(self, ids: NDArray[np.int64]) -> None:
        for row, i in zip(self.rows, ids.tolist(), strict=True):
            row.take(i)

    def move(self, rows: NDArray[np.int64]) -> None:
        self.rows = [copy.copy(self.rows[n]) for n in rows.tolist()]
