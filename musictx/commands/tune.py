"""musictx tune: teach a model your own music, and measure on two held-out pieces whether it learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from shutil import copyfile
from typing import Any

import numpy as np
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import MISSING

from musictx.analysis.likelihood import FEWEST, PASSAGE, Gain, distinct_pieces, gain
from musictx.commands import check_way, check_within
from musictx.commands.generate import generate
from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.prepare import PrepareFolderConfig, PrepareScoresConfig, SelectConfig
from musictx.config.train import TokenizerConfig, TrainConfig
from musictx.data.corpora.folder import OTHER, prepare_folder, prepare_scores
from musictx.data.prepare import assign_splits, print_summary
from musictx.data.store import Piece, Split, Store
from musictx.errors import ConfigError, StoreError, counted
from musictx.files import check_new, printable, replacing, write_json
from musictx.generate.open_bundle import Opened, open_bundle
from musictx.generate.open_player import check_device
from musictx.model.bundle import add_notes
from musictx.model.packaged import BUNDLE, PIANO, bundle_path
from musictx.music.notation.midi import to_midi
from musictx.music.write import write_midi
from musictx.objectives import NEXT_TOKEN
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers.score import ScoreTokenizer
from musictx.training.fit import fit
from musictx.training.run_folder import RunFolder, store_hash
from musictx.training.start import sized_as_bundle

GAIN, SEED, MUSIC = "gain.json", "held-out.mid", "music"  # beside the model
SEED_BARS = 8  # of a held-out score
HELD_OUT = 2  # pieces that measure, and nothing else
RATE = 3e-4  # docs/train/all-about-training.md
BATCH = 4  # windows a step
READINGS, STEPS = 10, (60, 200)  # of the music; and at least, at most
PATIENCE = 3
OWN = ("sampler", "seed_guidance")  # notes of a bundle that its tuned model keeps


@dataclass
class TuneConfig:
    """musictx tune: teach a model your own music, and measure on held-out pieces whether it learned."""

    path: str = setting(MISSING, "a folder or zip of MIDI files, at least four different pieces", path=True)
    out: str = setting("outputs/tuned", "a folder for the model and its music; the same command resumes", folder=True)
    bundle: str = setting(PIANO, "the model to begin with: piano, chorale, score, a file or a run's folder", path=True)
    licence: str = setting("not stated", "licence of your music, which the model will show beside its corpus's")
    max_steps: int | None = setting(
        None, f"optimizer steps; null: {READINGS} readings of your music, {STEPS[0]} to {STEPS[1]}"
    )
    random_seed: int = setting(0, "random seed: chooses the held-out pieces")
    drums: bool = setting(False, "include the drums")
    overwrite: bool = setting(False, "replace the model in the folder and start again")
    device: str = setting("cpu", "cpu or cuda")


def tune(config: TuneConfig) -> Path:
    """Returns the new bundle, which is written last: until then the same command resumes. Raises UserError."""
    device, out = check_device(config.device), Path(config.out)
    bundle, run = out / BUNDLE, RunFolder(out / "run")
    check_within(config, "max_steps", 1)
    check_way("out", config.out, out)
    if out.resolve().is_relative_to(Path(config.path).resolve()):
        why = f"it is in path={config.path}, and would be read as your music"
        raise ConfigError("out", got=config.out, why=why, allowed="another folder")
    if not run.has_begun:
        check_own(out)
    check_new(config.overwrite, bundle, *(out / name for name in (GAIN, SEED, MUSIC) if not run.has_begun))
    before = open_bundle(bundle_path(config.bundle), device)
    if ":" in (name := before.header.objective.get("name", NEXT_TOKEN)):
        why = f"it learned objective={name}, which is not in musictx"
        raise ConfigError("bundle", got=config.bundle, why=why, hint="musictx train with init_from= and objective=")
    store = prepare_store(config, before)
    training = train_config(config, before, store)
    done = not config.overwrite and is_done(run, training, store)
    try:
        if not done:
            fit(training)
        if getattr(rank_zero_only, "rank", 0):
            return bundle  # another process writes
        if run.is_unfinished:
            raise KeyboardInterrupt
        finish(config, before, run, store)
    except KeyboardInterrupt:
        if run.bundle.is_file():
            say(f"{run.bundle}: the model so far; {bundle} comes at the end, the same command goes on")
        raise
    with replacing(bundle) as partial:
        copyfile(run.bundle, partial)
    say(f"{bundle}: the model; musictx generate my.mid {quote(f'bundle={out}')} continues a file with it")
    return bundle


def check_own(out: Path) -> None:
    """Raises ConfigError for a folder with files of others."""
    ours = {BUNDLE, GAIN, SEED, MUSIC, "run", "store"}
    names = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if foreign := [name for name in names if name not in ours and not name.startswith(".")]:
        why = f"it is not the folder of a tuned model (it has {printable(foreign[0])})"
        raise ConfigError("out", got=out, why=why, allowed="another")


def finish(config: TuneConfig, before: Opened, run: RunFolder, store: Store) -> None:
    """Measures the model, and continues a held-out piece with it."""
    out, device = Path(config.out), config.device
    seed = out / SEED
    add_notes(run.bundle, **{x: before.header.notes[x] for x in OWN if x in before.header.notes})
    test = distinct_pieces(store)
    result = gain(before.model, open_bundle(run.bundle, device).model, before.tokenizer, test, device)
    show_gain(result, config, test)
    facts = {"begun_with": config.bundle, "held_out": [printable(name) for name in test.names], **result._asdict()}
    write_json(out / GAIN, facts)
    words = [f"device={device}", "variations=3", "png=true", "overwrite=true"]
    if isinstance(tokenizer := store.tokenizer, ScoreTokenizer):
        ids = np.asarray(test[0])
        notation = tokenizer.decode_notation(ids[: [*np.flatnonzero(ids == tokenizer.bar)][:SEED_BARS][-1] + 1])
        with replacing(seed) as partial:
            partial.write_bytes(to_midi(notation))
        words.append(f"length_bars={SEED_BARS}")
    else:
        write_midi(tokenizer.decode(np.asarray(test[0])), seed)
        words.append("seed_seconds=15")
    generate(settings("generate", *words, bundle=str(run.bundle), seed_midi=str(seed), out=str(out / MUSIC)))


def is_done(run: RunFolder, config: TrainConfig, store: Store) -> bool:
    """Whether this very training is finished."""
    return run.is_finished and not run.differences(sized_as_bundle(config)) and run.record().store == store_hash(store)


def prepare_store(config: TuneConfig, before: Opened) -> Store:
    """The person's music as a store. Raises StoreError for fewer than four different pieces."""
    store = Path(config.out) / "store"
    how: dict[str, Any] = {"out": str(store), "path": config.path, "licence": config.licence, "overwrite": True}

    def assign(_: Sequence[Piece], keys: Sequence[str]) -> list[str]:
        return held_out(keys, config.random_seed)

    if isinstance(before.tokenizer, ScoreTokenizer):
        manifest = prepare_scores(PrepareScoresConfig(**how), assign)
    else:
        how |= {"tokenizer": TokenizerConfig(name=before.header.tokenizer), "select": SelectConfig(drums=config.drums)}
        manifest = prepare_folder(PrepareFolderConfig(**how), assign)
    print_summary(store, manifest)
    for name, reason in manifest.dropped:
        if reason != OTHER:
            say(f"left out: {printable(name)}: {printable(reason)}")
    return Store(store)


def held_out(keys: Sequence[str], random_seed: int) -> list[str]:
    """The split of each piece by its key: two different ones for the test, a tenth for validation. Raises
    StoreError."""
    different = len(set(keys))
    if different < HELD_OUT + 2:
        what = f"too few different pieces, {different}: {HELD_OUT} measure, one says when to stop, another is learned"
        raise StoreError(what, f"give {HELD_OUT + 2} or more, better 20")
    return assign_splits(keys, max(different // 10, 1) / different, HELD_OUT / different, random_seed)


def train_config(config: TuneConfig, before: Opened, store: Store) -> TrainConfig:
    """The settings of the training."""
    voices, objective = before.tokenizer.voices, before.header.objective
    length = 512 if voices else 1024
    reading = max(store.manifest.splits["train"].tokens // (BATCH * length), 1)  # steps
    steps = config.max_steps or min(max(READINGS * reading, STEPS[0]), STEPS[1])
    training: TrainConfig = settings(
        "train",
        f"data={'chorales' if before.tokenizer.metrical else 'performances'}",
        f"trainer={'gpu' if config.device == 'cuda' else 'cpu'}",
        f"tokenizer={before.header.tokenizer}",
        init_from=config.bundle,
        out=str(Path(config.out) / "run"),
        overwrite=config.overwrite,
        random_seed=config.random_seed,
        objective=objective.get("name", NEXT_TOKEN),
        objective_settings=objective.get("settings"),
        data={"path": str(store.path), "length": length},
        trainer={
            "batch_size": BATCH,
            "max_steps": steps,
            "warmup_steps": steps // 10,
            "validate_every": max(steps // 12, 1),
            "patience": PATIENCE,
            "sample_every": None,
            "lr": RATE,
        },
    )
    return training


def show_gain(result: Gain, config: TuneConfig, test: Split) -> None:
    """Prints the gain, and `better` only where this is sure."""
    names, d = ", ".join(printable(Path(name).stem) for name in test.names), result.difference
    passages = f"{counted(result.passages, 'passage')} of {PASSAGE} tokens, nats a token"
    say(f"held-out pieces, which no step has seen: {names}; {passages}")
    say(f"  {config.bundle:<12} {result.before:.3f}")
    change = f"difference {d.mean:+.3f}, 95 % of resamples {d.low:+.3f} to {d.high:+.3f}"
    say(f"  {'tuned':<12} {result.after:.3f}   {change}")
    if result.is_better:
        say("better on each of these pieces; other pieces of yours were not asked")
    elif d.low > 0:
        say("worse: your pieces may differ too much from each other; more of them would help")
    elif result.passages < FEWEST:
        few = counted(result.passages, "passage is", "passages are")
        say(f"not surely better: {few} too few, {FEWEST} are the least; give longer pieces")
    else:
        say("not surely better: the interval reaches 0, or one of the pieces is no better; more pieces would help")


COMMAND = Command("tune", tune, TuneConfig, main="path")
