"""Music that a model of scores draws, for `score_measures.py`: bars after a seed, bars in a gap, hands below a tune.

Continuations are measured in written files, read again; all else in the notes of the score. No figure is of ids.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from alive import STILL_S, waits_s
from alive_measures import Setting, measure, on_grid
from alive_midi import between
from score_nats import WINDOW, Row, after_gap, stream
from score_works import SEED, UNIT_S, Work, bars_of, goes_on

from musictx.analysis.repeats import CorpusIndex
from musictx.errors import BundleError, UserError
from musictx.generate.continuing import continue_all, read_beginning
from musictx.generate.open_player import Playing, open_playing
from musictx.generate.primer import Part
from musictx.generate.requests import Continue, Fill, Length, Own, Request
from musictx.generate.result import Music
from musictx.generate.score_music import ScoreMusic, new_parts
from musictx.generate.score_tasks import Task, task_of
from musictx.generate.score_templates import more_bars
from musictx.generate.scores import draw_parts
from musictx.model.steps import Player
from musictx.music.beat_grid import BeatGrid, find_grid
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Note
from musictx.music.read import read_tracks
from musictx.music.score import UNITS, Score
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, TUNE

ENDED = "whole, ending heard"
FINE = BeatGrid("twenty-fourths", tuple(range(UNITS)))


class ScoreModel(NamedTuple):
    """A bundle of scores, as commands open it."""

    player: Player
    tokenizer: ScoreTokenizer
    own: Own

    @classmethod
    def open(cls, path: Path) -> "ScoreModel":
        """Raises BundleError for a bundle of other tokens."""
        opened = open_playing(path)
        if not isinstance(opened.tokenizer, ScoreTokenizer):
            raise BundleError(f"{path} is no model of scores", "give --bundle")
        return cls(opened.player, opened.tokenizer, opened.header.sampling)

    def task(self, file: Path, request: Request) -> Task:
        return task_of(file, self.tokenizer, request)

    def draw(self, task: Task) -> ScoreMusic:
        return task.draw(self.player, self.tokenizer, own=self.own)[0]


def continued(work: Work, score: ScoreModel, piano: Playing, folder: Path) -> dict[str, Row]:
    """The bars after a seed: those of each model, the composers' own, and the bars of the seed once more."""
    seed, whole = (work.cut(0, work.upbeat + bars) for bars in (SEED, 2 * SEED))
    from_s, to_s = seed.notation.end * UNIT_S, whole.notation.end * UNIT_S
    file = seed.write(folder / "seeds" / work.file_name)
    tracks = read_tracks(file.read_bytes(), file)
    heard, meter = tracks.merge(), tracks.meter()
    setting = Setting(meter, find_grid(heard, meter), from_s, to_s)
    at_line = Part(until_s=heard.duration_s, start="bar")  # also where the seed seems to end a piece
    request = Continue(length=Length(seconds=to_s - from_s), part=at_line)
    beginning = read_beginning(file, piano.tokenizer, request)
    drawn: dict[str, Music] = {"score": score.draw(score.task(file, Continue(length=Length(bars=SEED))))}
    drawn["piano"] = continue_all([beginning], piano.player, piano.tokenizer, request, own=piano.header.sampling)[0][0]
    written = {"composers": whole.write(folder / "composers" / work.file_name)}
    for name, music in drawn.items():
        music.write(place := folder / name / work.file_name)
        written[name] = place
    found = dict[str, Row]()
    for name, place in written.items():
        new = between(read_tracks(place.read_bytes(), place).merge(), from_s, to_s)
        found[name] = figures(heard, new, setting)
    again = between(heard, 2 * from_s - to_s, from_s)
    later = [at_s + to_s - from_s for at_s in (again.onset_s, again.offset_s)]
    found["seed again"] = figures(heard, replace(again, onset_s=later[0], offset_s=later[1]), setting)
    return found


def figures(seed: Score, new: Score, setting: Setting) -> Row:
    row = measure(seed, new, setting)
    return {
        "on twenty-fourths": on_grid(new, setting._replace(grid=FINE)),
        "on the seed's grid": row["on grid"],
        "in the seed's key": row["in key"],
        "density over the seed's": row["density"],
        "polyphony over the seed's": row["polyphony"],
        "looped": row["looped"],
        "longest copy of the seed": CorpusIndex([seed]).longest_copy(new).notes,
    }


def has_gap(work: Work) -> bool:
    """Whether it has bars for a gap of two, and for what is heard around it; the nats after it need one window."""
    gap = work.upbeat + SEED
    if not goes_on(work) or not all(work.sounds(bar) for bar in range(gap - 1, gap + 3)):
        return False
    heard = work.cut(0, gap + 3)
    return len(stream(heard.notation, heard.slots, TUNE)[0]) <= WINDOW


def filled(work: Work, count: int, score: ScoreModel, model: Any, folder: Path) -> dict[str, Row]:
    """A gap of so many bars: the composers' own, a fill, bars drawn without what comes after, and silence."""
    gap = work.upbeat + SEED
    file = work.cut(0, gap + SEED).write(folder / "whole" / work.file_name)
    task = score.task(file, Fill(from_bar=SEED + 1, to_bar=SEED + count))
    seed, template, music = task.seed, task.template, score.draw(task)
    music.write(folder / "filled" / work.file_name)
    alone = more_bars(bars_of(seed.notation, 0, gap), seed.slots, count)
    drawn = draw_parts(alone, score.player, score.tokenizer, Continue(), own=score.own)[0].notes
    new = new_parts(template, {slot: tuple(notes) for slot, notes in drawn.items()})
    both = zip(template.notation.parts, new, strict=True)
    parts = tuple(replace(part, notes=tuple(sorted((*part.notes, *more.notes)))) for part, more in both)
    ways = {"composers": seed.notation, "fill": music.notation}
    ways |= {"continued": replace(template.notation, parts=parts), "silence": template.notation}
    return {
        name: leaps(each, seed.slots, *template.span) | after_gap(model, each, seed.slots, gap + count)
        for name, each in ways.items()
    }


def leaps(notation: Notation, slots: Sequence[int | None], begin: int, end: int) -> Row:
    """Semitones from a part's last note before a gap to its first one within, and from its last to the next; across the
    gap for a part that is silent there. Of the notes of one onset the highest counts, in the left hand the lowest."""
    steps, silent = list[int](), 0
    for part, slot in zip(notation.parts, slots, strict=True):
        line = dict[int, int]()  # the pitch of each onset
        for note in sorted(part.notes, key=lambda note: note.pitch, reverse=slot == LEFT):
            line[note.onset] = note.pitch
        before, after = [at for at in line if at < begin], [at for at in line if at >= end]
        within = [at for at in line if begin <= at < end]
        if before and after:
            path = [max(before), *([min(within), max(within)] if within else []), min(after)]
            leaps = [abs(line[b] - line[a]) for a, b in pairwise(path)]
            steps += leaps[:: max(len(leaps) - 1, 1)]  # not that from the first to the last note within
            silent += not within
    return {"semitones": sum(steps), "leaps": len(steps), "silent parts": silent}


def touched(work: Work, score: ScoreModel, folder: Path) -> dict[str, Row]:
    """What a person meets first: a whole file, its first and its last bars, continued by the defaults; and the whole
    file with its ending heard."""
    bars = len(work.notation.bars)
    forms = {"whole": work, "first bars": work.cut(0, work.upbeat + SEED), "last bars": work.cut(bars - SEED, bars)}
    forms[ENDED] = work
    found = dict[str, Row]()
    for form, part in forms.items():
        file = part.write(folder / form.replace(" ", "-") / work.file_name)
        try:
            task = score.task(file, Continue())
            template = replace(task.template, closing=0) if form == ENDED else task.template
            music = score.draw(task._replace(template=template))
        except UserError as error:
            found[form] = {"refused": str(error)}
            continue
        music.write(folder / f"{form.replace(' ', '-')}-continued" / work.file_name)
        found[form] = touch(music)
    return found


def touch(music: ScoreMusic) -> Row:
    """Whether music came, stood still where its seed does not, or began with the seed's last bar once more; how many
    bars of the seed are the bar before once more; and notes a unit of time beside the seed's."""
    begin, end = music.template.span
    length_s = (end - begin) * UNIT_S
    new = music.score.clip(music.new_from_s, music.new_from_s + length_s)
    own = waits_s(music.score.clip(0.0, music.new_from_s), music.new_from_s)[1:-1]
    wait_s = float(waits_s(new, length_s).max())
    at = min(bar for _, bar in music.template.free)
    bars = [notes_of(music.notation, n) for n in range(at + 1)]
    again = [bool(b) and a == b for a, b in pairwise(bars)]
    return {
        "notes": len(new),
        "first note at": float(new.onset_s[0]) if len(new) else None,
        "stuck": bool(wait_s > STILL_S >= own.max(initial=0.0)),
        "last bar again": again[-1],
        "seed's bars again": [sum(again[:-1]), len(again) - 1],
        "stopped": music.stopped,
        "pace": len(new) / length_s / (len(music.score.clip(0.0, music.new_from_s)) / music.new_from_s),
    }


def notes_of(notation: Notation, bar: int) -> frozenset[tuple[int, Note]]:
    """The notes that begin in a bar, each with its part and its place there."""
    begin, end = notation.spans[bar][0].onset, notation.spans[bar][1]
    notes = [(n, note) for n, part in enumerate(notation.parts) for note in part.notes]
    return frozenset((n, x._replace(onset=x.onset - begin)) for n, x in notes if begin <= x.onset < end)
