"""A model's piece of music: its notes, facts about them, and its files."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musictx.errors import MidiError, UserError
from musictx.files import replacing
from musictx.generate.continuation import Continuation, notes_after
from musictx.music.beat_grid import bars_of
from musictx.music.bridge import join_files
from musictx.music.gap import GapNotes, fill_in
from musictx.music.grid import STEPS_PER_QUARTER, VOICE_NAMES, in_steps
from musictx.music.midi_file import Event
from musictx.music.notation.midi import from_midi
from musictx.music.notation.notation import SCORES, Losses, Notation
from musictx.music.project import NAME, Line, Project
from musictx.music.read import read_tracks
from musictx.music.repairs import say_repairs
from musictx.music.score import UNITS, Bars, Meter, Score
from musictx.music.voice_parts import homes_of, in_parts
from musictx.music.write import MIDI
from musictx.viz import sound
from musictx.viz.sound import write_wav

MOST_S = 1e6  # of a file
STEADY = 0.1  # of a sixteenth: the mean distance of a seed that keeps to its beat; by chance it is 0.25


class Place(NamedTuple):
    """The place of music in a person's file."""

    project: Project
    later_s: float = 0.0  # of the file's clock: time 0 of the music
    step_s: float = 0.0  # as in `GapNotes`
    seed: bool = True  # whether the file has the seed's notes too
    second: Project | None = None  # the file after a gap between two

    def at(self, score: Score) -> Score:
        """The notes where they lie in the file."""
        return replace(score, onset_s=score.onset_s + self.later_s, offset_s=score.offset_s + self.later_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class Music(Continuation):
    """A continuation, after its primer unless that was left out; or a piece with its gap filled.

    Shapes:
        `is_new` (N,), for the N notes of `score`.

    Units:
        `new_from_s` and `new_to_s` in seconds from the beginning, `mean_log_p` in nats a token.
    """

    name: str  # of its file from `musictx generate`: elise-1 for the first continuation of elise.mid
    signature: tuple[int, int] | None  # beats and the unit of a beat, of the seed
    seed: Path | None  # the file that it continues
    after: Path | None = None  # the second file, if it goes between two
    meter: Meter | None = field(default=None, repr=False)  # of the seed, from time 0 on; None: there is no seed
    place: Place | None = field(
        default=None, repr=False, compare=False
    )  # in the file of the seed; None: there is no such file
    remarks: tuple[str, ...] = field(default=(), repr=False)  # on the seed and the drawing

    @property
    def title(self) -> str:
        """The title in a picture."""
        return f"{self.name}: {self.became}" if self.became else self.name

    def midi(self, text: str = "", *, alone: bool = False, pedal: bool = False) -> bytes:
        """The person's MIDI file with the new notes; `alone`, or without a file, the music at one tempo.

        `pedal` writes long notes as keys and sustain pedal, `text` a remark for people."""
        place = self.place
        if place is None or alone:
            whole = Project.new(self.score.quarter_s, self.signature)
            return whole.beside(self.tracks(self.score, self.lines), text, pedal=pedal)
        if place.second is not None:
            lines = self.tracks(self.new_notes, ())
            return join_files(place.project, place.second, lines, self.new_from_s, self.new_to_s, text, pedal=pedal)
        if self.is_new is not None:
            return fill_in(place.project, self.gap(place), text, pedal=pedal)
        from_s, project = self.new_from_s + place.later_s, place.project
        lines = [Line(name, place.at(line)) for name, line in self.tracks(self.new_notes, self.new_lines)]
        more: Mapping[int, Sequence[Event]] = {}
        if place.seed and any(map(len, self.new_lines)):
            heard = [place.at(line.select(line.onset_s < self.new_from_s)) for line in self.lines]
            lines, more = in_parts(project, dict(zip(VOICE_NAMES, heard, strict=True)), lines)
        return project.continue_at(lines, from_s, text, pedal=pedal, seed=place.seed, more=more)

    @property
    def new_lines(self) -> list[Score]:
        """The new notes of each voice."""
        at_s = self.new_from_s
        lines = [notes_after(line, at_s) for line in self.lines]
        return [replace(line, onset_s=line.onset_s + at_s, offset_s=line.offset_s + at_s) for line in lines]

    def tracks(self, score: Score, lines: Sequence[Score]) -> list[Line]:
        """The tracks of a file, one a voice."""
        if not any(map(len, lines)):
            return [Line(NAME, score)]
        return [Line(name, line) for name, line in zip(VOICE_NAMES, lines, strict=True) if len(line)]

    def lost_in_midi(self, *, alone: bool = False) -> Losses:
        """The parts of a score that its MIDI file lacks."""
        return Losses()

    def written(self, source: object, *, alone: bool = False) -> tuple[Notation, Losses]:
        """The score, and its losses. Raises MidiError for a performance, which names the source."""
        notation, losses = from_midi(self.midi(alone=alone), source)
        place, staves = self.place, notation.on_two_staves()
        if place is not None and not staves.keys:
            with suppress(MidiError):  # without notes that keep to a grid, the new ones say the key
                staves = replace(staves, key_from=from_midi(place.project.data, source)[0])
        given = place.project.notation if place is not None and place.seed and not alone else None
        if place is None or given is None:
            return staves, losses
        per_unit = int.from_bytes(place.project.file.division) / UNITS
        new = [place.project.tick(min(at_s + place.later_s, MOST_S)) / per_unit for at_s in self.region_s]
        if place.second is not None and place.second.notation is not None:
            given = given.followed_by(place.second.notation, round(new[1]))
        whole, lost = staves.with_texts(given, *new)
        return whole, losses - Losses(lyrics=losses["lyrics"]) + Losses(lyrics=lost)  # others are counted when written

    @property
    def region_s(self) -> tuple[float, float]:
        """Where given notes were replaced, or new ones come after them."""
        return self.new_from_s, self.new_to_s

    def heard(self, *, alone: bool = False, pedal: bool = False) -> Score:
        """The notes of the MIDI file, drums too, from the first music on that it is about."""
        data, place = self.midi(alone=alone, pedal=pedal), self.place
        score = read_tracks(data, self.name).merge(drums=True)
        begin_s = place.later_s if place is not None and not place.seed and not alone else 0.0
        return score.clip(begin_s, score.duration_s + 1)

    def gap(self, place: Place) -> GapNotes:
        """The filled gap, where it lies in the seed's file."""
        is_new = np.asarray(self.is_new, dtype=bool)
        new, others = (place.at(self.score.select(mask)) for mask in (is_new, ~is_new))
        return GapNotes(
            self.new_by_voice(place) or place.project.by_register(new),
            others,
            self.new_from_s + place.later_s,
            self.new_to_s + place.later_s,
            place.step_s,
        )

    def new_by_voice(self, place: Place) -> list[tuple[int, Score]]:
        """The new notes of a gap by the parts of their voices; [] where one has no part of its own."""
        is_new, voices = np.asarray(self.is_new, dtype=bool), np.array(self.voice_of_notes)
        old = {name: place.at(self.score.select((voices == name) & ~is_new)) for name in VOICE_NAMES}
        homes = homes_of(place.project, old)
        if any(name not in homes for name in voices[is_new].tolist()):
            return []
        new = {name: place.at(self.score.select((voices == name) & is_new)) for name in homes}
        return [(homes[name], notes) for name, notes in new.items() if len(notes)]

    @property
    def voice_of_notes(self) -> list[str]:
        """The voice that sings each note, "" for none; of a unison each note has another, one that begins first."""
        names, seen = list[str](), Counter[tuple[int, int]]()
        sung = [(name, *in_steps(line), line.pitch) for name, line in zip(VOICE_NAMES, self.lines, strict=False)]
        for step, pitch in zip(in_steps(self.score)[0].tolist(), self.score.pitch.tolist(), strict=True):
            holds = [(name, on[(on <= step) & (step < off) & (of == pitch)]) for name, on, off, of in sung]
            singers = [name for begins in (True, False) for name, on in holds if len(on) and (step in on) == begins]
            names += singers[seen[step, pitch] :][:1] or singers[-1:] or [""]
            seen[step, pitch] += 1
        return names

    @property
    def bars(self) -> Bars | None:
        """The bar lines, from the seed on; None of a free performance."""
        return None if self.meter is None else bars_of(self.score, self.meter, self.score.duration_s)

    @property
    def beat(self) -> str:
        """A remark on the distance of new notes from the sixteenths; "" without a beat."""
        if self.place is None or self.is_new is not None or not len(new := self.new_notes):
            return ""
        old = self.score.select(self.score.onset_s < self.new_from_s)
        seed_s, new_s = (self.place.project.beside_beat_s(self.place.at(notes)) for notes in (old, new))
        steady_s = STEADY * self.score.quarter_s / STEPS_PER_QUARTER
        if seed_s is None or new_s is None or seed_s > steady_s:
            return ""
        return (
            f"new notes begin {1000 * new_s:.0f} ms from the sixteenths on average, the seed's {1000 * seed_s:.0f} ms"
        )

    def write(self, path: str | Path, text: str = "", *, alone: bool = False, pedal: bool = False) -> str:
        """Writes a MIDI file, picture (.png .svg .pdf), film (.gif .mp4), sound (.wav .flac) or score (.musicxml .mxl).

        The suffix of `path` says which; the MIDI file and the score have the notes of `midi`. It replaces an existing
        file, whole or not at all. Returns a remark on the losses of a score, else "".

        Raises:
            UserError: for another suffix, for the seed's file, and for a performance as a score.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if os.path.realpath(path) in {os.path.realpath(file) for file in (self.seed, self.after) if file is not None}:
            raise UserError(f"{path} is the seed and would be overwritten", "give another name")
        if suffix in MIDI:
            data = self.midi(text, alone=alone, pedal=pedal)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial:
                partial.write_bytes(data)
            return "; ".join(say_repairs(self.lost_in_midi(alone=alone)))
        if suffix in SCORES:
            from musictx.viz.engraving import write_notation

            notation, losses = self.written(path, alone=alone)
            losses = losses + write_notation(notation, path, self.name)
            return "; ".join(say_repairs(losses))
        if suffix in sound.FORMATS:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_wav(self.heard(alone=alone, pedal=pedal), path)
        else:
            from musictx.viz.formats import FORMATS, write_as  # takes 0.4 s, so only those who draw wait for it

            if suffix not in FORMATS:
                raise UserError(f"{path}", f"give a name that ends in one of {', '.join((*MIDI, *FORMATS, *SCORES))}")
            write_as(self.score, path, self.title, self.new, bars=self.bars, chords=self.chords)
        return ""
