"""A planted motif: eight notes return after L ids of other music. Which kinds of model find them again, and how far?

    python studies/planted_motif.py --out outputs/planted     # stopped, the same command resumes; two hours of a core

A piece in the performance encoding is a motif of eight notes, L ids of other notes, and the motif again: as it was, or
moved by up to five semitones. A louder velocity comes before both, so a model knows when to remember. All notes are
drawn at random, one after the other, so only memory predicts the return. Training pieces have L of 32 to 448 and
differ in every step; pieces of L = 512 to 2,048 ask for more than the windows of training.

The figure is the share of right guesses of pitch and length in the second half of the return, where a few notes have
said which motif it is and how far it moved. Chance is the same share where another motif came first. All models train
for as many CPU seconds.

The rule that chooses a learning rate: of `RATES` the one with the most right guesses after random seed 0, over the
lengths of training. Neighbours of a rate at the edge are tried too, until both neighbours of the best are worse. The
table has `SEEDS` other random seeds with that rate.
"""

import argparse
import json
import math
from pathlib import Path
from time import process_time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from musictx.config.app import in_one_line
from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.model.build import build_model, model_config
from musictx.tokenizers import build_tokenizer
from musictx.training.optimizer import build_optimizer

VOCAB = build_tokenizer("performance").vocab
LEARNED = (32, 64, 128, 256, 448)  # L of training
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
NOTES, MOVES, PITCHES, TIMES = 8, (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5), (48, 73), (10, 20, 30, 40)
STEP_IDS, CPU_S, SCORED = 2048, 60.0, 64  # ids a step, CPU seconds of a training, pieces for each length
WHATS = ("as it was", "moved")
RATES, SEEDS = (1e-3, 2e-3, 4e-3), (1, 2, 3, 4, 5)
WIDTH: dict[str, Any] = {"d_model": 96, "n_layers": 2, "n_heads": 4, "d_ff": 192, "dropout": 0.0, "max_distance": 512}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # about 190 thousand parameters each; a table has more distances
    "table": ("transformer", WIDTH | {"position": "relative"}),
    "Fourier": ("transformer", WIDTH | {"position": "relative_fourier"}),
    "RoPE": ("transformer", WIDTH | {"position": "rope"}),
    "sines": ("transformer", WIDTH | {"position": "sinusoidal"}),
    "learned": ("transformer", WIDTH | {"position": "learned", "max_positions": 512}),
    "no position": ("transformer", WIDTH | {"position": "none"}),
    "LSTM": ("recurrent", {"d_model": 96, "n_layers": 2, "dropout": 0.0}),
    "LSTM, attention": (
        "recurrent",
        {"d_model": 88, "n_layers": 2, "dropout": 0.0, "additive": True, "d_attention": 64, "window": 512},
    ),
}


def notes_of(pitch: np.ndarray, time: np.ndarray) -> np.ndarray:
    """(…, N) pitches and steps of 10 ms -> (…, 3 N) ids: each note begins, lasts and ends."""
    kinds = VOCAB.id("NOTE_ON", 0) + pitch, VOCAB.id("TIME_SHIFT", 1) - 1 + time, VOCAB.id("NOTE_OFF", 0) + pitch
    return np.stack(kinds, -1).reshape(*pitch.shape[:-1], -1)


def pieces(n: int, length: int, rng: np.random.Generator, moving: float = 0.5, stranger: bool = False) -> np.ndarray:
    """(n, T) ids of pieces whose motif returns after `length` ids, a share of them `moving`; `stranger`: another motif
    came first."""
    pitch, time = rng.integers(*PITCHES, (n, NOTES)), rng.choice(TIMES, (n, NOTES))
    between = math.ceil(length / 3)
    other = notes_of(rng.integers(*PITCHES, (n, between)), rng.choice(TIMES, (n, between)))[:, :length]
    moved = rng.choice(MOVES, (n, 1)) * (rng.random((n, 1)) < moving)
    first = notes_of(pitch, time)
    if stranger:
        first = notes_of(rng.integers(*PITCHES, (n, NOTES)), rng.choice(TIMES, (n, NOTES)))
    loud, soft = (np.full((n, 1), VOCAB.id("VELOCITY", at)) for at in (28, 16))
    bos = np.full((n, 1), VOCAB.bos)
    return np.concatenate([bos, loud, first, soft, other, loud, notes_of(pitch + moved, time)], 1)


def step_loss(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """The mean loss of the return's ids, after its first note."""
    logits = model(ids[:, :-1])[:, -3 * (NOTES - 1) :]
    return F.cross_entropy(logits.flatten(0, 1), ids[:, -3 * (NOTES - 1) :].flatten())


@torch.inference_mode()
def accuracy(model: Any, length: int, rng: np.random.Generator, moving: float, stranger: bool = False) -> float | None:
    """The share of right guesses in the second half of the return; None where the model has too few positions."""
    right = []
    for part in range(0, SCORED, 16):
        ids, half = torch.from_numpy(pieces(min(16, SCORED - part), length, rng, moving, stranger)), 3 * NOTES // 2
        try:
            guesses = model(ids[:, :-1])[:, -half:].argmax(-1)
        except ConfigError:  # of max_positions
            return None
        same = (guesses == ids[:, -half:]).unflatten(1, (-1, 3))[..., :2]  # an end follows from its beginning
        right.append(same.float().mean().item())
    return float(np.mean(right))


def train(kind: str, rate: float, seed: int, cpu_s: float) -> dict[str, Any]:
    """The accuracies of one model by length, and of its chance, after so much CPU time: the rate rises for a thirtieth
    of it, and falls to zero over its second half."""
    name, settings = KINDS[kind]
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 1])
    model: Any = build_model(model_config(name, settings, vocab_size=VOCAB.size))
    optimizer = build_optimizer(model, "muon", rate, 0.0)
    began, steps = process_time(), 0
    while (done := (process_time() - began) / cpu_s) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(30 * done + 0.01, 2 * (1 - done), 1.0)
        length = int(rng.choice(LEARNED))
        loss = step_loss(model, torch.from_numpy(pieces(STEP_IDS // (length + 52), length, rng)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    model.eval()
    test = np.random.default_rng([seed, 2])
    found: dict[str, Any] = {}
    for name, moving, stranger in (("as it was", 0.0, False), ("moved", 1.0, False), ("chance", 0.5, True)):
        found[name] = {length: accuracy(model, length, test, moving, stranger) for length in LENGTHS}
    size = sum(p.numel() for p in model.parameters())
    return found | {"steps": steps, "parameters": size}


class Runs:
    """All runs so far, in one file."""

    def __init__(self, path: Path, cpu_s: float) -> None:
        self.path, self.cpu_s = path, cpu_s
        self.known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def get(self, kind: str, rate: float, seed: int) -> dict[str, Any]:
        key = f"{kind}, {rate:g}, {seed}, {self.cpu_s:g} s"
        if key not in self.known:
            self.known[key] = json.loads(json.dumps(train(kind, rate, seed, self.cpu_s)))
            with replacing(self.path) as partial:
                partial.write_text(json.dumps(self.known, indent=0), encoding="utf-8")
            print(
                key,
                f"{near(self.known[key]):.3f}",
                self.known[key]["as it was"],
                self.known[key]["moved"],
                f"{self.known[key]['steps']} steps",
                flush=True,
            )
        found: dict[str, Any] = self.known[key]
        return found


def near(run: dict[str, Any]) -> float:
    """The mean accuracy over the lengths of training, as it was and moved."""
    known = [str(length) for length in LENGTHS if length <= max(LEARNED)]
    return float(np.mean([run[what][length] for what in WHATS for length in known]))


def best_rate(kind: str, runs: Runs) -> float:
    """The rate by the rule above."""
    tried = {rate: near(runs.get(kind, rate, 0)) for rate in RATES}
    while True:
        best = max(tried, key=lambda rate: tried[rate])
        if best == min(tried):
            tried[best / 2] = near(runs.get(kind, best / 2, 0))
        elif best == max(tried):
            tried[best * 2] = near(runs.get(kind, best * 2, 0))
        else:
            return best


def paint(table: dict[str, dict[str, Any]], path: Path) -> None:
    """Accuracy by length: the mean of the random seeds, and from the lowest to the highest."""
    figure, both = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    guessed = {n: [x for row in table.values() for x in row["chance"][str(n)] if x is not None] for n in LENGTHS}
    guessed = {n: each for n, each in guessed.items() if each}  # a table of positions ends
    for axes, what in zip(both, WHATS, strict=True):
        for kind, row in table.items():
            known = {int(length): each for length, each in row[what].items() if None not in each}
            (line,) = axes.plot(list(known), [np.mean(each) for each in known.values()], marker="o", label=kind)
            low, high = ([f(each) for each in known.values()] for f in (min, max))
            axes.fill_between(list(known), low, high, color=line.get_color(), alpha=0.15, lw=0)
        axes.plot(list(guessed), [np.mean(each) for each in guessed.values()], color="black", ls=":", label="chance")
        axes.axvline(max(LEARNED), color="grey", lw=0.8)
        axes.set_xscale("log", base=2)
        axes.set(xticks=LENGTHS, xticklabels=LENGTHS, ylim=(0, 1.02), title=f"the motif returns {what}")
        axes.set_xlabel("ids between motif and return; the line: the longest in training")
    both[0].set_ylabel("right guesses in the return")
    both[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=110)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("outputs/planted"))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--cpu-s", type=float, default=CPU_S)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    runs, table = Runs(args.out / "runs.json", args.cpu_s), {}
    for kind in args.kinds:
        rate = best_rate(kind, runs)
        each = [runs.get(kind, rate, seed) for seed in SEEDS]
        table[kind] = {"rate": rate, "parameters": each[0]["parameters"], "steps": [run["steps"] for run in each]}
        for what in (*WHATS, "chance"):
            table[kind][what] = {str(n): [run[what][str(n)] for run in each] for n in LENGTHS}
        with replacing(args.out / "planted-motif.json") as partial:
            partial.write_text(json.dumps(table, indent=1), encoding="utf-8")
        paint(table, args.out / "planted-motif.png")
    print(f"{args.out}: planted-motif.json and planted-motif.png")


if __name__ == "__main__":
    in_one_line(run)
