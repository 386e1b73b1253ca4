"""musictx generate: continue seed MIDI files with a bundle's model; `continue_midi` is the same from Python."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from musictx.app import hydra_app
from musictx.choice import name_bundle
from musictx.config.use import GenerateConfig
from musictx.device import check_device
from musictx.errors import ConfigError, TokenError, UserError, is_out_of_memory
from musictx.model.build import Model, describe_model
from musictx.model.protocol import LanguageModel
from musictx.model.shipped import seed_path
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer
from musictx.model.weights import check_weights, for_steps
from musictx.notes.meter import Meter
from musictx.notes.read import read_bytes
from musictx.notes.score import Score
from musictx.notes.write import write_midi
from musictx.open import open_told
from musictx.ranking import RANKINGS, Ranking, best_first, check_rank
from musictx.sampling.length import Length
from musictx.sampling.motif import Motif, Part, check_part, choose_motif
from musictx.sampling.music import Continuation, Drawing, Settings, check
from musictx.sampling.rules import Rules
from musictx.sampling.settings import Sampling
from musictx.seeds import RANGES, Seed, Targets, find_seeds, fit_range, fit_voices, name_targets, read_seed
from musictx.tokenizers import Tokenizer
from musictx.viz.sound import write_wav

INTERRUPTED = "interrupted"


def continue_midi(
    music: Score | str | Path | None,
    model: LanguageModel,
    tokenizer: Tokenizer,
    *,
    ranking: Ranking | None = None,
    **settings: Any,
) -> list[Continuation]:
    """What `musictx generate` does, for one seed (None: from nothing), without writing files.

    `settings` are those of the command, as in `length_bars=8, variations=3, sampler=SamplerConfig(temperature=0.9)`;
    `ranking`, higher is better, takes the place of `rank=`. The model is used as it is given: `for_steps` of
    `musictx.model.weights` makes it as fast as in the command, and takes the place of `weights=`; `StaticSteps` of
    `musictx.model.static_steps` that of `graph=`. Raises UserError, as the command does.
    """
    for name, instead in (
        ("weights", "weights.for_steps(model, weights)"),
        ("graph", "static_steps.StaticSteps(model)"),
    ):
        if name in settings:
            raise ConfigError(f"{name}=…: give the model of musictx.model.{instead} instead")
    config = GenerateConfig(**{"bundle": "", "seed_midi": None, "out": ""} | settings)
    plan(config)
    if isinstance(music, Score):
        seed = Seed(fit_range(music, tokenizer, "the seed", config.out_of_range), Meter(music.quarter_s))
    elif music is not None:
        seed = read_seed(seed_path(str(music)), tokenizer, drums=config.drums, out_of_range=config.out_of_range)
    motif = None
    if music is not None:
        motif = choose_motif(*seed, part(config, tokenizer.group > 1))
        motif = fit_voices(motif, tokenizer, "the seed", config.out_of_range)
    return best([motif], model, tokenizer, config, ranking)[0]


def generate(config: GenerateConfig) -> None:
    device = check_device(config.device)
    plan(config)
    sources = find_seeds(config.seed_midi)
    extras = {"wav": config.wav, "png": config.png, "overwrite": config.overwrite}
    targets = name_targets(sources, Path(config.out), config.variations, **extras)
    for source in sources if config.seed_midi is not None else []:
        read_bytes(source)  # a seed that is not there is told before the model is loaded
    bundle = name_bundle(config.bundle, sources if config.seed_midi is not None else [], config.drums)
    opened, tokenizer, _ = open_told(bundle, device, config.attention.impl)
    print(describe_model(opened))
    model = _faster(opened, config)
    if tokenizer.grammar is None and config.rules.masks:
        print(f"{tokenizer.name}: any token is legal at any time, so nothing is masked")
    motifs = [_motif(source, tokenizer, config) for source in sources]
    try:
        kept = best(motifs, model, tokenizer, config)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise less_memory(config, len(motifs)) from None
    for source, motif, files, results in zip(sources, motifs, targets, kept, strict=True):
        write(source, motif, files, results, config)
    _tell_stops(kept, config)


def plan(config: GenerateConfig) -> Settings:
    """All settings that can be judged without seed and model. Raises ConfigError."""
    settings = Settings(
        Sampling(**asdict(config.sampler)),
        Length(config.length_seconds, config.length_bars, config.length_notes, config.length_tokens),
        Rules(**asdict(config.rules)),
        config.seed,
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
        raise ConfigError(f"draws={config.draws}: give at least variations={config.variations}, or null to keep all")
    check_weights(config.weights)
    if config.graph and config.device != "cuda":
        raise ConfigError("graph=true is for device=cuda: a CPU would gain nothing; leave it out")
    if config.out_of_range not in RANGES:
        raise ConfigError(f"out_of_range={config.out_of_range}: choose one of {', '.join(RANGES)}")
    return settings


def part(config: GenerateConfig, on_beat: bool = False) -> Part:
    """Which part of a seed is the motif."""
    return Part(config.seed_seconds, config.seed_bars, config.seed_notes, config.seed_from, on_beat)


def best(
    motifs: list[Motif | None],
    model: LanguageModel,
    tokenizer: Tokenizer,
    config: GenerateConfig,
    ranking: Ranking | None = None,
) -> list[list[Continuation]]:
    """The continuations of every motif; with `draws`, the best of them by the ranking, the best first. Ctrl-C ends it
    early: what exists by then is returned."""
    drawing = Drawing(motifs, model, tokenizer, plan(config), config.draws or config.variations)
    try:
        for _ in drawing:
            pass
    except KeyboardInterrupt:
        drawing.stop(INTERRUPTED)
        if not drawing.takes:
            raise
    drawn = drawing.continuations()
    if config.draws is None:
        return drawn
    rankings = [ranking] if ranking else RANKINGS[config.rank]
    return [best_first(motif, each, rankings)[: config.variations] for motif, each in zip(motifs, drawn, strict=True)]


def write(
    source: Path, motif: Motif | None, files: Targets, results: list[Continuation], config: GenerateConfig
) -> None:
    """One seed's continuations, and what a person should know of each."""
    signature = motif.meter.signature if motif else None
    if results and results[0].unheard:
        print(f"{source}: longer than the model looks back; it does not hear the oldest {results[0].unheard} tokens")
    for path, result in zip(files.midi, results, strict=False):
        write_midi(result.score, path, signature)
        rank = f", {result.mean_log_p:.3f} nats a token" if config.draws else ""
        print(f"{path}: {len(result.score)} notes, new music from {result.new_from_s:.2f} s on{rank}")
    for path, result in zip(files.wav, results, strict=False):
        write_wav(result.score, path)
    if files.png and results:
        from musictx.viz.piano_roll import piano_roll  # 0.4 s that nobody else waits for

        names = [path.stem for path in files.midi]
        piano_roll([(n, r.score, r.new_from_s) for n, r in zip(names, results, strict=False)], files.png)
        print(f"{files.png}: the seed and its continuations as piano rolls")


def less_memory(config: GenerateConfig, n_seeds: int) -> UserError:
    """Which setting to lower, and to what."""
    rows = min(config.rows_at_once, n_seeds * (config.draws or config.variations))
    if rows > 1:
        return UserError(f"out of memory with {rows} rows drawn together: give rows_at_once={rows // 2}")
    return UserError("out of memory with a single row: give window=512 tokens to look back, or fewer")


def _faster(model: Model, config: GenerateConfig) -> LanguageModel:
    """The model made for steps, as was asked."""
    fast = for_steps(model, config.weights)
    if not config.graph:
        return fast
    if not isinstance(fast, Transformer):
        raise ConfigError("graph=true: model.kind=recurrent steps without a cache of keys; leave it out")
    return StaticSteps(fast)


def _motif(source: Path, tokenizer: Tokenizer, config: GenerateConfig) -> Motif | None:
    if config.seed_midi is None:
        return None
    seed = read_seed(source, tokenizer, drums=config.drums, out_of_range=config.out_of_range)
    try:
        motif = choose_motif(*seed, part(config, tokenizer.group > 1))
    except UserError as error:
        raise type(error)(f"{source}: {error}") from None
    motif = fit_voices(motif, tokenizer, source, config.out_of_range)
    try:
        tokenizer.encode(motif.score)
    except TokenError as error:
        raise TokenError(f"{source}: {error}") from None
    return motif


def _tell_stops(kept: list[list[Continuation]], config: GenerateConfig) -> None:
    """Why music is shorter than asked, or missing. Raises KeyboardInterrupt again if a person stopped it."""
    reasons = {result.stopped for results in kept for result in results} - {""}
    missing = sum(len(results) < config.variations for results in kept)
    if INTERRUPTED in reasons or missing:
        print("interrupted: what there was by then is written, the rest is missing")
        raise KeyboardInterrupt
    for reason in sorted(reasons):
        print(f"stopped before the asked length: {reason}")


main = hydra_app("generate", generate)

if __name__ == "__main__":
    main()
