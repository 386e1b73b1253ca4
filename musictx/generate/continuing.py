"""Continues seeds by the settings of `musictx generate`, for the command and for `musictx.load`."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from musictx.analysis.motif import held_in
from musictx.analysis.ranking import Ranking, best_first, check_rank, rankings
from musictx.config.use import GenerateConfig
from musictx.errors import ConfigError, TokenError, UserError, is_out_of_memory
from musictx.model.build import Model, can, kind_of
from musictx.model.protocol import LanguageModel
from musictx.model.static_steps import StaticSteps
from musictx.model.weights import AUTO, WEIGHTS, check_weights, choose_weights, for_steps
from musictx.music.score import Meter, Score
from musictx.playing.result import Music
from musictx.playing.seeds import RANGES, Seed, fit_range, fit_voices, read_seed
from musictx.sampling.gap import Gap
from musictx.sampling.music import Continuation, Drawing, check
from musictx.sampling.primer import Part, Primer, check_part, choose_primer
from musictx.sampling.settings import UNSAID, Length, Own, Settings
from musictx.tokenizers import Tokenizer

INTERRUPTED = "interrupted"


class Beginning(NamedTuple):
    """What a model continues: a primer or nothing, its file, and the name that its continuations begin with."""

    name: str
    primer: Primer | None = None
    file: Path | None = None


def plan(config: GenerateConfig) -> Settings:
    """Checks every setting that needs neither seed nor model. Raises ConfigError."""
    settings = Settings(
        config.sampler,
        Length(config.length_seconds, config.length_bars, config.length_notes, config.length_tokens),
        config.rules,
        config.random_seed,
        config.max_tokens,
        config.window,
        config.include_seed,
        config.forced_ending,
        config.device,
        config.rows_at_once,
    )
    check(settings, config.draws or config.variations)
    check_part(part(config))
    check_rank(config.rank)
    if config.draws is not None and config.draws < config.variations:
        raise ConfigError(
            f"⟨draws⟩={config.draws}: give at least ⟨variations⟩={config.variations}, or null to keep all"
        )
    check_weights(config.weights, (AUTO, *WEIGHTS))
    if config.graph and config.device != "cuda":
        raise ConfigError("⟨graph⟩=true is for ⟨device⟩=cuda: a CPU would gain nothing; leave it out")
    if config.out_of_range not in RANGES:
        raise ConfigError(f"⟨out_of_range⟩={config.out_of_range}: choose one of {', '.join(RANGES)}")
    return settings


def part(config: GenerateConfig, on_beat: bool = False) -> Part:
    """Which part of a seed is the primer."""
    return Part(config.seed_seconds, config.seed_bars, config.seed_notes, config.seed_from, on_beat, config.from_s)


def refuse_part(config: GenerateConfig) -> None:
    """Raises ConfigError for a part of a seed where there is no seed."""
    for name in ("from_s", "seed_seconds", "seed_bars", "seed_notes"):
        if (value := getattr(config, name)) is not None:
            raise ConfigError(f"⟨{name}⟩={value} is a part of a seed, and there is none: give a seed, or leave it out")


def faster(model: Model, config: GenerateConfig) -> LanguageModel:
    """The model prepared for fast single steps, as the settings ask. Raises ConfigError."""
    fast = for_steps(model, choose_weights(config.weights, model))
    if not config.graph:
        return fast
    if not can(fast, "static_steps"):
        raise ConfigError(f"⟨graph⟩=true: ⟨kind⟩={kind_of(fast)} has no steps of one shape; leave it out")
    return StaticSteps(fast)  # type: ignore[arg-type] # its row in build.py says so


def read_beginning(file: Path, tokenizer: Tokenizer, config: GenerateConfig) -> Beginning:
    """The primer of a MIDI file. Raises UserError, which names the file."""
    seed = read_seed(file, tokenizer, drums=config.drums, out_of_range=config.out_of_range)
    return Beginning(file.stem, take_primer(seed, file, tokenizer, config), file)


def begin_with(score: Score, tokenizer: Tokenizer, config: GenerateConfig) -> Beginning:
    """The primer of a score, in four beats a bar of its own tempo. Raises UserError."""
    if not len(score):
        raise UserError("the seed has no notes: give one with music in it, or None to begin from nothing")
    seed = Seed(fit_range(score, tokenizer, "the seed", config.out_of_range), Meter(score.quarter_s))
    return Beginning("seed", take_primer(seed, "the seed", tokenizer, config))


def take_primer(seed: Seed, source: object, tokenizer: Tokenizer, config: GenerateConfig) -> Primer:
    """The part of a seed that was asked for, as the model can hear it. Raises UserError, which names the source."""
    try:
        primer = choose_primer(*seed, part(config, tokenizer.voices > 0))
    except UserError as error:
        raise type(error)(f"{source}: {error}") from None
    if primer.left_out_s is not None:
        print(
            f"{source}: a finished piece: new music takes the place of its ending, from {primer.left_out_s:.2f} s on; "
            f"from_s={seed.score.duration_s:.2f} continues after it"
        )
    primer = fit_voices(primer, tokenizer, source, config.out_of_range)
    try:
        tokenizer.encode(primer.score)
    except TokenError as error:
        raise TokenError(f"{source}: {error}") from None
    return primer


def continue_all(
    beginnings: Sequence[Beginning],
    model: LanguageModel,
    tokenizer: Tokenizer,
    config: GenerateConfig,
    ranking: Ranking | None = None,
    own: Own = UNSAID,
) -> list[list[Music]]:
    """The continuations of every beginning, with the bundle's `own` settings where the sampler's say auto. Raises
    UserError when memory runs out."""
    primers = [beginning.primer for beginning in beginnings]
    kept = best(primers, model, tokenizer, config, ranking, own)
    return [
        [_music(beginning, k, continuation) for k, continuation in enumerate(each, 1)]
        for beginning, each in zip(beginnings, kept, strict=True)
    ]


def best(
    primers: list[Primer | None],
    model: LanguageModel,
    tokenizer: Tokenizer,
    config: GenerateConfig,
    ranking: Ranking | None = None,
    own: Own = UNSAID,
) -> list[list[Continuation]]:
    """The continuations of every primer; with `draws`, only the best by the ranking, best first."""
    drawn = draw(primers, model, tokenizer, plan(config)._replace(own=own), config)
    if config.draws is None:
        return drawn
    asked = [ranking] if ranking else rankings(config.rank, held_in(tokenizer.metrical))
    return [best_first(primer, each, asked)[: config.variations] for primer, each in zip(primers, drawn, strict=True)]


def draw(
    primers: Sequence[Primer | Gap | None],
    model: LanguageModel,
    tokenizer: Tokenizer,
    settings: Settings,
    config: GenerateConfig,
) -> list[list[Continuation]]:
    """Draws every primer's continuations. Ctrl-C ends it early and returns what exists by then. Raises UserError when
    memory runs out."""
    drawing = Drawing(primers, model, tokenizer, settings, config.draws or config.variations)
    try:
        for _ in drawing:
            pass
    except KeyboardInterrupt:
        drawing.stop(INTERRUPTED)
        if not drawing.takes:
            raise
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise less_memory(config, len(primers)) from None
    return drawing.continuations()


def is_interrupted(kept: list[list[Music]], config: GenerateConfig) -> bool:
    """Whether Ctrl-C ended it: some music is shorter than asked, or missing."""
    reasons = {music.stopped for each in kept for music in each}
    return INTERRUPTED in reasons or any(len(each) < config.variations for each in kept)


def less_memory(config: GenerateConfig, n_seeds: int) -> UserError:
    """Says which setting to lower, and to what."""
    rows = min(config.rows_at_once, n_seeds * (config.draws or config.variations))
    if rows > 1:
        return UserError(f"out of memory with {rows} rows drawn together: give ⟨rows_at_once⟩={rows // 2}")
    return UserError("out of memory with a single row: give ⟨window⟩=512 tokens to look back, or fewer")


def _music(beginning: Beginning, k: int, made: Continuation) -> Music:
    signature = beginning.primer.meter.signature if beginning.primer else None
    known = made.new_from_s, made.stopped, made.mean_log_p, made.unheard
    return Music(f"{beginning.name}-{k}", made.score, *known, signature, beginning.file)
