"""The gap of a `Fill`: in a piece, or between two."""

from collections.abc import Callable
from pathlib import Path

from musictx.errors import BundleError, ConfigError, TokenError
from musictx.files import stem_of
from musictx.generate.continuing import Beginning
from musictx.generate.gap import Gap, cut_gap, join_with_gap
from musictx.generate.primer import ANY_MOMENT, borders_s, grid_of, say_grid
from musictx.generate.requests import Continue, Fill, Length
from musictx.generate.seeds import Seed, fit_drums, fit_range, fit_voices, read_seed
from musictx.model.header import BundleHeader
from musictx.model.packaged import seed_path
from musictx.model.steps import Player
from musictx.music.score import Meter, Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.gap import knows_gaps
from musictx.tokenizers.rules import AUTO


def read_around(files: list[Path], tokenizer: Tokenizer, request: Fill) -> Beginning:
    """Reads the gap of one MIDI file, or between two. Raises UserError, which names the file."""
    seeds = [
        read_seed(file, tokenizer, request.drums, request.only, joins=n + 1 < len(files))
        for n, file in enumerate(files)
    ]
    if len(files) == 1:
        return gap_in_piece(seeds[0], files[0], tokenizer, request, files[0])
    remarks = [remark for seed in seeds for remark in seed.remarks]
    audible = [fit_model(seed, file, tokenizer, remarks.append) for seed, file in zip(seeds, files, strict=True)]
    (a, meter, project, _), (b, _, second, _) = seeds
    grid = grid_of(request.rules, a, meter, tokenizer)
    if grid is not None and request.rules.grid == AUTO:
        remarks.append(f"{files[0]}: {say_grid(grid)}; {ANY_MOMENT}")
    seconds = request.length.in_seconds(meter, a.duration_s)
    assert seconds is not None
    gap = join_with_gap((a, audible[0]), (b, audible[1]), seconds, meter, tokenizer, grid)
    late = sum(note.off > project.tick(gap.to_s) for notes in project.notes for note in notes) if project else 0
    if late:
        remarks.append(
            f"{files[0]}: {late} of its notes, which are not heard, reach into {files[1]}: left out or cut short"
        )
    say_control(request, files[0], gap, tokenizer, remarks.append)
    name = "-to-".join(stem_of(file) for file in files)
    return Beginning(name, gap, files[0], files[1], project, second, tuple(remarks))


def gap_of(midi: str | Path | Score, tokenizer: Tokenizer, request: Fill) -> Beginning:
    """The gap of a request in a MIDI file or a score. Raises UserError, which names the source."""
    if isinstance(midi, Score):
        if request.only is not None:
            raise ConfigError("part", got=request.only, why="only a file has parts", allowed="None")
        remarks = list[str]()
        score = fit_drums(midi, tokenizer, request.drums, "the score", remarks.append)
        return gap_in_piece(Seed(score, Meter(midi.quarter_s), None, tuple(remarks)), "the score", tokenizer, request)
    if not isinstance(midi, str | Path):
        raise ConfigError("infill", got=midi, allowed="a MIDI file or a Score")
    return read_around([seed_path(str(midi))], tokenizer, request)


def gap_between(a: object, b: object, tokenizer: Tokenizer, request: Fill) -> Beginning:
    """The gap of a request between two MIDI files. Raises UserError, which names the file."""
    files = list[Path]()
    for midi in (a, b):
        if not isinstance(midi, str | Path):
            raise ConfigError("between", got=type(midi).__name__, allowed="two MIDI files; write a score to one")
        files.append(seed_path(str(midi)))
    return read_around(files, tokenizer, request)


def gap_in_piece(
    seed: Seed, source: object, tokenizer: Tokenizer, request: Fill, file: Path | None = None
) -> Beginning:
    """The gap of a request in one piece. Raises UserError, which names the source."""
    if request.from_s is not None and request.to_s is not None:
        from_s, to_s = request.from_s, request.to_s
    else:
        from_s, to_s = borders_s(request.from_bar or 0, request.to_bar or 0, seed.score, seed.meter, source)
    remarks = [*seed.remarks]
    audible = fit_model(seed, source, tokenizer, remarks.append)
    try:
        gap = cut_gap(seed.score, audible, from_s, to_s, seed.meter, tokenizer)
        grid = grid_of(request.rules, seed.score, seed.meter, tokenizer)
    except (ConfigError, TokenError) as error:
        if isinstance(error, ConfigError) and error.field == "to_s" and request.to_bar is not None:
            error = ConfigError(
                "to_bar", got=request.to_bar, why=error.why, allowed="an earlier one, or continue the music"
            )
        raise error.of(source) from None
    if grid is not None:
        gap = gap._replace(from_s=from_s, to_s=to_s, grid=grid)  # a bar line may lie between two steps of the clock
        if request.rules.grid == AUTO:
            remarks.append(f"{source}: {say_grid(grid)}; {ANY_MOMENT}")
    say_control(request, source, gap, tokenizer, remarks.append)
    name = stem_of(file) if file is not None else "filled"
    return Beginning(name, gap, file, project=seed.project, remarks=tuple(remarks))


def say_control(request: Fill, source: object, gap: Gap, tokenizer: Tokenizer, say: Callable[[str], None]) -> None:
    quarter_s = gap.notes.quarter_s
    before = tokenizer.decode(gap.before, quarter_s)
    request.control.say(source, before, gap.meter, tokenizer.seconds(gap.before, quarter_s), say)


def fit_model(seed: Seed, source: object, tokenizer: Tokenizer, say: Callable[[str], None]) -> Score:
    """The notes of a piece that the model has; says which others are left out."""
    return fit_voices(fit_range(seed.score, tokenizer, source, say), tokenizer, source, say)


def check_fills(bundle: object, tokenizer: Tokenizer) -> None:
    """Raises BundleError for a model that was not trained to fill gaps."""
    if not knows_gaps(tokenizer.vocab):
        raise BundleError(
            f"{bundle} was not trained to fill a gap", "give a bundle that was trained with objective=infill"
        )


def fill_window(header: BundleHeader | None, player: Player) -> int | None:
    """The most tokens of both sides and the gap together; None for no limit."""
    length: int | None = header.objective.get("length") if header is not None else None
    return length or player.window


def as_continue(beginning: Beginning, request: Fill, player: Player, header: BundleHeader | None) -> Continue:
    """The request that draws the notes of a gap."""
    assert isinstance(beginning.primer, Gap)
    return request.drawing(Length(seconds=beginning.primer.seconds), fill_window(header, player))
