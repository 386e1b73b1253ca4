"""Songs, for `score_measures.py`: the nats of their hands with and without the tune, and the tune's dissonances.

OpenEWLD has tunes alone: hands are drawn for them, but there are none of composers to score or to stand beside.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from score_drawn import ScoreModel
from score_nats import WINDOW, Row, nats_of, stream
from score_works import SCORE, UNIT_S, Work, moved

from musictx.analysis.key import key_of
from musictx.generate.requests import Accompany
from musictx.music.notation.parts import Note
from musictx.music.score import UNITS, Score
from musictx.tokenizers.score.slots import LEFT, OCTAVE, RIGHT, TUNE

DISSONANT = (1, 2, 6, 10, 11)  # semitones above the bass, without octaves; below it they are the same
TUNE_BARS = 16


def accompaniment(model: Any, work: Work) -> Row | None:
    """The nats of what goes with a song's tune, from the bar on in which that begins: given the tune a bar ahead,
    without it, and given that of other bars, half the excerpt away. The ids scored are the same. Each has as many whole
    bars as one window holds with the tune. None where bars differ: no other tune fits."""
    song = fitting(work.from_tune)
    if song is None or not song.is_even or not song.notes(RIGHT, LEFT):
        return None
    others = song.only(*(slot for slot in song.slots if slot != TUNE))
    ways = {"tune": (song, TUNE), "no melody": (others, None), "other bars' tune": (elsewhere(song), TUNE)}
    found, heard = dict[str, float](), list[list[int]]()
    for name, (each, ahead) in ways.items():
        ids, places = stream(each.notation, each.slots, ahead)
        own = np.zeros(len(ids), bool)  # (T,)
        for begin, section in places:
            own[begin : begin + len(section.ids)] = section.slot != TUNE
        found[name] = float(nats_of(model, ids)[own].sum())
        heard.append(ids[own].tolist())
    assert heard[0] == heard[1] == heard[2]
    return found | {"notes": int((SCORE.pitch[heard[0]] >= 0).sum()), "bars": len(song.notation.bars)}


def fitting(work: Work) -> Work | None:
    """Its first bars, as many as a window holds; None for fewer than two."""
    most = len(work.notation.bars)
    while most > 1:
        part = work.cut(0, most)
        if (length := len(stream(part.notation, part.slots, TUNE)[0])) <= WINDOW:
            return part
        most = min(most - 1, max(most * WINDOW // length, 2))
    return None


def elsewhere(song: Work) -> Work:
    """The song with its tune moved on by half of its bars, the last ones to the beginning."""
    old, end = song.notation, song.notation.end
    by = old.bars[len(old.bars) // 2].onset
    at = song.slots.index(TUNE)
    tune = sorted(moved(note._replace(onset=(note.onset + by) % end), 0, end) for note in old.parts[at].notes)
    parts = [replace(part, notes=tuple(tune)) if n == at else part for n, part in enumerate(old.parts)]
    return song._replace(notation=replace(old, parts=tuple(parts)))


class Song(NamedTuple):
    """The bars of a song from that on in which its tune begins, and their key."""

    name: str
    music: Work
    tonic: int
    mode: str  # "" for a tie

    @classmethod
    def of(cls, work: Work) -> "Song":
        music = work.from_tune.cut(0, TUNE_BARS)
        return cls(work.name, music, *(key_of(score_of(music.notes(TUNE, RIGHT, LEFT))) or (0, "")))

    @property
    def can_be_asked(self) -> bool:
        """Whether hands can be drawn for it: a line in whole bars of one meter."""
        return self.music.is_even and self.music.only(TUNE).notation.parts[0].is_line

    def fits(self, other: "Song") -> bool:
        """Whether the hands of another song go with this tune after transposing: one meter, one mode, long enough."""
        mine, theirs = self.music, other.music
        is_like = mine.notation.bars[0][1:] == theirs.notation.bars[0][1:] and self.mode == other.mode != ""
        is_long = mine.is_even and theirs.is_even and theirs.notation.end >= mine.notation.end
        return self.name != other.name and is_like and is_long and bool(theirs.notes(RIGHT, LEFT))


def score_of(notes: Iterable[Note]) -> Score:
    rows = sorted((note.onset, note.pitch, note.length) for note in notes)
    onset, pitch, length = np.array(rows, np.int64).reshape(-1, 3).T
    return Score(onset * UNIT_S, (onset + length) * UNIT_S, pitch, np.full(len(rows), 80), UNIT_S * UNITS)


def accompanied(song: Song, others: Sequence[Song], score: ScoreModel, folder: Path) -> dict[str, Row]:
    """The dissonance of a song's tune with the hands that are drawn for it, the composers', and another song's."""
    tune, end = song.music.notes(TUNE), song.music.notation.end
    file = song.music.only(TUNE).write(folder / "tunes" / song.music.file_name)
    music = score.draw(score.task(file, Accompany()))
    music.write(folder / "accompanied" / song.music.file_name)
    hands = {"drawn": [note for notes in music.added.values() for note in notes]}
    if own := song.music.notes(RIGHT, LEFT):
        hands["composers"] = own
    if other := next((each for each in others if song.fits(each)), None):
        up = (song.tonic - other.tonic + OCTAVE // 2) % OCTAVE - OCTAVE // 2
        hands["another song's"] = [note._replace(pitch=note.pitch + up) for note in other.music.notes(RIGHT, LEFT)]
    return {name: dissonance(tune, notes, end) for name, notes in hands.items()}


def dissonance(tune: Sequence[Note], hands: Sequence[Note], end: int) -> Row:
    """Units in which the tune sounds, those of them in which a hand does, and those in which it is then dissonant."""
    top, bass = sounding(tune, end, max), sounding(hands, end, min)  # (end,)
    both = (top >= 0) & (bass >= 0)
    clashes = both & np.isin((top - bass) % OCTAVE, DISSONANT)
    return {"tune": int((top >= 0).sum()), "both": int(both.sum()), "dissonant": int(clashes.sum())}


def sounding(notes: Iterable[Note], end: int, which: Callable[..., int]) -> NDArray[np.int64]:
    """(end,) the highest or the lowest pitch in each unit; -1 for silence."""
    out = np.full(end, -1)
    for note in sorted(notes, key=lambda note: note.pitch, reverse=which is min):
        out[note.onset : note.offset] = note.pitch
    return out
