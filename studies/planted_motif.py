"""A planted motif: eight notes return after L ids of other music. Which kinds of model find them again, and how far?

    OMP_NUM_THREADS=1 python studies/planted_motif.py --out outputs/planted   # resumes; an hour and a half of a core

A piece in the performance encoding is a motif of eight notes, L ids of other notes, and the motif again. It returns as
it was, or transposed by up to five semitones. A louder velocity comes before both, so a model knows when to remember.
All notes are drawn at random, one after the other, so only memory predicts the return. Only the return is trained,
after its first note; training pieces have L of 33 to 447 and differ in every step. L of 513 and more asks for what no
training window had. All models train for as many CPU seconds.

The figure is the share of right pitches in the second half of the return, each guessed after the true notes before it.
The first half has said which motif it is and how far it moved. A model that copies without transposing has 1 and 0.
Chance is the share where another motif came first. The shares of right note lengths are kept beside them.

The rule that chooses a learning rate: of `RATES` the one with the most right pitches after random seed 0, over the
lengths of training. Beyond the best at an edge, half or twice the rate is tried too, until both neighbours of the best
are no better. The table has `SEEDS` other random seeds with that rate.
"""

from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import timed
import torch
import torch.nn.functional as F
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.model.build import build_model, model_config
from musictx.system import processor
from musictx.tokenizers import build_tokenizer
from musictx.viz.figure import new_figure, save_figure

VOCAB = build_tokenizer("performance").vocab
LEARNED = (33, 63, 129, 255, 447)  # L of training: whole notes
LENGTHS = (*LEARNED, 513, 1023, 2049)
NOTES, STEPS, PITCHES, TIMES = 8, (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5), (48, 73), (10, 20, 30, 40)
WHATS = {"as it was": 0.0, "transposed": 1.0}  # the share of returns that are transposed
CHANCE = "chance"
STEP_IDS, SECONDS, SCORED = 2048, 60.0, 64  # ids a step, CPU seconds of a training, pieces for each length
RATES, SEEDS = (1e-3, 2e-3, 4e-3), (1, 2, 3, 4, 5)
WIDTH: dict[str, Any] = {"d_model": 96, "n_layers": 2, "n_heads": 4, "d_ff": 192, "dropout": 0.0, "max_distance": 512}
CELLS: dict[str, Any] = {"n_layers": 2, "dropout": 0.0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # 187 to 194 thousand parameters; learned 236, a table 286
    "table": ("transformer", WIDTH | {"position": "relative"}),
    "Fourier": ("transformer", WIDTH | {"position": "relative_fourier"}),
    "RoPE": ("transformer", WIDTH | {"position": "rope"}),
    "sines": ("transformer", WIDTH | {"position": "sinusoidal"}),
    "learned": ("transformer", WIDTH | {"position": "learned", "max_positions": 512}),
    "no position": ("transformer", WIDTH | {"position": "none"}),
    "LSTM": ("recurrent", CELLS | {"d_model": 96}),
    "LSTM, attention": ("recurrent", CELLS | {"d_model": 88, "additive": True, "d_attention": 64, "window": 2200}),
}


def notes_of(pitch: np.ndarray, time: np.ndarray) -> np.ndarray:
    """(…, N) pitches and steps of 10 ms -> (…, 3 N) ids: each note begins, lasts and ends."""
    kinds = VOCAB.id("NOTE_ON", 0) + pitch, VOCAB.id("TIME_SHIFT", 1) - 1 + time, VOCAB.id("NOTE_OFF", 0) + pitch
    return np.stack(kinds, -1).reshape(*pitch.shape[:-1], -1)


def pieces(
    n: int, length: int, rng: np.random.Generator, transposed: float = 0.5, stranger: bool = False
) -> np.ndarray:
    """(n, T) ids of pieces whose motif returns after `length` ids, a share of them `transposed`; `stranger`: another
    motif came first."""
    pitch, time = rng.integers(*PITCHES, (n, NOTES)), rng.choice(TIMES, (n, NOTES))
    other = notes_of(rng.integers(*PITCHES, (n, length // 3)), rng.choice(TIMES, (n, length // 3)))
    moved = rng.choice(STEPS, (n, 1)) * (rng.random((n, 1)) < transposed)
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
def accuracy(model: Any, what: str, length: int, seed: int) -> tuple[float, float] | None:
    """The shares of right pitches and of right note lengths in the second half of returns that are as `what` says, or
    `chance`; None where the model has too few positions. All models get the same pieces."""
    rng = np.random.default_rng([seed, length, [*WHATS, CHANCE].index(what)])
    half, right = 3 * NOTES // 2, []
    for _ in range(SCORED // 16):
        ids = torch.from_numpy(pieces(16, length, rng, WHATS.get(what, 0.5), stranger=what == CHANCE))
        if (logits := timed.within_positions(partial(model, ids[:, :-1]))) is None:
            return None
        guesses = logits[:, -half:].argmax(-1)
        same = (guesses == ids[:, -half:]).unflatten(1, (-1, 3))  # (16, notes, 3): begins, lasts, ends
        right.append(same[..., :2].float().mean((0, 1)))
    pitch, time = torch.stack(right).mean(0).tolist()
    return pitch, time


def train(kind: str, rate: float, seed: int, seconds: float) -> dict[str, Any]:
    """The accuracies of one model by length after so much CPU time."""
    name, settings = KINDS[kind]
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 1])
    model: Any = build_model(model_config(name, settings, vocab_size=VOCAB.size))

    def loss() -> torch.Tensor:
        length = int(rng.choice(LEARNED))
        return step_loss(model, torch.from_numpy(pieces(STEP_IDS // (length + 52), length, rng)))

    found: dict[str, Any] = {"steps": timed.learn(model, loss, rate, timed.shares(seconds))}
    found |= {"parameters": sum(p.numel() for p in model.parameters()), "processor": str(processor())}
    return found | {what: {n: accuracy(model, what, n, seed) for n in LENGTHS} for what in (*WHATS, CHANCE)}


def near(run: dict[str, Any]) -> float:
    """The mean share of right pitches over the lengths of training, as it was and transposed."""
    return float(np.mean([run[what][str(length)][0] for what in WHATS for length in LEARNED]))


def plot(table: dict[str, dict[str, Any]], path: Path) -> None:
    """Right pitches by length: the mean of the random seeds, and from the lowest to the highest."""
    figure = new_figure(10, 4)
    both = figure.subplots(1, 2, sharey=True)
    guessed = {n: [x[0] for row in table.values() for x in row[CHANCE][str(n)] if x is not None] for n in LENGTHS}
    guessed = {n: each for n, each in guessed.items() if each}  # a table of positions ends
    for axes, what in zip(both, WHATS, strict=True):
        for kind, row in table.items():
            shares = {int(n): [x[0] for x in each] for n, each in row[what].items() if None not in each}
            (line,) = axes.plot(list(shares), [np.mean(each) for each in shares.values()], marker="o", label=kind)
            low, high = ([f(each) for each in shares.values()] for f in (min, max))
            axes.fill_between(list(shares), low, high, color=line.get_color(), alpha=0.15, lw=0)
        axes.plot(list(guessed), [np.mean(x) for x in guessed.values()], color="black", ls=":", label=CHANCE)
        axes.axvline(max(LEARNED), color="grey", lw=0.8)
        axes.set_xscale("log", base=2)
        axes.set(ylim=(0, 1.02), title=f"the motif returns {what}")
        axes.set_xticks(LENGTHS, [f"{n:,}" for n in LENGTHS], rotation=90)
        axes.minorticks_off()
    figure.supxlabel("ids between motif and return; grey line: the longest in training", fontsize="medium")
    both[0].set_ylabel("right pitches in the return")
    both[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save_figure(figure, path)


def main() -> None:
    args = options(__doc__, "out", "seconds", out=Path("outputs/planted"), seconds=SECONDS).parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    runs, table = timed.Runs(args.out / "runs.json"), dict[str, dict[str, Any]]()
    for kind in KINDS:

        def run_of(rate: float, seed: int, kind: str = kind) -> dict[str, Any]:
            settings = crc32(repr((KINDS[kind], LENGTHS, LEARNED, STEP_IDS)).encode())
            key = f"{kind}, {rate:g}, {seed}, {args.seconds:g} s, {settings:08x}"
            run: dict[str, Any] = runs.get(key, partial(train, kind, rate, seed, args.seconds))
            print(f"{key}: {near(run):.3f} after {run['steps']} steps", flush=True)
            return run

        rate = timed.bracketed(RATES, lambda rate: -near(run_of(rate, 0)))
        each = [run_of(rate, seed) for seed in SEEDS]
        table[kind] = {"rate": rate, "parameters": each[0]["parameters"], "steps": [run["steps"] for run in each]}
        for what in (*WHATS, CHANCE):
            table[kind][what] = {str(n): [run[what][str(n)] for run in each] for n in LENGTHS}
        timed.write_rows(args.out / "planted-motif.json", table)
        plot(table, args.out / "planted-motif.png")
    print(f"{args.out}: planted-motif.json and planted-motif.png")


if __name__ == "__main__":
    with in_one_line():
        main()
