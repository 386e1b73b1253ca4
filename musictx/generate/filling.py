"""Fills gaps as a `Fill` asks: a region of a piece, or what comes between two."""

from pathlib import Path
from typing import Any, NamedTuple

from musictx.errors import BundleError, ConfigError, TokenError
from musictx.generate.continuing import draw_all
from musictx.generate.draw import Drawing
from musictx.generate.gap import Gap, cut_gap, join_with_gap
from musictx.generate.primer import Primer, borders_s
from musictx.generate.requests import Fill, Length
from musictx.generate.result import Music
from musictx.generate.seeds import Seed, fit_range, fit_voices, read_seed
from musictx.model.bundle import BundleHeader
from musictx.model.protocol import LanguageModel
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.gap import knows_gaps


class Around(NamedTuple):
    """A gap to fill, the name that its fills begin with, and its files."""

    name: str
    gap: Gap
    file: Path | None = None
    after: Path | None = None  # the second of two files


def read_around(files: list[Path], tokenizer: Tokenizer, request: Fill) -> Around:
    """The gap of one MIDI file, or between two. Raises UserError, which names the file."""
    seeds = [read_seed(file, tokenizer, drums=request.drums, out_of_range=request.out_of_range) for file in files]
    if len(files) == 1:
        return around(seeds[0], files[0], tokenizer, request, files[0])
    heard = [heard_as(seed, file, tokenizer, request) for seed, file in zip(seeds, files, strict=True)]
    (a, meter), (b, _) = seeds
    seconds = request.length.in_seconds(meter.bar_s)
    assert seconds is not None
    gap = join_with_gap((a, heard[0]), (b, heard[1]), seconds, meter, tokenizer)
    say_control(request, files[0], gap, tokenizer)
    return Around("-to-".join(file.stem for file in files), gap, *files)


def around(seed: Seed, source: object, tokenizer: Tokenizer, request: Fill, file: Path | None = None) -> Around:
    """The gap that a request names in a piece. Raises UserError, which names the source."""
    if request.from_s is not None and request.to_s is not None:
        from_s, to_s = request.from_s, request.to_s
    else:
        from_s, to_s = borders_s(request.from_bar or 0, request.to_bar or 0, *seed, source)
    heard = heard_as(seed, source, tokenizer, request)
    try:
        gap = cut_gap(seed.score, heard, from_s, to_s, seed.meter, tokenizer)
    except (ConfigError, TokenError) as error:
        raise error.of(source) from None
    say_control(request, source, gap, tokenizer)
    return Around(file.stem if file is not None else "filled", gap, file)


def say_control(request: Fill, source: object, gap: Gap, tokenizer: Tokenizer) -> None:
    """Prints what the request leaves to the music before the gap."""
    quarter_s = gap.given.quarter_s
    before = tokenizer.decode(gap.before, quarter_s)
    request.control.say(source, before, gap.meter, tokenizer.seconds(gap.before, quarter_s))


def heard_as(seed: Seed, source: object, tokenizer: Tokenizer, request: Fill) -> Score:
    """A piece as the model can hear it. Raises TokenError, which names the source."""
    primer = Primer(fit_range(seed.score, tokenizer, source, request.out_of_range), seed.score.duration_s, seed.meter)
    return fit_voices(primer, tokenizer, source, request.out_of_range).score


def check_fills(bundle: object, tokenizer: Tokenizer) -> None:
    """Raises BundleError for a model that was not trained to fill gaps."""
    if not knows_gaps(tokenizer.vocab):
        raise BundleError(
            f"{bundle} was not trained to fill a gap", "give a bundle that was trained with objective=infill"
        )


def hears(header: BundleHeader | None, model: LanguageModel) -> int | None:
    """How many tokens a model was trained to fill with, both sides and the gap together; None where its memory has no
    limit."""
    trained: int | None = header.objective.get("length") if header is not None else None
    return trained or model.window


def fill_all(
    filled: Around,
    model: LanguageModel,
    tokenizer: Tokenizer,
    header: BundleHeader | None,
    request: Fill,
    device: str = "cpu",
) -> list[Music]:
    """Fills the gap as often as asked; Ctrl-C as in `continue_all`. Raises UserError when memory runs out."""
    gap, own = filled.gap, header.sampling if header is not None else {}
    asked = request.drawing(Length(seconds=gap.seconds), hears(header, model))
    (made,) = draw_all(Drawing([gap], model, tokenizer, asked, device=device, own=own))
    known: dict[str, Any] = {"signature": gap.meter.signature, "seed": filled.file, "after": filled.after}
    return [Music(**vars(each), name=f"{filled.name}-{k}", **known) for k, each in enumerate(made, 1)]
