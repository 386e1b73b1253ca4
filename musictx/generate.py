"""musictx generate: continue a seed MIDI file with a bundle's model."""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.use import GenerateConfig
from musictx.device import check_device
from musictx.errors import ConfigError, TokenError, UserError
from musictx.model.attention import describe
from musictx.notes.read import read_bytes, read_midi
from musictx.notes.write import write_midi
from musictx.open import open_bundle
from musictx.sampling.engine import Sampling
from musictx.sampling.music import check_lengths, continue_score
from musictx.viz.piano_roll import piano_roll
from musictx.viz.sound import write_wav


def generate(config: GenerateConfig) -> None:
    device = check_device(config.device)
    sampling = Sampling(config.sampler.temperature, config.sampler.top_k, config.sampler.top_p)
    check_lengths(config.length_seconds, config.max_tokens, config.variations, config.seed)
    if config.seed_seconds is not None and not config.seed_seconds > 0:
        raise ConfigError(f"seed_seconds={config.seed_seconds}: give more than 0, or leave it out for all")
    source, folder = Path(config.seed_midi), Path(config.out)
    names = [f"{source.stem}-{k + 1}" for k in range(config.variations)]
    targets = [folder / f"{name}.mid" for name in names]
    picture = folder / f"{source.stem}.png"
    sounds = [target.with_suffix(".wav") for target in targets]
    for target in (*targets, *(sounds if config.wav else []), *([picture] if config.png else [])):
        if target.exists() and not config.overwrite:
            raise ConfigError(f"{target} exists already: give another out= or overwrite=true")

    read_bytes(source)  # a seed that is not there is told before the model is loaded
    model, tokenizer, _ = open_bundle(Path(config.bundle), device, config.attention.impl)
    print(describe(model.config.position, config.attention.impl))
    seed = read_midi(source, drums=config.drums, one_tempo=tokenizer.metrical)
    if config.seed_seconds is not None:
        seed = seed.clip(0.0, config.seed_seconds)
    if not len(seed):
        raise UserError(f"{source}: the seed has no notes: give one with music in it, or raise seed_seconds")
    try:
        results = continue_score(
            seed,
            model,
            tokenizer,
            sampling,
            length_seconds=config.length_seconds,
            max_tokens=config.max_tokens,
            variations=config.variations,
            seed=config.seed,
            include_seed=config.include_seed,
            device=device,
        )
    except TokenError as error:
        raise TokenError(f"{source}: {error}") from None

    folder.mkdir(parents=True, exist_ok=True)
    for target, result in zip(targets, results, strict=True):
        write_midi(result.score, target)
        print(f"{target}: {len(result.score)} notes, new music from {result.new_from_s:.2f} s on")
        if config.wav:
            write_wav(result.score, target.with_suffix(".wav"))
    if config.png:
        piano_roll([(n, r.score, r.new_from_s) for n, r in zip(names, results, strict=True)], picture)
        print(f"{picture}: the seed and its continuations as piano rolls")
    if not all(result.complete for result in results):
        print(f"stopped at max_tokens={config.max_tokens}, before length_seconds={config.length_seconds}: raise it")


main = hydra_app("generate", generate)

if __name__ == "__main__":
    main()
