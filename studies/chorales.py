"""A chorale model that continues, from the store to the bundle. If it was stopped, the same command resumes.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/chorales.py                            # a trial of minutes: --fraction 0.005 --out outputs/trial

`infill.py` then teaches it to fill gaps too: that is the model inside the package.

All choices use 20 of the 229 training pieces. Every recipe below learns the other 209 to the end of its schedules, in
windows of 512 and then of 1,024 ids. It gets the one temperature that fits the 20 best (Guo et al. 2017, On Calibration
of Modern Neural Networks, section 4.2). The best recipe then learns all 229 for as many steps, with the same
temperature. Every run keeps its last weights. The official validation is read at the end and chooses no weights; the
kind of recipe was found on it before. The test split is read only with `--test`, once for a bundle. Settings of
`musictx train` (key=value) are those of every run.

The bundle has float16. Its seed is beside it: the beginning of a test piece, which no training has seen.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from shared import asked, kept, options

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.evaluate import evaluate, file_hash
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.config.prepare import PrepareJsbConfig
from musictx.data.dataset import batch_segments, scoring_batch, scoring_segments
from musictx.data.prepare import finish
from musictx.data.similar import signature
from musictx.data.store import Piece, Split, Store
from musictx.errors import BundleError, StoreError
from musictx.files import write_json
from musictx.model.build import kind_of
from musictx.model.bundle import BundleHeader, load_bundle, save_bundle
from musictx.music.write import write_midi
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer
from musictx.training.fit import fit
from musictx.training.run_folder import RunFolder
from musictx.training.start import sized_as_bundle


class Recipe(NamedTuple):
    steps: int  # steps with windows of 512
    long_steps: int  # steps with windows of 1,024, which follow
    dropout: float


RECIPES = [Recipe(steps, n, p) for steps, p in ((2000, 0.2), (3000, 0.2), (3000, 0.3)) for n in (200, 400)]
COMMON = ["trainer.progress_bar=false", "trainer.sample_every=null", "trainer.checkpoint_every=100"]
HELD_OUT = 20  # pieces
ALIKE = 0.1  # held-out pieces share less of their sketch with every other piece; at 0.4 two count as one piece
VALIDATIONS = 5  # validations in each stage while recipes are compared, for their curves
TEMPERATURES = [round(1 + k / 100, 2) for k in range(-10, 31)]
SEED_STEPS = 32  # sixteenths: two bars
LOOK_BACK = 512  # tokens: with the 1,024 of its last training, endless music came to rest


def hold_out(pieces: Sequence[Piece], _: Sequence[str]) -> list[str]:
    """A split for each piece: validation gets a seeded random choice of pieces that share little with any other.
    Raises StoreError when there are too few."""
    sketch = np.stack([piece.signature for piece in pieces])  # (P, hashes)
    alike = (sketch[:, None] == sketch).mean(-1)  # (P, P)
    np.fill_diagonal(alike, 0)
    alone = np.flatnonzero(alike.max(1) < ALIKE)
    if len(alone) < HELD_OUT:
        raise StoreError(f"only {len(alone)} training pieces are unlike all others, not {HELD_OUT}: give more music")
    held_out = set(np.random.default_rng(0).choice(alone, HELD_OUT, replace=False).tolist())
    return ["validation" if i in held_out else "train" for i in range(len(pieces))]


def selection_store(official: Store, out: Path) -> Store:
    """A new store of the training pieces of `official`, some of them its validation."""
    if not (out / "manifest.json").exists():
        train, tokenizer, pieces = official.split("train"), official.tokenizer, []
        for name, ids in zip(train.names, train, strict=True):
            score = tokenizer.decode(ids)
            pieces.append(Piece(name, np.asarray(ids), tokenizer.seconds(ids), signature(score)))
        corpus = replace(official.manifest.corpus, name=f"{official.manifest.corpus.name}, its training split alone")
        finish(pieces, [], tokenizer, corpus, hold_out, PrepareJsbConfig(out=str(out)))
    store = Store(out, official.tokenizer.name)
    if sum(info.tokens for info in store.manifest.splits.values()) != official.manifest.splits["train"].tokens:
        raise StoreError(f"{out} was made from another store than {official.path}: give that one, or another --out")
    return store


def trained(*words: str) -> Path:
    """The bundle of `musictx train` with these words, trained unless it is there. Exits the script if the run was
    interrupted, or if the folder has a run of other settings."""
    config = settings("train", *words)
    folder = Path(config.out)
    if not RunFolder(folder).is_finished:
        fit(config)
    elif changed := RunFolder(folder).differences(sized_as_bundle(config)):
        sys.exit(f"{folder} was trained with other settings ({', '.join(changed)}): give another --out")
    if not RunFolder(folder).is_finished:
        sys.exit("interrupted: the same command resumes")
    return folder / "model.safetensors"


def learn(recipe: Recipe, store: Store, folder: Path, validations: int, overrides: list[str]) -> Path:
    """Trains both stages of a recipe, each with its whole schedule; returns the second one's bundle. Recipes share
    stages."""
    bundle, name = None, f"dropout-{recipe.dropout:g}"
    for experiment, steps in (("jsb", recipe.steps), ("jsb_whole", recipe.long_steps)):
        name += f"-{steps}"
        words = [f"experiment={experiment}", *COMMON, f"data.path={store.path}", f"out={folder / name}"]
        words += [f"trainer.max_steps={steps}", f"trainer.warmup_steps={max(steps // 20, 1)}"]
        words += [f"trainer.validate_every={max(steps // validations, 1)}", f"model.dropout={recipe.dropout}"]
        print(f"{folder / name}, {experiment}: {steps:,} steps", flush=True)
        bundle = trained(*words, *([f"init_from={bundle}"] if bundle else []), *overrides)
    assert bundle is not None
    return bundle


def load(path: Path) -> tuple[Any, BundleHeader]:
    model, header = load_bundle(path)
    if kind_of(model) != "transformer" or header.model.get("norm") == "post":
        raise BundleError(
            f"{path} is not a Transformer with a last norm, which the temperature needs: leave model= out"
        )
    return model, header


@torch.inference_mode()
def nll_by_temperature(model: Any, split: Split, tokenizer: Tokenizer) -> list[float]:
    """Nats per token of whole pieces, with logits divided by each of `TEMPERATURES`."""
    objective, count = NextToken(tokenizer), 0
    nats = torch.zeros(len(TEMPERATURES), dtype=torch.float64)
    segments = scoring_segments(split, tokenizer, None, model.cycle)
    for numbers in batch_segments(segments, 4096):
        example = scoring_batch(segments, numbers, objective)
        logits = model(*example.inputs)  # (B, T, V)
        for k, temperature in enumerate(TEMPERATURES):
            total, n = objective.loss(lambda *_, at=temperature: logits / at, example)  # noqa: B023 - called here
            nats[k] += total.double()
        count += int(n)
    return (nats / count).tolist()


def compared(recipes: list[Recipe], store: Store, folder: Path, overrides: list[str]) -> list[dict[str, Any]]:
    """Every recipe with its best temperature for the held-out pieces, and their NLL at it; the best recipe first."""
    rows = []
    for recipe in recipes:
        model, _ = load(learn(recipe, store, folder, VALIDATIONS, overrides))
        nll = nll_by_temperature(model, store.split("validation"), store.tokenizer)
        best = min(range(len(nll)), key=lambda k: nll[k])
        row = {"temperature": TEMPERATURES[best], "nll": nll[best], "nll_at_1": nll[TEMPERATURES.index(1.0)]}
        rows.append(recipe._asdict() | row)
        print(said(rows[-1]), flush=True)
        if best in (0, len(nll) - 1):
            print(f"warning: {TEMPERATURES[best]} is the last temperature tried: far from calibrated")
    return sorted(rows, key=lambda row: row["nll"])


def said(row: dict[str, Any]) -> str:
    steps = f"{row['steps']:,} + {row['long_steps']:,} steps, dropout {row['dropout']:g}"
    return f"{steps}: {row['nll']:.4f} at temperature {row['temperature']:.2f}, {row['nll_at_1']:.4f} without"


@torch.no_grad()
def divide_logits(model: Any, temperature: float) -> None:
    """Divides all logits by the temperature, in the weights: the head after the last norm has no bias."""
    model.norm.weight /= temperature
    model.norm.bias /= temperature


def write_bundle(
    source: Path, chosen: dict[str, Any], selection: Store, official: Store, target: Path, script: str
) -> None:
    """Writes the last weights with their temperature as float16, the fits in the header, and the seed beside them."""
    model, header = load(source)
    validation, tokenizer = official.split("validation"), official.tokenizer
    at_1 = negative_log_likelihood(model, validation, tokenizer, None).nll
    divide_logits(model, chosen["temperature"])
    model.load_state_dict({name: x.half().float() for name, x in model.state_dict().items()})  # as loading reads them
    nll = negative_log_likelihood(model, validation, tokenizer, None).nll
    notes = {key: value for key, value in header.notes.items() if key != "name"} | {"made_by": script}
    notes |= {"calibrated": chosen["temperature"], **{name: chosen[name] for name in Recipe._fields}}
    held_out = selection.split("validation").names
    where = f"{len(held_out)} training pieces, and then trained on too; the official splits chose no weights"
    notes |= {"fitted": f"steps, dropout and temperature on {where}", "held_out": held_out}
    notes |= {"val_nll_uncalibrated": at_1}
    corpus = official.manifest.corpus  # the store's present wording
    header = replace(header, corpus=corpus.name, licence=corpus.licence)
    shape = header.model | {"trained_length": min(LOOK_BACK, model.window)}
    target.parent.mkdir(parents=True, exist_ok=True)
    save_bundle(target, model, replace(header, model=shape, val_nll=nll, notes=notes), torch.float16)
    first = official.split("test")[0]
    write_midi(tokenizer.decode(first[: SEED_STEPS * tokenizer.group]), target.with_suffix(".mid"))
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, {said(chosen)}")
    print(f"official validation: {nll:.4f}, {at_1:.4f} without the temperature")


def score(bundle: Path, store: Store, split: str, out: Path) -> None:
    """Writes the figures of `musictx evaluate` as JSON, unless they are there."""
    if not kept(out, {"bundle_sha256": file_hash(bundle)}, split):
        evaluate(f"bundle={bundle}", "data=chorales", f"data.path={store.path}", f"split={split}", f"out={out}")


def made(official: Store, out: Path, fraction: float, overrides: list[str]) -> tuple[dict[str, Any], Store, Path]:
    """The best recipe's row, the store that chose it, and its bundle of all pieces. Raises StoreError."""
    for split in ("train", "validation", "test"):
        if not len(official.split(split)):
            raise StoreError(f"{official.path}: its {split} split is empty: give the store of data_prep/jsb.py")
    selection = selection_store(official, out / "selection")
    scaled = [Recipe(max(round(a * fraction), 1), max(round(b * fraction), 1), dropout) for a, b, dropout in RECIPES]
    rows = compared(list(dict.fromkeys(scaled)), selection, out / "compared", overrides)
    found = {"held_out": selection.split("validation").names, "recipes": rows, "settings": overrides}
    write_json(out / "chorale-selection.json", found)
    recipe = Recipe(*(rows[0][name] for name in Recipe._fields))
    return rows[0], selection, learn(recipe, official, out / "final", 1, overrides)


def score_all(bundle: Path, official: Store, results: Path, test: bool) -> None:
    results.mkdir(parents=True, exist_ok=True)
    for split in ("validation", "test") if test else ("validation",):
        score(bundle, official, split, results / f"chorale-{split}.json")


NAMES = ("store", "out", "bundle", "results", "fraction", "test")  # of the options


def main() -> None:
    args, overrides = asked(options(__doc__, *NAMES, out=Path("outputs/chorales")))
    bundle, official = args.bundle or args.out / "chorale.safetensors", Store(args.store, "chorale")
    row, selection, source = made(official, args.out, args.fraction, overrides)
    write_bundle(source, row, selection, official, bundle, "studies/chorales.py")
    score_all(bundle, official, args.results or args.out, args.test)


if __name__ == "__main__":
    with in_one_line():
        main()
