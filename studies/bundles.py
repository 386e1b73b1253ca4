"""Shared by the studies that make a bundle of the package: a training that resumes, the file, and its figures."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from musictx.commands.evaluate import evaluate, file_hash
from musictx.config.app import settings
from musictx.data.store import Store
from musictx.errors import BundleError, StoreError
from musictx.files import replacing, write_json
from musictx.model.bundle import add_notes, load_bundle, save_bundle, write_header
from musictx.model.header import BundleHeader, read_header
from musictx.model.tensors import tensors_hash
from musictx.terminal import say
from musictx.training.fit import fit
from musictx.training.run_folder import RunFolder
from musictx.training.start import sized_as_bundle

Figures = dict[str, Any]
OWN = ("experiment", "data.path", "out", "init_from", "overwrite", "resume", "trainer.progress_bar")  # of `trained`


def chorales(path: Path) -> Store:
    """The store of data_prep/jsb.py. Raises StoreError for one without a split."""
    store = Store(path, "chorale")
    for split in ("train", "validation", "test"):
        if not len(store.split(split)):
            raise StoreError(f"{path}: its {split} split is empty: give the store of data_prep/jsb.py")
    return store


def trained(names: Sequence[str], store: Store, folder: Path, init: Path | None, overrides: list[str]) -> Path:
    """The bundle of these experiments, trained one after the other unless they are there. Exits the script if a run was
    interrupted, or if its folder has a run of other settings."""
    for name in names:
        words = [f"experiment={name}", f"data.path={store.path}", f"out={folder / name}", "trainer.sample_every=null"]
        words += [*([f"init_from={init}"] if init else []), *overrides]
        config, out = settings("train", *words, "trainer.progress_bar=false"), RunFolder(folder / name)
        say(" ".join(["$ musictx train", *words]), flush=True)
        if not out.is_finished:
            fit(config)
        elif changed := out.differences(sized_as_bundle(config)):
            sys.exit(f"{folder / name} was trained with other settings ({', '.join(changed)}): give another --out")
        else:
            say(f"{folder / name}: found, not trained again")
        if not out.is_finished:
            sys.exit("interrupted: the same command resumes")
        init = folder / name / "model.safetensors"
    assert init is not None
    return init


def write_bundle(target: Path, model: Any, header: BundleHeader, store: Store, **notes: Any) -> None:
    """Writes the weights as float16; the header says what the store says of its music. A bundle that has these weights
    already keeps its header, with filters and guidance. Raises BundleError for one with other weights."""
    halves = {name: x.half().float() if x.is_floating_point() else x for name, x in model.state_dict().items()}
    if target.exists():
        there = load_bundle(target).model.state_dict()
        if there.keys() == halves.keys() and all(torch.equal(there[name], x) for name, x in halves.items()):
            say(f"{target}: found, it has these weights already")
            return
        raise BundleError(f"{target} is there and has other weights", "remove it, or give another --out")
    corpus = store.manifest.corpus
    notes = {name: value for name, value in header.notes.items() if name != "name"} | notes
    header = replace(header, corpus=corpus.name, licence=corpus.licence, val_nll=None, notes=notes)
    save_bundle(target, model, header, torch.float16)
    say(f"{target}: {target.stat().st_size / 1e6:.1f} MB, trained on {corpus.name}")


def with_notes(bundle: Path, target: Path, **notes: Any) -> None:
    """The bundle again, under another name, with more notes in its header. Raises BundleError for a file that is
    there."""
    if target.exists():
        raise BundleError(f"{target} is there already", "give another --out")
    with replacing(target) as partial:
        shutil.copyfile(bundle, partial)
        add_notes(partial, **notes)
    say(f"{target}: {', '.join(f'{name}={value}' for name, value in notes.items())}")


def evaluated(bundle: Path, store: Store, segment: int | None, split: str, out: Path) -> Figures:
    """The figures of `musictx evaluate`, which it writes."""
    words = [
        f"data.path={store.path}",
        f"data.segment={segment or 'null'}",
        f"split={split}",
        f"out={out}",
        "overwrite=true",
    ]
    evaluate(f"bundle={bundle}", *words)
    found: Figures = json.loads(out.read_text(encoding="utf-8"))
    return found


def score_all(
    bundle: Path, store: Store, results: Path, name: str, test: bool, measure: Callable[[str, Path], Figures]
) -> None:
    """Writes the figures of validation, and of test if that is asked, validation's likelihood into a header that has
    none, and the file's hash into all results. Filters and guidance come later and change the file, but not its
    tensors. So a split is read once for the same tensors; called again, this only keeps the new file's hash."""
    found: dict[Path, Figures] = {}
    for split in ("validation", "test")[: 1 + test]:
        out = results / f"{name}-{split}.json"
        read = {"tensors_sha256": tensors_hash(bundle), "split_sha256": store.manifest.splits[split].sha256}
        known: Figures = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        if known.items() >= read.items():
            say(f"{out}: found, this model has read the {split} split already; another --out measures anew")
            found[out] = known
        else:
            found[out] = measure(split, out) | read
    header, validation = read_header(bundle), found[results / f"{name}-validation.json"]
    if header.val_nll is None:
        write_header(bundle, replace(header, val_nll=validation["per_token"][0]))
    for out, figures in found.items():
        write_json(out, figures | {"bundle_sha256": file_hash(bundle)})
        nats = figures["per_token"]
        say(f"{out}: {nats[0]:.3f} nats a token, {nats[1]:.3f} to {nats[2]:.3f}")
