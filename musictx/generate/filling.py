"""Fills gaps by the settings of `musictx generate`, for the command and for `musictx.load`."""

from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from musictx.config.use import GenerateConfig
from musictx.errors import BundleError, ConfigError, TokenError, UserError
from musictx.model.bundle import BundleHeader
from musictx.model.protocol import LanguageModel
from musictx.model.shipped import seed_path
from musictx.music.score import Meter, Score
from musictx.playing.continuing import draw, plan
from musictx.playing.result import Music
from musictx.playing.seeds import Seed, fit_range, fit_voices, read_seed
from musictx.sampling.gap import Gap, check_gaps, cut_gap, join_with_gap
from musictx.sampling.primer import Primer
from musictx.sampling.settings import Length, Settings
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.gap import knows_gaps

OF_SEEDS = ("seed_midi", "seed_seconds", "seed_bars", "seed_notes", "seed_from", "include_seed", "draws", "rank")
LENGTHS = ("length_seconds", "length_bars", "length_notes", "length_tokens")
BORDERS = ("from_s", "to_s", "from_bar", "to_bar")
DEFAULT = {field.name: field.default for field in fields(GenerateConfig)}


class Around(NamedTuple):
    """A gap to fill, the name that its fills begin with, and its files."""

    name: str
    gap: Gap
    file: Path | None = None
    after: Path | None = None  # the second file of `between=`


def sides(config: GenerateConfig) -> list[Path]:
    """The file of `infill=`, or the two of `between=`. Raises ConfigError, MidiError."""
    if config.infill is not None:
        return [seed_path(config.infill)]
    assert config.between is not None
    words = config.between.split(",")
    splits = [(",".join(words[:k]), ",".join(words[k:])) for k in range(1, len(words))]
    if not all(name.strip() for name in words) or not splits:
        raise ConfigError(
            f"⟨between⟩={config.between}: give two files with a comma between them, as in ⟨between⟩=a.mid,b.mid"
        )
    there = [pair for pair in splits if all(Path(name).exists() for name in pair)]  # a name may contain commas
    return [seed_path(name.strip()) for name in (there or splits)[0]]


def plan_fill(config: GenerateConfig) -> Settings:
    """Checks every setting that needs neither music nor model. Raises ConfigError."""
    what, way = ("infill", "⟨fill⟩") if config.infill is not None else ("between", "⟨fill_between⟩")
    given = [name for name in DEFAULT if getattr(config, name) != DEFAULT[name]]
    if config.infill is not None and config.between is not None:
        raise ConfigError("⟨infill⟩= and ⟨between⟩= are both given: fill a gap inside one piece, or one between two")
    refused = (*OF_SEEDS, *(LENGTHS if what == "infill" else BORDERS), *LENGTHS[2:])
    for name in given:
        if name in refused:
            raise ConfigError(f"⟨{name}⟩={getattr(config, name)} does not go with {way}: leave it out")
    if what == "infill":
        seconds, bars = ([getattr(config, name) for name in names] for names in (BORDERS[:2], BORDERS[2:]))
        if (None in seconds) == (None in bars) or [None, None] not in (seconds, bars):
            raise ConfigError("⟨fill⟩ needs a region: give ⟨from_s⟩= and ⟨to_s⟩=, or ⟨from_bar⟩= and ⟨to_bar⟩=")
    settings = plan(config)
    check_gaps(settings)
    return settings


def refuse_gaps(config: GenerateConfig) -> None:
    """Raises ConfigError for settings that only fills take."""
    for name in ("infill", "between", *BORDERS[1:]):
        if getattr(config, name) is not None:
            raise ConfigError(f"⟨{name}⟩=…: music is filled with ⟨fill⟩ and ⟨fill_between⟩, and continued here")


def read_around(files: list[Path], tokenizer: Tokenizer, config: GenerateConfig) -> Around:
    """The gap of one MIDI file, or between two. Raises UserError, which names the file."""
    seeds = [read_seed(file, tokenizer, drums=config.drums, out_of_range=config.out_of_range) for file in files]
    if len(files) == 1:
        return around(seeds[0], files[0], tokenizer, config, files[0])
    return between(seeds[0], seeds[1], files, tokenizer, config)


def around(
    seed: Seed, source: object, tokenizer: Tokenizer, config: GenerateConfig, file: Path | None = None
) -> Around:
    """The gap that the settings name in a piece. Raises UserError, which names the source."""
    from_s, to_s = borders_s(seed, source, config)
    heard = heard_as(seed, source, tokenizer, config)
    try:
        gap = cut_gap(seed.score, heard, from_s, to_s, seed.meter, tokenizer)
    except (ConfigError, TokenError) as error:
        raise type(error)(f"{source}: {error}") from None
    return Around(file.stem if file is not None else "filled", gap, file)


def between(a: Seed, b: Seed, files: list[Path], tokenizer: Tokenizer, config: GenerateConfig) -> Around:
    """The gap between two pieces. Raises UserError."""
    heard_a, heard_b = (heard_as(seed, file, tokenizer, config) for seed, file in zip((a, b), files, strict=True))
    bar_s = replace(a.meter, quarter_s=a.score.quarter_s).bar_s
    seconds = Length(config.length_seconds, config.length_bars).in_seconds(bar_s)
    assert seconds is not None
    gap = join_with_gap((a.score, heard_a), (b.score, heard_b), seconds, a.meter, tokenizer)
    return Around("-to-".join(file.stem for file in files), gap, *files)


def heard_as(seed: Seed, source: object, tokenizer: Tokenizer, config: GenerateConfig) -> Score:
    """A piece as the model can hear it. Raises TokenError, which names the source."""
    primer = Primer(fit_range(seed.score, tokenizer, source, config.out_of_range), seed.score.duration_s, seed.meter)
    return fit_voices(primer, tokenizer, source, config.out_of_range).score


def borders_s(seed: Seed, source: object, config: GenerateConfig) -> tuple[float, float]:
    """The region in seconds. Bars count from 1, and the last is included. Raises ConfigError."""
    if config.from_s is not None and config.to_s is not None:
        return config.from_s, config.to_s
    first, last = config.from_bar or 0, config.to_bar or 0
    lines = seed.meter.bars_s(seed.score.duration_s)
    if not 1 <= first <= last < len(lines):
        raise ConfigError(
            f"{source}: ⟨from_bar⟩={first} ⟨to_bar⟩={last}: it has bars 1 to {len(lines) - 1}; give the "
            "first and the last bar to write anew"
        )
    return float(lines[first - 1]), float(lines[last])


def check_fills(bundle: object, tokenizer: Tokenizer) -> None:
    """Raises BundleError for a model that never learnt to fill gaps."""
    if not knows_gaps(tokenizer.vocab):
        raise BundleError(
            f"{bundle} never learnt to fill a gap: give a bundle that was trained with ⟨objective⟩=infill, or continue "
            "music with ⟨continue_midi⟩"
        )


def hears(header: BundleHeader | None, model: LanguageModel) -> int | None:
    """How many tokens a model learnt to fill with, both sides and the gap together; None where its memory has no
    limit."""
    learnt: int | None = header.objective.get("length") if header is not None else None
    return learnt or model.window


def fill_all(
    filled: Around, model: LanguageModel, tokenizer: Tokenizer, header: BundleHeader | None, config: GenerateConfig
) -> list[Music]:
    """Fills the gap as often as asked. Raises UserError when memory runs out."""
    settings = plan_fill(config)
    window = settings.window or hears(header, model)
    own = header.sampling if header is not None else {}
    settings = settings._replace(length=Length(seconds=filled.gap.seconds), window=window, own=own)
    drawn = draw([filled.gap], model, tokenizer, settings, config)[0]
    return [
        Music(
            f"{filled.name}-{k}",
            each.score,
            each.new_from_s,
            each.stopped,
            each.mean_log_p,
            each.unheard,
            filled.gap.meter.signature,
            filled.file,
            each.is_new,
            each.new_to_s,
            filled.after,
        )
        for k, each in enumerate(drawn, 1)
    ]


def seed_of(score: Score) -> Seed:
    """A score in four beats a bar. Raises UserError for one without notes."""
    if not len(score):
        raise UserError("the score has no notes: give one with music in it")
    return Seed(score, Meter(score.quarter_s))
