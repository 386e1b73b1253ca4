"""The title of a MIDI file, and its staves: its channels, and what each of them plays."""

import re
from typing import NamedTuple

from musictx.music.channels import Places
from musictx.music.midi_file import PROGRAM, EventFile, EventTrack, notes_of
from musictx.music.midi_file import Note as MidiNote

LONGEST = 200  # characters of a title
NO_TITLE = """tempo conductor master control meta global track tracks time signature map midi seq sequence untitled
unnamed unknown no name new song project default header setup score staff part file init reset marker markers click
metronome sysex gm gs xg words lyrics soft karaoke acoustic grand piano"""  # words of the names that programs give
PLACE = re.compile(r"[@\\/]|\.midi?$", re.IGNORECASE)  # in fields of karaoke, and in paths


class MidiStaff(NamedTuple):
    """The notes of a staff, and their tracks and channels in the file."""

    name: str
    program: int
    notes: list[MidiNote]
    places: list[tuple[int, int]]


def title_of(file: EventFile) -> str:
    """The name of a first track without notes, as the standard has titles; "" for one that a program gives. A number
    of three digits, as 1812, may be a title."""
    first, *others = file.tracks or [EventTrack([], 0)]
    name = " ".join(first.name.split())[:LONGEST] if others and not [*notes_of(first)] else ""
    words = re.findall(r"[^\W\d_]+|\d{3,}", name.lower())
    return "" if PLACE.search(name) or {*words} <= {*NO_TITLE.split()} else name


def staves_of(file: EventFile, drums: Places) -> tuple[list[MidiStaff], int]:
    """The staves of a MIDI file, one a channel of a track, and how many notes are those of its `drums`."""
    beaten, staves = 0, list[MidiStaff]()
    for t, track in enumerate(file.tracks):
        of_channel: dict[int, list[MidiNote]] = {}
        for note in notes_of(track):
            of_channel.setdefault(note.channel, []).append(note)
        beaten += sum(len(of_channel.pop(channel, ())) for of, channel in drums if of == t)
        programs = {x.channel: x.data[1] for x in reversed(track.events) if x.kind == PROGRAM}
        for channel, notes in sorted(of_channel.items()):
            _add_staff(staves, MidiStaff(track.name, programs.get(channel, 0), notes, [(t, channel)]))
    return staves, beaten


def _add_staff(staves: list[MidiStaff], new: MidiStaff) -> None:
    """A channel is a staff of its own, unless one has all of its notes already: a second voice's unisons."""
    for staff in staves:
        if staff[:2] == new[:2] and len(new.notes) <= len(staff.notes):
            strikes = {(note.pitch, note.on) for note in staff.notes}
            if all((note.pitch, note.on) in strikes for note in new.notes):
                staff.notes.extend(new.notes)
                staff.places.extend(new.places)
                return
    staves.append(new)
