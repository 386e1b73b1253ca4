"""The written lengths of notes that a MIDI file holds a little short or long."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from musictx.music.midi_file import Note as MidiNote
from musictx.music.notation.parts import Note, Part
from musictx.music.score import UNITS

STRAIGHT = [3, 6, 9, 12, 18, 24, 36, 48, 72, 96, 144, 192]
TRIPLET = [4, 8, 16]
SHORTER = 0.2  # of a usual length: how much a program may leave out before the next note, or go on beyond it
TAIL = UNITS // 4  # a note that reaches into the next bar by less is held a little long


def on_grid(notes: Sequence[MidiNote], per_unit: float) -> tuple[Note, ...]:
    onsets = sorted({round(note.on / per_unit) for note in notes})
    usual = STRAIGHT + TRIPLET * any(at % 3 for at in onsets)
    wait_of = {at: following - at for at, following in pairwise(onsets)}
    meant = dict[int, int]()  # by ticks, of notes that end about where the next begins: the last one has the same
    for note in notes:
        onset = round(note.on / per_unit)
        wait = wait_of.get(onset, 0)
        if abs(onset + wait - note.off / per_unit) <= SHORTER * wait + 1e-6:
            meant[note.off - note.on] = wait
    notes_on_grid = []
    for note in notes:
        onset, length, end = round(note.on / per_unit), (note.off - note.on) / per_unit, note.off / per_unit
        is_place = abs(end - round(end)) < 1e-6 and any(not round(at) % n for at in (end, length) for n in (3, 4))
        if not is_place:  # no written note ends there
            first = wait_of.get(onset, 0), meant.get(note.off - note.on, 0)
            fits = [each for each in (*first, *usual) if abs(each - length) <= SHORTER * each + 1e-6]
            length = min(fits, key=lambda each: (each not in first, abs(each - length)), default=length)
        notes_on_grid.append(Note(onset, max(round(length), 1), note.pitch))
    return tuple(apart(sorted(set(notes_on_grid))))


def without_tails(parts: Sequence[Part], line: int) -> list[Part]:
    """The parts without the tails of notes behind a bar line; [] where music goes on there."""
    beyond = [note for part in parts for note in part.notes if note.offset > line]
    if any(note.onset >= line or 2 * (note.offset - line) >= note.length for note in beyond):
        return []
    cut = ([note._replace(length=min(note.length, line - note.onset)) for note in part.notes] for part in parts)
    return [replace(part, notes=tuple(apart(sorted({*notes})))) for part, notes in zip(parts, cut, strict=True)]


def apart(notes: Sequence[Note]) -> list[Note]:
    """Notes of one pitch end where the next of it begins."""
    following: dict[int, int] = {}
    out = []
    for note in reversed(notes):
        length = min(note.length, following.get(note.pitch, note.offset) - note.onset)
        if length > 0:
            following[note.pitch] = note.onset
            out.append(note._replace(length=length))
    return out[::-1]
