"""Does other music for four voices help the chorale model, and do longer training and averaged weights?

    python studies/foreign.py --fakes js-fakes.zip --polish polish-satb.zip  # resumes; trainer.accelerator=cuda
    python studies/foreign.py --fakes js-fakes.zip --polish polish-satb.zip --test

Everything is chosen by five folds of the 229 training pieces; similar pieces share a fold. A run is `chorales.learn`'s
two stages. Each of `FORMS` learns foreign music before Bach, in a third of the first stage's steps, or beside him, in
as many pieces as his: all for the same steps. Foreign pieces like one of the official validation or test are left out.
The rules, in this order, each by the mean nats a token over all folds at the best temperature: the form; then its
length, of `LENGTHS`; then whether the weights of the last stage are averaged over three random seeds. The models of the
folds learn for `SHARE` of the steps. At the end, the chosen recipe and the same with Bach alone learn all 229 for all
steps, with the temperature of their folds. The official splits are read once: two rows. `--form-only` stops choosing
after the form: with length 1 and one random seed the figures of five forms are enough.
"""

import argparse
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timed
import torch
from chorales import COMMON, TEMPERATURES, divide_logits, load, nll_by_temperature, score, trained
from music21 import converter
from music21.midi.translate import streamToMidiFile
from shared import asked

from musictx.config.mistakes import in_one_line
from musictx.config.prepare import PrepareFolderConfig, PrepareJsbConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.prepare import finish
from musictx.data.similar import group, signature
from musictx.data.store import Piece, Store
from musictx.model.bundle import save_bundle

FORMS: dict[str, tuple[tuple[str, ...], bool]] = {  # what is learned with Bach, and whether before him
    "Bach alone": ((), False),
    "JS Fakes before": (("fakes",), True),
    "Polish before": (("polish",), True),
    "both before": (("fakes", "polish"), True),
    "both beside": (("fakes", "polish"), False),
}
STEPS, LONG_STEPS, DROPOUT = 3000, 400, 0.2  # of the shipped model
FOLDS, LENGTHS, SEEDS = 5, (1.0, 2.0), (0, 1, 2)
SHARE = 1 / 3  # of all steps: the models of the folds
ALIKE = 0.4  # of a sketch: such pieces count as one


class Recipe(NamedTuple):
    form: str
    length: float = 1.0  # of STEPS
    averaged: bool = False


class Study:
    """The stores and runs of the folds; fold None is all of the training split."""

    def __init__(self, official: Store, foreign: dict[str, list[Piece]], out: Path, fraction: float) -> None:
        self.official, self.foreign, self.out, self.fraction = official, foreign, out, fraction
        self.overrides: list[str] = []
        self.bach = pieces_of(official, ("train",))
        self.fold_of = folds([piece.signature for piece in self.bach])
        self.runs = timed.Runs(out / "runs.json")

    def store(self, names: tuple[str, ...], before: bool, fold: int | None) -> Path:
        """Foreign pieces of these names; unless they come before Bach, with his pieces repeated to as many ids. The
        fold is its validation; for fold None the first one, which is learned too."""
        path = self.out / "stores" / f"{'-'.join(names) or 'bach'}{'-before' * before}-{fold}"
        if not (path / "manifest.json").exists():
            bach = [piece for piece, k in zip(self.bach, self.fold_of, strict=True) if k != fold]
            other = [piece for name in names for piece in self.foreign[name]]
            times = round(ids(other) / ids(bach)) if other else 1
            again = [replace(p, name=f"{p.name} {n}") for n in range(0 if before else max(times, 1)) for p in bach]
            out = [
                replace(p, name=f"held out: {p.name}")
                for p, k in zip(self.bach, self.fold_of, strict=True)
                if k == (fold or 0)
            ]
            train = other + again
            splits = ["train"] * len(train) + ["validation"] * len(out)
            config = PrepareJsbConfig(out=str(path))
            finish(train + out, [], self.official.tokenizer, self.official.manifest.corpus, lambda *_: splits, config)
        return path

    def learn(self, recipe: Recipe, fold: int | None, share: float = 1.0) -> list[Path]:
        """The bundles of a recipe: one, or one for each random seed of the last stage."""
        names, before = FORMS[recipe.form]
        name = f"{recipe.form.replace(' ', '-')}-{recipe.length:g}-{fold}-{share:.2g}"
        share *= self.fraction
        steps = max(round(STEPS * recipe.length * share), 3)
        last = max(round(LONG_STEPS * min(recipe.length, 1) * share), 1)

        def stage(experiment: str, store: Path, steps: int, part: str, start: Path | None, seed: int = 0) -> Path:
            words = [f"experiment={experiment}", *COMMON, f"data.path={store}", f"random_seed={seed}"]
            words += [f"out={self.out / 'runs' / name / part}", f"init_from={start or 'null'}"]
            words += [f"trainer.max_steps={steps}", f"trainer.warmup_steps={max(steps // 20, 1)}"]
            words += [f"trainer.validate_every={steps}", f"model.dropout={DROPOUT}", *self.overrides]
            return trained(*words)

        bundle = None
        if before:
            bundle = stage("jsb", self.store(names, True, fold), steps // 3, "before", None)
            steps -= steps // 3
        bundle = stage("jsb", self.store(() if before else names, False, fold), steps, "first", bundle)
        alone = self.store((), False, fold)
        seeds = SEEDS if recipe.averaged else SEEDS[:1]
        return [stage("jsb_whole", alone, last, f"last-{seed}", bundle, seed) for seed in seeds]

    def held_out(self, recipe: Recipe, fold: int, share: float = 1.0) -> list[float]:
        """Nats a token of a fold that the recipe did not learn, at each of `TEMPERATURES`."""
        tokenizer = self.official.tokenizer
        split = Store(self.store((), False, fold), tokenizer.name).split("validation")
        return nll_by_temperature(averaged(self.learn(recipe, fold, share)), split, tokenizer)

    def nats(self, recipe: Recipe) -> dict[str, Any]:
        """The recipe's nats a token in each fold at the temperature that is best for their mean."""

        def make() -> dict[str, Any]:
            found = [self.held_out(recipe, fold, SHARE) for fold in range(FOLDS)]
            best = int(np.mean(found, 0).argmin())
            of = [nll[best] for nll in found]
            return {"temperature": TEMPERATURES[best], "folds": of, "nll": float(np.mean(of))}

        row = self.runs.get(f"{recipe}, {self.fraction:g} of all steps, {' '.join(self.overrides)}", make)
        print(f"{recipe}: {row['nll']:.4f} at temperature {row['temperature']:.2f}", flush=True)
        return row

    def choice(self, form_only: bool) -> list[Recipe]:
        """The chosen recipe, and the same with Bach alone, by the rules above."""

        def best(recipes: Iterable[Recipe]) -> Recipe:
            return min(recipes, key=lambda recipe: self.nats(recipe)["nll"])

        chosen = best(Recipe(form) for form in FORMS)
        if not form_only:
            chosen = best(chosen._replace(length=length) for length in LENGTHS)
            chosen = best((chosen, chosen._replace(averaged=True)))
        return list(dict.fromkeys((chosen, chosen._replace(form="Bach alone"))))

    def write(self, recipe: Recipe, target: Path) -> None:
        """The bundle of a recipe that learned all training pieces, float16, with its temperature."""
        sources = self.learn(recipe, None)
        model, header = averaged(sources), load(sources[0])[1]
        temperature = self.nats(recipe)["temperature"]
        divide_logits(model, temperature)
        music = [NAMES[name] for name in FORMS[recipe.form][0]]
        notes = header.notes | {
            "made_by": "studies/foreign.py",
            "recipe": recipe._asdict(),
            "calibrated": temperature,
        }
        corpus = " and ".join([self.official.manifest.corpus.name, *music])
        licence = "CC BY 4.0" if music else self.official.manifest.corpus.licence
        target.parent.mkdir(parents=True, exist_ok=True)
        save_bundle(
            target, model, replace(header, corpus=corpus, licence=licence, notes=header.notes | notes), torch.float16
        )


NAMES = {"fakes": "JS Fakes (Peracha)", "polish": "Polish scores for four voices (NIFC)"}


def averaged(paths: Sequence[Path]) -> Any:
    """A model whose weights are the mean of all bundles'."""
    models = [load(path)[0] for path in paths]
    states = [model.state_dict() for model in models]
    models[0].load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
    return models[0]


def ids(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.ids) for piece in pieces)


def folds(signatures: Sequence[Any]) -> list[int]:
    """A fold for each piece; pieces that are alike share one."""
    leader = group(signatures)
    order = np.random.default_rng(0).permutation(sorted(set(leader)))
    fold_of = {int(first): k % FOLDS for k, first in enumerate(order)}
    return [fold_of[first] for first in leader]


def pieces_of(store: Store, splits: Sequence[str]) -> list[Piece]:
    tokenizer = store.tokenizer
    return [
        Piece(name, np.asarray(ids), tokenizer.seconds(ids), signature(tokenizer.decode(ids)))
        for split in splits
        for name, ids in zip(store.split(split).names, store.split(split), strict=True)
    ]


def foreign(name: str, archive: Path, official: Store, out: Path) -> list[Piece]:
    """The pieces of an archive as the chorale encoding has them, without those like a piece of the official splits."""
    if not (out / name / "manifest.json").exists():
        with tempfile.TemporaryDirectory() as folder:
            midi = archive if name == "fakes" else as_midi(archive, Path(folder) / name)
            config = PrepareFolderConfig(path=str(midi), out=str(out / name), corpus=NAMES[name], licence="CC BY 4.0")
            prepare_folder(replace(config, tokenizer=TokenizerConfig(name="chorale")))
    pieces = pieces_of(Store(out / name, "chorale"), ("train", "validation", "test"))
    theirs = np.stack([p.signature for p in pieces_of(official, ("train", "validation", "test"))])  # (P, hashes)
    kept = [piece for piece in pieces if (theirs == piece.signature).mean(1).max() < ALIKE]
    print(f"{name}: {len(kept)} of {len(pieces)} pieces, {ids(kept):,} ids")
    return kept


def as_midi(archive: Path, folder: Path) -> Path:
    """Each Humdrum score of an archive as a MIDI file; those that music21 cannot read are left out."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as scores:
        names = [name for name in scores.namelist() if name.endswith(".krn")]
        for k, name in enumerate(names):
            try:
                score = converter.parseData(scores.read(name).decode(), format="humdrum")
                file = streamToMidiFile(score)
                file.open(folder / f"{k}.mid", "wb")
                file.write()
                file.close()
            except Exception as error:
                print(f"{name} is left out: {type(error).__name__}")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/jsb"))
    parser.add_argument("--fakes", type=Path, required=True, help="JS Fakes, a zip or folder of MIDI files")
    parser.add_argument("--polish", type=Path, required=True, help="a zip of Humdrum scores")
    parser.add_argument("--out", type=Path, default=Path("outputs/foreign"), help="all stores, runs and figures")
    parser.add_argument("--fraction", type=float, default=1.0, help="share of all steps, for a trial")
    parser.add_argument("--form-only", action="store_true", help="choose the form, with length 1 and one random seed")
    parser.add_argument("--test", action="store_true", help="read the test split after all else")
    args, overrides = asked(parser)
    official = Store(args.store, "chorale")
    other = {name: foreign(name, getattr(args, name), official, args.out / "stores") for name in NAMES}
    study = Study(official, other, args.out, args.fraction)
    study.overrides = overrides
    for recipe in study.choice(args.form_only):
        name = recipe.form.replace(" ", "-").lower()
        bundle = args.out / f"{name}.safetensors"
        if not bundle.exists():
            study.write(recipe, bundle)
        for split in ("validation", "test") if args.test else ("validation",):
            score(bundle, official, split, args.out / f"{name}-{split}.json")


if __name__ == "__main__":
    with in_one_line():
        main()
