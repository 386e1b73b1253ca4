"""Fine-tunes the model inside the package on twenty pieces of a person's own: the table of docs/training.md.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/fine_tune.py --jsb outputs/stores/jsb --out outputs/fine-tune

The pieces are Kyries by Palestrina in four voices, from music21's corpus, each from another mass: the first twenty to
learn from, two of them to validate, the next eight held out. Finished runs are kept: the same command resumes.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from maestro import ROOT

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.data.corpora.chorales import read_chorale
from musictx.data.store import Split, Store
from musictx.model.bundle import load_bundle
from musictx.model.shipped import CHORALE, shipped_bundle
from musictx.music.grid import Grid, grid_to_score
from musictx.music.write import write_midi
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.training.run_folder import RunFolder

LEARNT, HELD_OUT = 20, 8
COMMON = ["data=chorales", "tokenizer=chorale", "model.dropout=0.2", "trainer.progress_bar=false"]
WAYS = {
    "all weights, 3e-4": ["trainer.lr=3e-4"],
    "all weights, 1e-4": ["trainer.lr=1e-4"],
    "LoRA of rank 8, 5e-3": ["trainer.lora_rank=8", "trainer.lr=5e-3"],
    "LoRA of rank 32, 3e-3": ["trainer.lora_rank=32", "trainer.lr=3e-3"],
}


def kyries(n: int) -> list[Grid]:
    """The first Kyrie in four voices of each of n masses."""
    import music21

    found: dict[str, Grid] = {}
    for file in sorted((Path(music21.__file__).parent / "corpus/palestrina").glob("Kyrie_*.krn")):
        mass = re.split(r"[_.]", file.name)[1]
        if mass not in found and len(found) < n:
            grid = read_chorale(f"palestrina/{file.name}")
            if not isinstance(grid, str):
                found[mass] = grid
    return list(found.values())


def prepare(out: Path) -> Split:
    """Writes the store of the pieces to learn, as a person would from MIDI files; returns the held-out pieces."""
    grids = kyries(LEARNT + HELD_OUT)
    midi = out / "my_pieces"
    midi.mkdir(parents=True, exist_ok=True)
    for k, grid in enumerate(grids[:LEARNT]):
        write_midi(grid_to_score(grid), midi / f"kyrie-{k:02d}.mid")
    if not (out / "store" / "manifest.json").exists():
        words = [f"path={midi}", f"out={out / 'store'}", "tokenizer=chorale", "test_fraction=0"]
        subprocess.run([sys.executable, str(ROOT / "data_prep/folder.py"), *words], check=True)
    pieces = [ChoraleTokenizer().encode_grid(grid) for grid in grids[LEARNT:]]
    offsets = np.cumsum([0, *map(len, pieces)])
    return Split(np.concatenate(pieces), offsets, [f"held out {k}" for k in range(HELD_OUT)])


def scores(bundle: Path, splits: list[Split]) -> list[float]:
    model, _ = load_bundle(bundle)
    return [negative_log_likelihood(model, split, ChoraleTokenizer(), None).nll for split in splits]


def train(folder: Path, settings: list[str], args: argparse.Namespace) -> float:
    """Trains, and returns the minutes that it took; for a resumed run, those of the last part."""
    steps = [f"trainer.max_steps={args.steps}", f"trainer.validate_every={max(args.steps // 6, 1)}"]
    steps += [f"trainer.warmup_steps={args.steps // 7}", "trainer.sample_every=null", "trainer.precision=bf16-mixed"]
    place = [f"init_from={shipped_bundle(CHORALE)}", f"data.path={args.out / 'store'}", f"out={folder}"]
    words = [sys.executable, "-m", "musictx", "train", *COMMON, *steps, *place, *settings, *args.overrides]
    start = perf_counter()
    if status := subprocess.run(words, check=False).returncode:
        sys.exit(status)
    if not RunFolder(folder).is_finished:
        sys.exit("interrupted: the same command resumes")
    return (perf_counter() - start) / 60


def report(rows: list[dict[str, Any]]) -> str:
    lines = ["| | validation | held out | JSB chorales | minutes |", "|---" * 5 + "|"]
    for row in rows:
        nll = " | ".join(f"{nats:.3f}" for nats in row["nll"])
        minutes = f"{row['minutes']:.1f}" if row["minutes"] else ""
        lines.append(f"| {row['name']} | {nll} | {minutes} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jsb", type=Path, required=True, help="the store that the model learnt first")
    parser.add_argument("--out", type=Path, default=Path("outputs/fine-tune"))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--json", type=Path, default=Path("studies/results/fine-tune.json"))
    args, overrides = parser.parse_known_args()
    args.overrides = overrides
    asked, settings_file = {"steps": args.steps, "overrides": args.overrides}, args.out / "settings.json"
    if settings_file.exists() and json.loads(settings_file.read_text()) != asked:
        sys.exit(f"{args.out} holds runs of other settings ({settings_file.read_text()}): give those, or another --out")
    held_out = prepare(args.out)
    settings_file.write_text(json.dumps(asked))
    splits = [Store(args.out / "store").split("validation"), held_out, Store(args.jsb).split("validation")]
    kept = args.out / "rows.json"
    rows = json.loads(kept.read_text()) if kept.exists() else []
    for name, settings in {"the bundle": None, **WAYS}.items():
        if any(row["name"] == name for row in rows):
            continue
        folder = args.out / name.replace(", ", "-").replace(" ", "-")
        minutes = train(folder, settings, args) if settings else None
        bundle = folder / "model.safetensors" if settings else shipped_bundle(CHORALE)
        rows.append({"name": name, "nll": scores(bundle, splits), "minutes": minutes})
        kept.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(report(rows))


if __name__ == "__main__":
    main()
