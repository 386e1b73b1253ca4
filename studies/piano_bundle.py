"""The bundle of the piano: a mean of two models whose shares validation chooses, and its likelihood on held-out music.

The bundle has float16, and says what its training store says of its music. Filters and guidance come later, by
`alive.py` and `guidance.py`, and change the file but not its tensors. So `score` reads a split once for the same
tensors, and, called again, only keeps the new file's hash.

The rule: of the `SHARES` of the second model whose pop validation is at most `POP_NATS` a token, the one with the
lowest MAESTRO hour. If no share reaches that, the lowest pop validation of those whose hour is no higher than that of
the first model alone. So pop is scored from the lowest hour on, until a share reaches it. Both
models learn pop today, and the limit no longer binds.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from shared import kept

from musictx.commands.evaluate import evaluate, file_hash
from musictx.data.store import Store
from musictx.files import replacing, write_json
from musictx.model.bundle import load_bundle, read_header, save_bundle, tensors_hash, write_header

SEGMENT = 2048  # ids in an input
SHARES = (0.3, 0.5, 0.7, 1.0)
POP_NATS = 2.2  # what was asked


def write_mean(sources: list[Path], shares: list[float], store: Path, target: Path) -> None:
    """Writes the mean of the sources' weights, each with its share; the models are alike."""
    model, header = load_bundle(sources[0])
    weights = {name: x for name, x in model.state_dict().items() if x.is_floating_point()}  # the rest are tables
    mean = {name: torch.zeros_like(x, dtype=torch.float64) for name, x in weights.items()}
    for source, share in zip(sources, shares, strict=True):
        for name, x in load_bundle(source).model.state_dict().items():
            if name in mean:
                mean[name] += share * x.double()
    model.load_state_dict(model.state_dict() | {name: mean[name].to(x.dtype) for name, x in weights.items()})
    corpus = Store(store, header.tokenizer).manifest.corpus
    notes: dict[str, Any] = {"name": "piano", "seed": header.notes.get("seed"), "citation": corpus.citation}
    notes |= {"made_by": "studies/piano.py", "averaged": shares}
    target.parent.mkdir(parents=True, exist_ok=True)
    header = replace(header, corpus=corpus.name, licence=corpus.licence, val_nll=None, notes=notes)
    save_bundle(target, model, header, torch.float16)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, trained on {corpus.name}")


def score(bundle: Path, store: Path, split: str, out: Path) -> dict[str, Any]:
    """The figures of `musictx evaluate`, as they are kept in `out` if these tensors have read the split already."""
    read: dict[str, Any] = {
        "tensors_sha256": tensors_hash(bundle),
        "split_sha256": Store(store).manifest.splits[split].sha256,
        "segment": SEGMENT,
    }
    if known := kept(out, read, split):
        return known
    words = [f"data.path={store}", f"data.segment={SEGMENT}", f"split={split}", f"out={out}"]
    evaluate(f"bundle={bundle}", *words)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) | read
    write_json(out, found)
    return found


def choose(rows: list[dict[str, float]]) -> float:
    """The share by the rule above; each row: share, hour and, where it was needed, pop. The first row is the first
    model alone, share 0."""
    able = [row for row in rows[1:] if row.get("pop", POP_NATS + 1) <= POP_NATS]
    if able:
        return min(able, key=lambda row: row["hour"])["share"]
    return min((row for row in rows if row["hour"] <= rows[0]["hour"]), key=lambda row: row["pop"])["share"]


def shares_by_validation(
    models: list[Path], stores: list[Path], trained_on: Path, tried: Path
) -> list[dict[str, float]]:
    """The row of each share of the second of two models; `tried` is a file that each is written to."""

    def nats(share: float, store: Path) -> float:
        write_mean(models, [1 - share, share], trained_on, tried)
        found: float = score(tried, store, "validation", tried.with_name(f"{share}-{store.name}"))["per_token"][0]
        print(f"share {share:g}, {store.name}: {found:.4f}", flush=True)
        return found

    hour, pop = stores
    rows = [{"share": share, "hour": nats(share, hour)} for share in (0.0, *SHARES)]
    for row in sorted(rows, key=lambda row: row["hour"]):
        row["pop"] = nats(row["share"], pop)
        if row["share"] and row["pop"] <= POP_NATS:
            break
    return rows


def mean_by_validation(models: list[Path], stores: list[Path], trained_on: Path, target: Path, results: Path) -> None:
    """Scores each share of the second of two models on the validation of both stores. Writes the mean of the share that
    the rule takes. A bundle that has these weights already keeps its header, with filters and guidance."""
    shares = results / "piano-shares.json"
    found: dict[str, Any] = json.loads(shares.read_text(encoding="utf-8")) if shares.exists() else {}
    hashes = [tensors_hash(path) for path in models]
    with TemporaryDirectory() as folder:
        tried = Path(folder) / "piano.safetensors"
        if found.get("models") != hashes:
            rows = shares_by_validation(models, stores, trained_on, tried)
            results.mkdir(parents=True, exist_ok=True)
            found = {"rows": rows, "chosen": choose(rows), "models": hashes}
            write_json(shares, found)
        write_mean(models, [1 - found["chosen"], found["chosen"]], trained_on, tried)
        if target.exists() and tensors_hash(target) == tensors_hash(tried):
            print(f"{target}: kept, it has these weights already")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as partial:
            shutil.copy(tried, partial)


def score_all(bundle: Path, store: Path, results: Path, test: bool) -> None:
    """Scores, writes the validation's likelihood into the header and the file's hash into all results."""
    results.mkdir(parents=True, exist_ok=True)
    files = {split: results / f"piano-{split}.json" for split in ("validation", "test")[: 1 + test]}
    found = {split: score(bundle, store, split, out) for split, out in files.items()}
    write_header(bundle, replace(read_header(bundle), val_nll=found["validation"]["per_token"][0]))
    for split, out in files.items():
        write_json(out, found[split] | {"bundle_sha256": file_hash(bundle)})
