"""musictx demo: do all of it on Bach chorales, in about two minutes on two cores."""

import os
from dataclasses import dataclass
from pathlib import Path

from musictx.commands.evaluate import evaluate
from musictx.commands.generate import COMMAND as GENERATE
from musictx.commands.train import train
from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.prepare import PrepareChoralesConfig
from musictx.data.corpora.chorales import CORPUS, chorale_list, first_bars_steps, prepare_chorales
from musictx.data.prepare import print_summary
from musictx.data.store import Store
from musictx.errors import ConfigError, StoreError
from musictx.model.packaged import CHORALE, PIANO, is_packaged
from musictx.music.grid import N_VOICES
from musictx.music.write import write_midi
from musictx.setting import setting
from musictx.terminal import say
from musictx.training.run_folder import CONFIG, RunFolder


@dataclass
class DemoConfig:
    """musictx demo: prepare Bach chorales, train on them and continue them."""

    out: str = setting("outputs/demo", "the run's folder, which also gets the music", folder=True)
    store: str = setting("outputs/stores/chorales", "the store of chorales; prepared if it does not exist", folder=True)


SEED_BARS = 2


def demo(config: DemoConfig) -> None:
    out, store = Path(config.out), Path(config.store)
    bundle, seed = out / "model.safetensors", out / "seed.mid"
    if os.path.lexists(out) and not (out / CONFIG).exists() and not (out.is_dir() and not any(out.iterdir())):
        why = "it exists already, and is no run of the demo"
        raise ConfigError("out", got=out, why=why, allowed="another")

    _say("1 of 6: prepare the chorales that music21 ships", "musictx prepare chorales")
    if (store / "manifest.json").is_file():
        say(f"there already: {store} (delete it to prepare it again)")
        check_store(Store(store, "chorale"))
    else:
        prepare_chorales(PrepareChoralesConfig(out=str(store)))
    chorales = Store(store, "chorale")
    print_summary(store, chorales.manifest)

    title = "2 of 6: train a relative Transformer"
    if RunFolder(out).is_finished:
        _say(title)
        say(f"there already: {bundle} (delete {out} to train again)")
    else:
        words = ["experiment=demo", f"data.path={store}", f"out={out}"]
        _say(title, f"musictx train {' '.join(words)}")
        train(*words)
        if RunFolder(out).is_unfinished:  # after Ctrl-C, which keeps the best model so far
            raise KeyboardInterrupt
    words = [f"bundle={bundle}", "data=chorales", f"data.path={store}"]
    _say("3 of 6: score the held-out chorales", f"musictx evaluate {' '.join(words)}")
    evaluate(*words)
    name = write_seed(chorales, seed)
    into = [f"out={out}", "variations=3", "wav=true", "png=true", "overwrite=true"]
    words = [f"bundle={bundle}", f"seed_midi={seed}", "sampler.temperature=1.1", *into]
    _generate(f"4 of 6: continue the first {SEED_BARS} bars of {name}, which the model has never seen", words)
    words = [f"bundle={CHORALE}", "seed_midi=chorale", *into]
    _generate("5 of 6: continue two bars it has never seen with the chorale model inside the package", words)
    if is_packaged(PIANO):
        title = "6 of 6: continue the opening of Für Elise with the piano model inside the package"
        _generate(title, [f"bundle={PIANO}", "seed_midi=elise", *into])
    say(f"""
Everything is in {out}/
  seed.mid          the first {SEED_BARS} bars of {name}
  seed-1.mid …      the seed and its continuations; seed-1.wav … to listen to
  seed.png          all of them as piano rolls
  chorale-1.mid …   the same of the chorale model inside the package: chorale-1.wav is what to listen to first
  elise-1.mid …     a piano piece, if the package has its piano model
  config.yaml       the run's resolved config; metrics.csv its losses
  model.safetensors the model

Next:
  musictx generate {seed} bundle={bundle} out=outputs/mine random_seed=7 sampler.temperature=0.9
  musictx prepare folder FOLDER_OF_MIDI_FILES out=outputs/stores/mine
  musictx train outputs/stores/mine
(after `. .venv/bin/activate`)""")


def check_store(store: Store) -> None:
    """Raises StoreError for a store without test chorales, UserError without music21, which knows their bars."""
    test = store.manifest.splits.get("test")
    if store.manifest.corpus.name != CORPUS.name or not (test and test.tokens):
        hint = "give another store=, or delete it and the demo prepares it again"
        raise StoreError(f"{store.path} has no chorales of music21 in a test split", hint)
    chorale_list()


def write_seed(store: Store, path: Path) -> str:
    """Writes the upbeat and the first bars of the first test chorale as MIDI; returns its name."""
    split = store.split("test")
    name = split.names[0]
    steps = first_bars_steps("bach/" + name.split()[1], SEED_BARS)
    write_midi(store.tokenizer.decode(split[0][: steps * N_VOICES]), path)
    return name


def _say(title: str, command: str = "") -> None:
    say(f"\n=== {title}" + (f"\n$ {command}" if command else ""), flush=True)


def _generate(title: str, words: list[str]) -> None:
    _say(title, f"musictx generate {' '.join(words)}")
    GENERATE.run(settings("generate", *words))


COMMAND = Command("demo", demo, DemoConfig)
