"""A score with its new notes, and its files: a person's MIDI file stays as it is beside them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.humanize import LOUDEST, touches_of
from musictx.generate.result import Music
from musictx.generate.score_seeds import ScoreSeed, seconds_at
from musictx.generate.score_templates import Template
from musictx.music import midi_file as midi
from musictx.music.channel_use import rest_events
from musictx.music.midi_file import Event, EventFile, EventTrack, meta, notes_of, read_events, with_events, write_events
from musictx.music.midi_file import Note as MidiNote
from musictx.music.new_events import events_of
from musictx.music.notation.lyrics import is_lyric
from musictx.music.notation.midi import MINOR, VELOCITY, lost_in_midi, to_midi
from musictx.music.notation.notation import Losses, Notation
from musictx.music.notation.parts import Note, Part
from musictx.music.notation.swing import Swing
from musictx.music.pedal import let_go
from musictx.music.project import Line, Project
from musictx.music.read import read_tracks
from musictx.music.score import UNITS, Score, merge_marked

Loud = Mapping[tuple[int, int, int], int]  # the velocity of each note, by the part of the file, onset and pitch
NEAR = 16  # notes of a part say how loud new ones beside them are


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreMusic(Music):
    """A score with new notes. `added` has those of each slot."""

    source: ScoreSeed = field(repr=False, compare=False)
    template: Template = field(repr=False)
    added: Mapping[int, tuple[Note, ...]] = field(repr=False)
    loud: Loud = field(repr=False)

    @property
    def notation(self) -> Notation:
        """The whole score, each keyboard on two staves."""
        old = self.template.notation
        pairs = zip(old.parts, new_parts(self.template, self.added), strict=True)
        parts = tuple(_with(part, new.notes) for part, new in pairs)
        return replace(old, parts=parts, key_from=None if old.keys else old.key_from or self.template.seed)

    def midi(self, text: str = "", *, alone: bool = False, pedal: bool = False) -> bytes:
        """The person's MIDI file with the new notes on its tracks; of notation, or `alone`, the score as MIDI."""
        if pedal:
            raise ConfigError("pedal", got=True, why="the notes of a score have written lengths", allowed="false")
        seed, whole = self.source, self.notation
        if alone or not seed.is_midi:
            staves = _in_parts(whole, homes_of(self.template, seed))
            homes = list(dict.fromkeys(homes_of(self.template, seed)))  # of the staves
            data = to_midi(replace(staves, tempi=staves.tempi[:1]) if alone else staves, self.loud, homes)
            return _with_text(read_events(data), text) if text else data
        return into_file(seed, self.template, self.added, self.loud, text)

    def lost_in_midi(self, *, alone: bool = False) -> Losses:
        return lost_in_midi(self.notation) if alone or not self.source.is_midi else Losses()

    def written(self, source: object, *, alone: bool = False) -> tuple[Notation, Losses]:
        return self.notation, Losses() if alone else self.source.in_file - Losses(swung=1)  # swing has its own remark


def without_seed(music: ScoreMusic) -> ScoreMusic:
    """The new bars alone, from bar 1 on: the parts of the seed, its meter, key and tempo."""
    template, old, begin = music.template, music.template.notation, music.template.span[0]
    first = min(bar for _, bar in template.free)
    notation = replace(
        old,
        parts=tuple(
            replace(
                part,
                notes=(),
                lyrics=(),
                voices={},
                clefs=tuple(each._replace(onset=0) for each in part.clefs[-1:]),
                transposed=tuple(each._replace(onset=0) for each in part.transposed[-1:]),
                keys=part.keys and tuple(each._replace(onset=0) for each in part.keys[-1:]),
            )
            for part in old.parts
        ),
        bars=tuple(bar._replace(onset=bar.onset - begin) for bar in old.bars[first:]),
        end=old.end - begin,
        keys=tuple(key._replace(onset=0) for key in old.keys[-1:]),
        tempi=tuple(tempo._replace(onset=0) for tempo in old.tempi[-1:]),
        symbols=(),
        first=1,
        printed=(),
        source=None,
        key_from=None if old.keys else old.key_from or template.seed,
    )
    free = frozenset((slot, bar - first) for slot, bar in template.free)
    added = {
        slot: tuple(note._replace(onset=note.onset - begin) for note in notes) for slot, notes in music.added.items()
    }
    loud = {(home, at - begin, pitch): velocity for (home, at, pitch), velocity in music.loud.items() if at >= begin}
    music = replace(music, template=Template(notation, template.slots, free, template.ahead, notation), added=added)
    tracks = read_tracks(data := to_midi(music.notation), music.name)
    project, meter = Project(data, tracks.tempo_map), tracks.meter()
    seed = music.source._replace(notation=notation, loud={}, project=project, is_midi=False, meter=meter)
    return replace(
        music,
        score=both(music.template, added, seed, loud)[0],
        new_from_s=0.0,
        chords=tuple(chord.later(-music.new_from_s) for chord in music.chords),
        signature=notation.bars[0][1:],
        meter=meter,
        source=seed,
        loud=loud,
    )


def new_parts(template: Template, added: Mapping[int, tuple[Note, ...]]) -> list[Part]:
    """The new notes of each staff."""
    pairs = zip(template.notation.parts, template.slots, strict=True)
    return [replace(part, notes=() if slot is None else added.get(slot, ())) for part, slot in pairs]


def _with(part: Part, notes: Iterable[Note]) -> Part:
    return replace(part, notes=tuple(sorted((*part.notes, *notes))))


def homes_of(template: Template, seed: ScoreSeed) -> list[int]:
    """The part of the file that each staff of a template belongs to; new ones have numbers below 0."""
    if len(template.slots) == len(seed.staves):
        return [*seed.staves]
    old = dict(zip(seed.slots, seed.staves, strict=True))
    silent = iter(n for n, slot in zip(seed.staves, seed.slots, strict=True) if slot is None)
    return [next(silent) if slot is None else old.get(slot, -slot) for slot in template.slots]


def _in_parts(notation: Notation, homes: list[int]) -> Notation:
    """The staves of one part of the file together."""
    parts = list[Part]()
    for n, (part, home) in enumerate(zip(notation.parts, homes, strict=True)):
        if n and home == homes[n - 1]:
            both_lyrics = tuple(sorted((*parts[-1].lyrics, *part.lyrics)))
            parts[-1] = replace(_with(parts[-1], part.notes), lyrics=both_lyrics)
        else:
            parts.append(part)
    return replace(notation, parts=tuple(parts))


def fitted(seed: ScoreSeed, template: Template, drawn: Mapping[int, Iterable[Note]]) -> dict[int, tuple[Note, ...]]:
    """New notes without those whose key is down already on their channel of the file; each ends where its key is struck
    again."""
    channels = [seed.places[home][0][1] if home >= 0 else home for home in homes_of(template, seed)]
    channel_of = dict(zip(template.slots, channels, strict=True))
    down: dict[tuple[int, int], list[Note]] = defaultdict(list)  # by channel and pitch
    for part, channel in zip(template.notation.parts, channels, strict=True):
        for note in part.notes:
            down[channel, note.pitch].append(note)
    out: dict[int, list[Note]] = {slot: [] for slot in drawn}
    for note, slot in sorted((note, slot) for slot, notes in drawn.items() for note in notes):
        same = down[channel_of[slot], note.pitch]
        if not any(each.onset <= note.onset < each.offset for each in same):
            end = min((each.onset for each in same if each.onset > note.onset), default=note.offset)
            same.append(note._replace(length=min(note.offset, end) - note.onset))
            out[slot].append(same[-1])
    return {slot: tuple(notes) for slot, notes in out.items()}


def into_file(
    seed: ScoreSeed, template: Template, added: Mapping[int, tuple[Note, ...]], loud: Loud, text: str = ""
) -> bytes:
    """The person's MIDI file with new notes in place of those of the free bars."""
    project, tracks = seed.project, list(seed.project.file.tracks)
    per_unit, swing = int.from_bytes(project.file.division) / UNITS, seed.notation.swing
    begin, end = template.span
    if begin >= template.seed.end:  # no pedal of the seed holds what is new
        tracks = let_go(tracks, project.raw.channels, round(begin * per_unit))
        tracks[0] = with_events(tracks[0], [], [*_meters(template, per_unit), *_keys(template, per_unit)])
    new, drawn = dict[int, list[tuple[Note, int]]](), {slot for slot, _ in template.free}
    lines = list[Line]()
    for part, slot, home in zip(new_parts(template, added), template.slots, homes_of(template, seed), strict=True):
        played = [(note, loud[home, note.onset, note.pitch]) for note in part.notes]
        if slot in drawn and home >= 0:
            new.setdefault(home, []).extend(played)
        elif played:
            lines.append(Line(part.name, score_of([(note, part.program, velocity) for note, velocity in played], seed)))
    asked = {place for each in seed.places for place in each}
    if project.part is not None:
        asked = {(part.track, part.channel) for part in project.model_parts}
    for home, notes in new.items():
        for k, (t, channel) in enumerate(place for place in seed.places[home] if place in asked):
            mine = [note for note in notes_of(tracks[t]) if note.channel == channel]
            gone = [note for note in mine if begin <= round(note.on / per_unit) < end]
            more = list(events_of([] if k else _in_ticks(notes, per_unit, channel, swing), channel))
            if more and begin >= template.seed.end:
                more = [*rest_events(tracks, channel, round(begin * per_unit), goes_on=True), *more]
            # a note without an end would last as long as its track, which gets longer
            more += [_end_of(note) for note in mine if note.last is None and note not in gone]
            places = [n for note in gone for n in (note.first, note.last) if n is not None]
            if len(mine) == len(notes_of(tracks[t])):  # the words below them go too
                events = enumerate(tracks[t].events)
                places += [n for n, each in events if is_lyric(each) and begin <= round(each.tick / per_unit) < end]
            tracks[t] = with_events(tracks[t], places, more)
    if lines:
        tracks += project.new_tracks(lines, 0, tracks)
    return _with_text(project.file._replace(tracks=tracks), text)


def _meters(template: Template, per_unit: float) -> list[Event]:
    """The time signature of new bars, where it is another than the last."""
    last, new = template.seed.bars[-1], template.notation.bars[len(template.seed.bars)]
    if last[1:] == new[1:]:
        return []
    values = [midi.META, 0x58, 4, new.numerator, new.denominator.bit_length() - 1, 24, 8]
    return [Event(round(new.onset * per_unit), bytes(values))]


def _keys(template: Template, per_unit: float) -> list[Event]:
    """The key signatures of new bars."""
    new = template.notation.keys[len(template.seed.keys) :]
    return [
        Event(round(key.onset * per_unit), bytes([midi.META, 0x59, 2, key.sharps % 256, key.mode in MINOR]))
        for key in new
    ]


def _in_ticks(notes: Sequence[tuple[Note, int]], per_unit: float, channel: int, swing: Swing) -> list[MidiNote]:
    units = [[note.onset for note, _ in notes], [note.offset for note, _ in notes]]
    on, off = np.rint(swing.played(units) * per_unit).astype(int).tolist()
    ticks = ((a, b, note.pitch, loud) for a, b, (note, loud) in zip(on, off, notes, strict=True))
    return [MidiNote(on, max(off, on + 1), channel, pitch, velocity, 0, None) for on, off, pitch, velocity in ticks]


def _end_of(note: MidiNote) -> Event:
    return Event(note.off, bytes([midi.NOTE_OFF | note.channel, note.pitch, 64]))


def _with_text(file: EventFile, text: str) -> bytes:
    tracks = list[EventTrack](file.tracks)
    if text:
        tracks[0] = with_events(tracks[0], [], [meta(0, midi.TEXT, text)])
    return write_events(file._replace(tracks=tracks))


def score_of(notes: Iterable[tuple[Note, int, int]], seed: ScoreSeed) -> Score:
    """Notes with a program and a velocity each, in seconds of the file."""
    rows = sorted((note.onset, note.pitch, note.length, program, velocity) for note, program, velocity in notes)
    onset, pitch, length, program, velocity = np.array(rows, np.int64).reshape(-1, 5).T
    on_s, off_s = seconds_at(onset, seed), seconds_at(onset + length, seed)
    return Score(on_s, off_s, pitch, velocity, seed.meter.quarter_s, program)


def both(
    template: Template, added: Mapping[int, tuple[Note, ...]], seed: ScoreSeed, loud: Loud
) -> tuple[Score, NDArray[np.bool_]]:
    """All notes in seconds, and which of them are new (N,)."""
    old, new = list[tuple[Note, int, int]](), list[tuple[Note, int, int]]()
    homes = homes_of(template, seed)
    for part, more, home in zip(template.notation.parts, new_parts(template, added), homes, strict=True):
        for notes, out in ((part.notes, old), (more.notes, new)):
            out += [(note, part.program, loud.get((home, note.onset, note.pitch), VELOCITY)) for note in notes]
    return merge_marked(score_of(old, seed), score_of(new, seed))


def loudness_of(
    template: Template, added: Mapping[int, tuple[Note, ...]], seed: ScoreSeed, humanize: bool = False, chance: int = 0
) -> Loud:
    """The velocity of each note: of new ones as of those near them, or by `humanize` around these; that gives all notes
    of notation theirs."""
    loud, parts, homes = dict(seed.loud), new_parts(template, added), homes_of(template, seed)
    joined = [_with(part, more.notes) for part, more in zip(template.notation.parts, parts, strict=True)]
    played = replace(template.notation, parts=tuple(joined))
    touches = touches_of(played, chance, template.slots) if humanize else []
    for n, (part, home) in enumerate(zip(parts, homes, strict=True)):
        usual = loudness(seed, home, *template.span)
        found = dict.fromkeys(part.notes, usual)
        if humanize:
            human = dict(zip(joined[n].notes, touches[n].velocity.tolist(), strict=True))
            found = {note: human[note] for note in (part.notes if seed.is_midi else joined[n].notes)}
            if found and seed.is_midi and home >= 0:
                louder = usual - round(median(found.values()))
                found = {note: min(max(velocity + louder, 1), LOUDEST) for note, velocity in found.items()}
        loud |= {(home, note.onset, note.pitch): velocity for note, velocity in found.items()}
    return loud


def loudness(seed: ScoreSeed, home: int, begin: int, end: int) -> int:
    """The median velocity of the notes of a part that begin nearest to some bars, but not in them."""
    others = ((at, velocity) for (n, at, _), velocity in seed.loud.items() if n == home and not begin <= at < end)
    near = sorted(others, key=lambda each: max(begin - each[0], each[0] - end))[:NEAR]
    return round(median([velocity for _, velocity in near] or [VELOCITY]))
