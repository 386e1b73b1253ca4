"""What do transposition and the random seed do to the chorale model? Three training seeds, with and without it.

    python studies/transposition.py --test trainer.accelerator=cuda       # resumes

All six learn the 229 training pieces by the recipe that `chorales.py` chose with transposition. As there, 20 training
pieces held out choose the temperature, once with and once without transposition. Intervals are over pieces, of the mean
of three random seeds. The test split is read only with `--test`, once for each model.
"""

from pathlib import Path
from typing import Any

import numpy as np
import timed
import torch
from chorales import TEMPERATURES, Recipe, divide_logits, learn, load, nll_by_temperature, selection_store
from shared import asked, options

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.evaluate import file_hash
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.model.bundle import save_bundle

RECIPE = Recipe(3000, 400, 0.2)
SEMITONES, SEEDS = {"transposed": 5, "as written": 0}, (0, 1, 2)


def main() -> None:
    args, overrides = asked(options(__doc__, "store", "out", "fraction", "test", out=Path("outputs/transposition")))
    official, runs = Store(args.store, "chorale"), timed.Runs(args.out / "transposition.json")
    steps, long_steps = (max(round(n * args.fraction), 1) for n in RECIPE[:2])
    recipe = Recipe(steps, long_steps, RECIPE.dropout)

    def learned(name: str, store: Store, seed: int) -> Path:
        words = [f"data.transpose={SEMITONES[name]}", f"random_seed={seed}", *overrides]
        return learn(recipe, store, args.out / f"{name} {seed} {store.path.name}", 1, words)

    def temperature(name: str) -> dict[str, Any]:
        store = selection_store(official, args.out / "selection")
        model, _ = load(learned(name, store, SEEDS[0]))
        nll = nll_by_temperature(model, store.split("validation"), store.tokenizer)
        return {"temperature": TEMPERATURES[int(np.argmin(nll))], "nll": nll}

    def measured(name: str, split: str, logits_by: float) -> dict[str, Any]:
        of_seed: list[dict[str, Any]] = []
        for seed in SEEDS:
            bundle = args.out / f"{name} {seed}.safetensors"
            if not bundle.exists():
                save_bundle(bundle, *load(learned(name, official, seed)), torch.float16)
            model, _ = load(bundle)
            divide_logits(model, logits_by)
            found = negative_log_likelihood(model, official.split(split), official.tokenizer, None)
            of_seed.append({"sha256": file_hash(bundle), "nll": found.nll, "nats": found.nats})
        mean = np.mean([seed.pop("nats") for seed in of_seed], 0)
        return {"nll": interval(mean, found.tokens_of), "seeds": of_seed}

    for name in SEMITONES:
        best = runs.get(f"{name}, held out", lambda name=name: temperature(name))["temperature"]  # type: ignore[misc]
        for split in ("validation", "test") if args.test else ("validation",):
            for by in (best, 1.0) if split == "validation" else (best,):
                key = f"{name}, {split}, temperature {by:g}"
                row = runs.get(key, lambda name=name, split=split, by=by: measured(name, split, by))  # type: ignore[misc]
                print(f"{key}: {row['nll']}, seeds {[seed['nll'] for seed in row['seeds']]}", flush=True)


if __name__ == "__main__":
    with in_one_line():
        main()
