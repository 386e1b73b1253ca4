"""The small models of `maestro.py`: about 4 million parameters, equal time or equal steps, the better of two rates.

On a CPU each gets two core-hours. On a GPU each gets the same steps of 32,768 ids, eight times as many as on a CPU,
and rates for that. Every Transformer has the same blocks and learns in windows of 512, 1,024 and 2,048 ids, a third of
the steps each. The LSTM is that of Performance RNN (Simon & Oore 2017), which carries its hidden state from window to
window. The learning rate is held for half of the steps and then falls to zero; every run keeps its last weights.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from budget import musictx, probe, steps_within

from musictx.model.bundle import read_header
from musictx.training.run_folder import RunFolder

COMMON = [
    *("trainer.precision=bf16-mixed", "trainer.schedule=hold", "trainer.decay_share=0.5"),
    *("trainer.weight_decay=0.1", "trainer.keep=last", "trainer.max_epochs=1000000", "trainer.sample_every=null"),
    *("trainer.warmup_steps=50", "trainer.checkpoint_every=100", "trainer.progress_bar=false", "model.dropout=0"),
]
BLOCKS = [
    *("model.d_model=256", "model.n_layers=5", "model.n_heads=4", "model.d_ff=672", "model.mlp=swiglu"),
    *("model.qk_norm=true", "model.value_residual=true", "trainer.optimizer=muon"),
    *("data.length=2048", "data.grow_from=512"),
]
TABLE = ["model.position=relative", "model.max_distance=512", "model.d_ff=512"]
LSTM = ["model=lstm", "model.d_model=400", "trainer.optimizer=adamw", "data.length=256"]
MODELS = {  # all within 5 % of the same number of parameters
    "relative": [*BLOCKS, *TABLE],
    "fourier": [*BLOCKS, "model.position=relative_fourier"],
    "rope": [*BLOCKS, "model.position=rope"],
    "sinusoidal": [*BLOCKS, "model.position=sinusoidal"],
    "lstm": LSTM,
}
RATES = {"cpu": (2e-3, 5e-3), "cuda": (3e-3, 6e-3), "lstm": (1e-3, 4e-3)}  # learning rates tried
TRIED = 0.1  # share of the time for each learning rate
SCORED_H = {
    "train": 1e9,
    "validation": 1.0,
    "test": 1e9,
}  # hours: the validation chooses the rate, the test is reported


class Budget(NamedTuple):
    """What each model gets: hours of one core, or optimizer steps."""

    hours: float
    steps: int | None


def words_of(name: str, device: str) -> list[str]:
    """The words of `musictx train` for a model: 4,096 ids a step on a CPU, 32,768 on a GPU."""
    rows, windows = 8 if device == "cuda" else 1, 16 if name == "lstm" else 2
    words = [*COMMON, *MODELS[name], f"trainer.batch_size={rows * windows}"]
    if device == "cpu":
        return [*words, "trainer=cpu"]
    kernel = ["attention=triton"] if name == "relative" else []
    # a worker that carries a state holds an epoch of its own
    return [*words, "trainer=gpu", f"data.workers={1 if name == 'lstm' else 2}", *kernel]


def train_small(
    names: Sequence[str], device: str, budget: Budget, store: Path, out: Path, minutes: float, more: Sequence[str]
) -> list[Path]:
    """Trains the models in turn; returns the finished folders. A JSON file beside a model's runs records the rates
    tried and their cost."""
    end, finished = monotonic() + 60 * minutes, []
    for name in names:
        words = ["train", "experiment=maestro", f"name={name}", f"data.path={store}", *words_of(name, device), *more]
        noted = out / f"{name}.json"
        note: dict[str, Any] = {**budget._asdict(), "words": words, "runs": {}}
        if noted.exists():
            note = json.loads(noted.read_text())
        if (note.get("hours"), note.get("steps"), note["words"]) != (*budget, words):
            sys.exit(f"{noted} tells of other settings: give those again, or another --out")
        rates = RATES["lstm" if name == "lstm" else device]
        done = all(learn(note, noted, f"trial-{lr:g}", lr, TRIED, end) for lr in rates)
        if done:
            lr = min(rates, key=lambda rate: note["runs"][f"trial-{rate:g}"]["nll"])
            done = learn(note, noted, "whole", lr, 1.0, end)
        if not done:
            print(f"{name} is not finished: give the same command again")
            break
        finished.append(out / f"{name}-whole")
    return finished


def learn(note: dict[str, Any], noted: Path, label: str, lr: float, share: float, end: float) -> bool:
    """Starts or resumes a run until the clock says `end`; returns whether it is finished. Keeps `note` up to date."""
    folder = noted.with_name(f"{noted.stem}-{label}")

    def words(steps: int, place: Path) -> list[str]:
        lengths = [f"trainer.max_steps={steps}", f"trainer.validate_every={steps}"]
        return [*note["words"], f"out={place}", f"trainer.lr={lr}", *lengths]

    if note.get("steps") is None and "probes" not in note:
        short = noted.with_name("probe")
        note["probes"] = probe(short, lambda few: musictx([*words(few, short), "overwrite=true"]).cpu_s)
    if label not in note["runs"]:
        whole = note.get("steps")
        steps = steps_within(share * 3600 * note["hours"], note["probes"]) if whole is None else round(share * whole)
        note["runs"][label] = {"lr": lr, "steps": steps, "cpu_s": 0.0, "wall_s": 0.0}
    run, finished = note["runs"][label], RunFolder(folder).is_finished
    if not finished and (start := monotonic()) < end:
        spent = musictx(words(run["steps"], folder), end - start)
        run["cpu_s"] = round(run["cpu_s"] + spent.cpu_s, 1)
        run["wall_s"] = round(run.get("wall_s", 0.0) + monotonic() - start, 1)
        finished = spent.ended
    if finished:
        run["nll"] = read_header(folder / "model.safetensors").val_nll
    noted.write_text(json.dumps(note, indent=1), encoding="utf-8")
    return finished
