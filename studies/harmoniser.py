"""The harmoniser inside the package, from the store to the bundle; stopped at any moment, the same command resumes.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/harmoniser.py                          # ten to twelve core-minutes; a trial: trainer.max_steps=2
    python studies/harmoniser.py --test --bundle musictx/bundles/harmoniser.safetensors --results studies/results

Both stages learn the training split, `experiment=harmoniser` and then `harmoniser_whole`, and keep the weights of the
best official validation. The test split is read only with `--test`, once for a bundle. Settings of `musictx train`
(key=value) hold for both stages. The bundle holds float16.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
from chorales import options, score, trained

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.evaluate import scored_by
from musictx.config.app import parse_options
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import StoreError
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import save_bundle

STAGES = ("harmoniser", "harmoniser_whole")
COMMON = ["trainer.progress_bar=false", "trainer.checkpoint_every=100"]


def learn(store: Path, folder: Path, overrides: list[str]) -> Path:
    """Trains both stages; returns the second one's bundle."""
    begun: list[str] = []
    for stage in STAGES:
        out = folder / stage
        bundle = trained(f"experiment={stage}", *COMMON, f"data.path={store}", f"out={out}", *begun, *overrides)
        begun = [f"init_from={bundle}"]
    return bundle


def write_bundle(source: Path, store: Store, target: Path) -> None:
    """Writes the weights as float16, with their validation NLL in the header."""
    opened = open_bundle(source, continues=False)
    model, header = opened.model, opened.header
    model.load_state_dict({name: x.half().float() for name, x in model.state_dict().items()})  # as loading reads them
    _, objective = scored_by(str(source), opened, None)
    validation = store.split("validation")
    nll = negative_log_likelihood(model, validation, opened.tokenizer, None, objective=objective).nll
    notes = {key: value for key, value in header.notes.items() if key != "name"} | {"made_by": "studies/harmoniser.py"}
    notes |= {"fitted": "the training split; the official validation chose among the weights of each stage"}
    corpus = store.manifest.corpus
    target.parent.mkdir(parents=True, exist_ok=True)
    header = replace(header, corpus=corpus.name, licence=corpus.licence, val_nll=nll, notes=notes)
    save_bundle(target, model, header, torch.float16)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, validation {nll:.4f} nats a token of the lower voices")


def main() -> None:
    parser = options(__doc__, "outputs/harmoniser", "harmoniser")
    args, overrides = parse_options(parser, sys.argv[1:])
    bundle, results = args.bundle or args.out / "harmoniser.safetensors", args.results or args.out
    store = Store(args.store, "chorale")
    for split in ("train", "validation", "test"):
        if not len(store.split(split)):
            raise StoreError(f"{args.store}: its {split} split is empty: give the store of data_prep/jsb.py")
    write_bundle(learn(args.store, args.out, overrides), store, bundle)
    results.mkdir(parents=True, exist_ok=True)
    for split in ("validation", "test") if args.test else ("validation",):
        found = results / f"harmoniser-{split}.json"
        score(bundle, store, split, found)
        low, high = json.loads(found.read_text())["per_token"][1:]
        print(f"{split}: {low:.3f} to {high:.3f} in 95 % of resamples of the pieces")


if __name__ == "__main__":
    with in_one_line():
        main()
