"""musictx generate: continue seed MIDI files with a bundle's model; `musictx.load` does the same from Python."""

from pathlib import Path

from musictx.app import hydra_app
from musictx.choice import name_bundle
from musictx.config.use import GenerateConfig
from musictx.continuing import Beginning, continue_all, faster, is_interrupted, plan, read_beginning
from musictx.device import check_device
from musictx.model.build import describe_model
from musictx.music import Music
from musictx.notes.read import read_bytes
from musictx.open import open_told, weights_told
from musictx.seeds import Targets, find_seeds, name_targets


def generate(config: GenerateConfig) -> None:
    device = check_device(config.device)
    plan(config)
    sources = find_seeds(config.seed_midi)
    extras = {"wav": config.wav, "png": config.png, "overwrite": config.overwrite}
    targets = name_targets(sources, Path(config.out), config.variations, **extras)
    seeds = sources if config.seed_midi is not None else []
    for seed in seeds:
        read_bytes(seed)  # a seed that is not there is told before the model is loaded
    bundle = name_bundle(config.bundle, seeds, config.drums)
    opened, tokenizer, header = open_told(bundle, device, config.attention.impl)
    print(describe_model(opened))
    weights_told(config.weights, opened)
    if seeds and (own := config.sampler.suited(header.seed_guidance).strength) != config.sampler.strength:
        print(f"sampler.seed_guidance={own:g}, as its bundle says; null for music that holds on to no seed")
    model = faster(opened, config)
    if not tokenizer.ruled and config.rules.masks:
        print(f"{tokenizer.name}: any token is legal at any time, so nothing is masked")
    beginnings = [read_beginning(seed, tokenizer, config) for seed in seeds] or [Beginning(sources[0].stem)]
    kept = continue_all(beginnings, model, tokenizer, config, own_guidance=header.seed_guidance)
    for source, files, pieces in zip(sources, targets, kept, strict=True):
        write(source, files, pieces, config)
    if is_interrupted(kept, config):
        print("interrupted: what there was by then is written, the rest is missing")
        raise KeyboardInterrupt
    for reason in sorted({music.stopped for pieces in kept for music in pieces} - {""}):
        print(f"stopped before the asked length: {reason}")


def write(source: Path, files: Targets, pieces: list[Music], config: GenerateConfig) -> None:
    """One seed's continuations, and what a person should know of each."""
    if pieces and pieces[0].unheard:
        print(f"{source}: longer than the model looks back; it does not hear the oldest {pieces[0].unheard} tokens")
    for path, music in zip(files.midi, pieces, strict=False):
        music.write(path)
        rank = f", {music.mean_log_p:.3f} nats a token" if config.draws else ""
        print(f"{path}: {len(music.score)} notes, new music from {music.new_from_s:.2f} s on{rank}")
    for path, music in zip(files.wav, pieces, strict=False):
        music.write(path)
    if files.png and pieces:
        from musictx.viz.piano_roll import piano_roll  # 0.4 s that nobody else waits for

        names = [path.stem for path in files.midi]
        piano_roll([(n, m.score, m.new_from_s) for n, m in zip(names, pieces, strict=False)], files.png)
        print(f"{files.png}: the seed and its continuations as piano rolls")


main = hydra_app("generate", generate)

if __name__ == "__main__":
    main()
