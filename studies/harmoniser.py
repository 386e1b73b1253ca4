"""The harmoniser inside the package, from the store to the bundle. If it was stopped, the same command resumes.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/harmoniser.py                          # 70 minutes of a core; a trial: trainer.max_steps=2
    python studies/harmoniser.py --test --bundle musictx/bundles/harmoniser.safetensors --results studies/results

Both stages learn the training split, `experiment=harmoniser` and then `harmoniser_whole`, and keep the weights of the
best official validation. The figures are nats a token of Bach's own voices, for each set of voices that may be given.
The test split is read only with `--test`, once for a bundle. Settings of `musictx train` (key=value) are for both
stages. The bundle's weights are float16.
"""

from dataclasses import replace
from pathlib import Path

import torch
from chorales import trained
from shared import asked, kept, options

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.evaluate import file_hash
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import StoreError
from musictx.files import write_json
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import save_bundle
from musictx.music.grid import VOICE_SETS
from musictx.objectives.voices import Voices

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
    below = Voices(opened.tokenizer, "S")
    nll = negative_log_likelihood(model, store.split("validation"), opened.tokenizer, None, objective=below).nll
    notes = {key: value for key, value in header.notes.items() if key != "name"} | {"made_by": "studies/harmoniser.py"}
    notes |= {"fitted": "the training split; the official validation chose among the weights of each stage"}
    corpus = store.manifest.corpus
    target.parent.mkdir(parents=True, exist_ok=True)
    header = replace(header, corpus=corpus.name, licence=corpus.licence, val_nll=nll, notes=notes)
    save_bundle(target, model, header, torch.float16)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, validation {nll:.4f} nats a token of the lower voices")


def score(bundle: Path, store: Store, name: str, out: Path) -> dict[str, Interval]:
    """Nats a token of the other voices, by the voices given; kept beside the bundle's hash, and not measured again."""
    of = {"bundle_sha256": file_hash(bundle), "split": name}
    if known := kept(out, of, name):
        return {given: Interval(*figures) for given, figures in known["given"].items()}
    (model, tokenizer, _), split, found = open_bundle(bundle, continues=False), store.split(name), {}
    for given in VOICE_SETS:
        nats = negative_log_likelihood(model, split, tokenizer, None, objective=Voices(tokenizer, given))
        found[given] = interval(nats.nats, nats.tokens_of)
    write_json(out, of | {"pieces": len(split), "per_token": found["S"], "given": found})
    return found


def main() -> None:
    names = ("store", "out", "bundle", "results", "test")
    args, overrides = asked(options(__doc__, *names, out=Path("outputs/harmoniser")))
    bundle, results = args.bundle or args.out / "harmoniser.safetensors", args.results or args.out
    store = Store(args.store, "chorale")
    for split in ("train", "validation", "test"):
        if not len(store.split(split)):
            raise StoreError(f"{args.store}: its {split} split is empty: give the store of data_prep/jsb.py")
    write_bundle(learn(args.store, args.out, overrides), store, bundle)
    results.mkdir(parents=True, exist_ok=True)
    for split in ("validation", "test") if args.test else ("validation",):
        for given, nats in score(bundle, store, split, results / f"harmoniser-{split}.json").items():
            print(f"{split}, {given} given: {nats.mean:.3f} nats a token, {nats.low:.3f} to {nats.high:.3f}")


if __name__ == "__main__":
    with in_one_line():
        main()
