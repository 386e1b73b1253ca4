"""Continuations of files and scores, as a `Continue` asks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from musictx.errors import ConfigError, TokenError, UserError
from musictx.files import stem_of
from musictx.generate.draw import Drawing
from musictx.generate.engine import enough_memory
from musictx.generate.gap import Gap, step_s
from musictx.generate.primer import ANY_MOMENT, Primer, bar_numbers, choose_primer, grid_of, say_grid
from musictx.generate.requests import UNSAID, Continue, Own
from musictx.generate.result import Music, Place
from musictx.generate.seed_files import find_seeds, named_apart
from musictx.generate.seeds import Seed, fit_drums, fit_range, fit_voices, read_seed
from musictx.model.steps import Player
from musictx.music.project import Project
from musictx.music.score import Meter, Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.rules import AUTO

INTERRUPTED = "interrupted"


class Beginning(NamedTuple):
    """A primer or a gap, and the name of its music."""

    name: str
    primer: Primer | Gap | None = None  # None: new music from nothing
    file: Path | None = None
    after: Path | None = None  # the second file, for a gap between two
    project: Project | None = None  # the file, into which new notes go
    second: Project | None = None  # and the second one
    remarks: tuple[str, ...] = ()  # on the file


def refuse_part(request: Continue) -> None:
    """Raises ConfigError for a part of a seed where there is no seed."""
    part = request.part
    amounts = {"from_s": part.until_s, "seed_seconds": part.seconds, "seed_bars": part.bars}
    for name, value in amounts.items():
        if value is not None:
            raise ConfigError(name, got=value, why="it is a part of a seed, and there is none", allowed="a seed")


def read_beginning(file: Path, tokenizer: Tokenizer, request: Continue) -> Beginning:
    """Reads the primer of a MIDI file. Raises UserError, which names the file."""
    seed = read_seed(file, tokenizer, request.drums, request.only, goes_on=True)
    remarks = [*seed.remarks]
    primer = take_primer(seed, file, tokenizer, request, remarks.append)
    return Beginning(stem_of(file), primer, file, project=seed.project, remarks=tuple(remarks))


def beginnings_of(seed: object, tokenizer: Tokenizer, request: Continue) -> list[Beginning]:
    """The primer of a score, or of each file of `seed_midi=`; None begins from nothing. Raises UserError."""
    if not isinstance(seed, str | Path) and request.only is not None:
        raise ConfigError("part", got=request.only, why="only a file has parts", allowed="None")
    if seed is None:
        refuse_part(request)
        return [Beginning("new")]
    if isinstance(seed, Score):
        return [begin_with(seed, tokenizer, request)]
    if isinstance(seed, str | Path):
        return [read_beginning(file, tokenizer, request) for file in named_apart(find_seeds(str(seed)))]
    raise ConfigError("seed_midi", got=seed, allowed="a MIDI file, a Score, or None")


def begin_with(score: Score, tokenizer: Tokenizer, request: Continue) -> Beginning:
    """The primer of a score in four beats a bar. Raises UserError."""
    source, remarks = "the seed", list[str]()
    score = fit_drums(score, tokenizer, request.drums, source, remarks.append)
    seed = Seed(fit_range(score, tokenizer, source, remarks.append), Meter(score.quarter_s))
    primer = take_primer(seed, source, tokenizer, request, remarks.append)
    return Beginning("seed", primer, remarks=tuple(remarks))


def take_primer(
    seed: Seed, source: object, tokenizer: Tokenizer, request: Continue, say: Callable[[str], None]
) -> Primer:
    """The requested part of a seed, without notes that the model lacks. Raises UserError, which names the source."""
    try:
        grid = grid_of(request.rules, seed.score, seed.meter, tokenizer)
        primer = choose_primer(seed.score, seed.meter, replace(request.part, on_beat=tokenizer.voices > 0), grid)
    except UserError as error:
        raise error.of(source) from None
    for remark in request.part.beyond(len(bar_numbers(seed.score, seed.meter)), seed.score.duration_s):
        say(f"{source}: {remark}")
    if grid is not None and request.rules.grid == AUTO:
        say(f"{source}: {say_grid(grid)}; {ANY_MOMENT}")
    if primer.left_out_s is not None:
        say(
            f"{source}: a finished piece: new music takes the place of its ending, from {primer.left_out_s:.2f} s on; "
            f"from_s={seed.score.duration_s:.2f} continues after it"
        )
    primer = primer._replace(score=fit_voices(primer.score, tokenizer, source, say))
    try:
        ids = tokenizer.encode(primer.score)
    except TokenError as error:
        raise error.of(source) from None
    request.control.say(source, tokenizer.decode(ids, primer.score.quarter_s), primer.meter, primer.end_s, say)
    return primer


def continue_all(
    beginnings: Sequence[Beginning],
    player: Player,
    tokenizer: Tokenizer,
    request: Continue,
    *,
    own: Own = UNSAID,
) -> list[list[Music]]:
    """The music of every beginning; `own` are the bundle's settings where the sampling says auto.

    Ctrl-C ends it early, with INTERRUPTED in `stopped`. Raises UserError when memory runs out."""
    primers = [beginning.primer for beginning in beginnings]
    drawing = Drawing(primers, player, tokenizer, request, own=own)
    remarks = [beginning.remarks for beginning in beginnings]
    for n, bare in enumerate(drawing.bare):
        if bare is drawing.prompts[n].context:
            remarks[n] += (f"{beginnings[n].name}: too short for seed guidance, which does nothing here",)
    rows = max(min(drawing.request.rows_at_once, len(drawing.variations) * drawing.each), drawing.each)
    try:
        with enough_memory(rows, "give Continue.window=512 tokens to look back, or fewer", drawing.each):
            drawing.draw_all()
    except KeyboardInterrupt:
        drawing.stop(INTERRUPTED)
        if not drawing.takes:
            raise
    results = []
    for (name, primer, file, after, project, second, _), lines, prompt, begin_s, continuations in zip(
        beginnings, remarks, drawing.prompts, drawing.begins_s, drawing.continuations(), strict=True
    ):
        place, meter = None, primer.meter if primer is not None else None
        if project is not None and isinstance(primer, Gap):
            place = Place(project, step_s=step_s(tokenizer, prompt.quarter_s), second=second)
        elif project is not None and isinstance(primer, Primer):
            later_s = primer.start_s + (0.0 if request.include_seed else begin_s)
            place = Place(project, later_s, seed=request.include_seed)
        if meter is not None and not request.include_seed and isinstance(primer, Primer):
            meter = meter.part(begin_s, begin_s)
        fields: dict[str, Any] = {
            "signature": meter.signature if meter is not None else None,
            "meter": meter,
            "seed": file,
            "after": after,
            "place": place,
            "remarks": lines,
        }
        results.append([Music(**vars(each), name=f"{name}-{k}", **fields) for k, each in enumerate(continuations, 1)])
    return results


def is_interrupted(results: Sequence[Sequence[Music]], variations: int) -> bool:
    """Whether Ctrl-C ended the drawing."""
    reasons = {music.stopped for each in results for music in each}
    return INTERRUPTED in reasons or any(len(each) < variations for each in results)
