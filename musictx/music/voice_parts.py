"""The parts of a person's file that go on with the voices of new music."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import permutations
from statistics import median

from musictx.music.grid import STEPS_PER_QUARTER
from musictx.music.midi_file import Event, Note
from musictx.music.new_events import events_of
from musictx.music.project import Line, Part, Project
from musictx.music.score import Score

NEAR = 8  # last notes of a part, as loud as which new ones are


def in_parts(
    project: Project, seed: Mapping[str, Score], lines: Iterable[Line]
) -> tuple[list[Line], dict[int, list[Event]]]:
    """New events of each track, for the lines whose voice of the seed is in a part; the other lines as they are."""
    others, voices, homes = list[Line](), dict[int, list[Score]](), homes_of(project, seed)
    for line in lines:
        if line.name in homes:
            voices.setdefault(homes[line.name], []).append(line.score)
        else:
            others.append(line)
    more: dict[int, list[Event]] = {}
    for part in (each for each in project.parts if each.number in voices):
        more.setdefault(part.track, []).extend(sung(project, part, voices[part.number]))
    return others, more


def homes_of(project: Project, seed: Mapping[str, Score]) -> dict[str, int]:
    """The number of the part of each voice of the seed: as many parts as voices have one each, if most notes lie
    so; else it is the part of most notes of a voice."""
    at: dict[tuple[int, int], list[int]] = {}  # the numbers of the parts that begin a note
    for part in project.model_parts:
        for note in notes_in(project, part):
            at.setdefault((step(project, note.on), note.pitch), []).append(part.number)
    places = {
        name: [(step(project, note.on), note.pitch) for note in project.in_ticks(line)] for name, line in seed.items()
    }
    counts = {name: Counter(number for place in mine for number in at.get(place, ())) for name, mine in places.items()}
    numbers = sorted({number for place in at.values() for number in place})
    if len(numbers) == len(seed):
        ways = [dict(zip(seed, each, strict=True)) for each in permutations(numbers)]
        shared = [sum(counts[name][number] for name, number in way.items()) for way in ways]
        if 2 * max(shared) > sum(map(len, places.values())):
            return ways[shared.index(max(shared))]
    most = {name: max(count, key=count.__getitem__) for name, count in counts.items() if count}
    return {name: number for name, number in most.items() if 2 * counts[name][number] > len(places[name])}


def notes_in(project: Project, part: Part) -> list[Note]:
    return [note for note in project.notes[part.track] if note.channel == part.channel]


def step(project: Project, tick: int) -> int:
    """The nearest sixteenth."""
    return round(tick * STEPS_PER_QUARTER / project.clock.ticks_per_quarter)


def sung(project: Project, part: Part, voices: Iterable[Score]) -> list[Event]:
    """The events of new voices in a part, as loud as its last notes. A note ends where its key is struck again; of two
    that begin together the longer one stays."""
    before = [note.velocity for note in notes_in(project, part)]
    loud = round(median(before[-NEAR:]))
    new: list[Note] = []
    for note in sorted((n for voice in voices for n in project.in_ticks(voice)), key=lambda n: (n.pitch, n.on, -n.off)):
        if new and new[-1].pitch == note.pitch and note.on < new[-1].off:
            if note.on == new[-1].on:
                continue
            new[-1] = new[-1]._replace(off=note.on)
        new.append(note._replace(velocity=loud, channel=part.channel))
    return [*events_of(new, part.channel)]
