"""A planted motif: eight notes return after L ids of other music. Which kinds of model find them again, and how far?

    OMP_NUM_THREADS=1 python studies/planted_motif.py --out outputs/planted   # resumes; some ten hours of a core

A piece in the performance encoding is K ids of other notes, a motif of eight notes, L ids of other notes, and the motif
again. It returns as it was, or transposed by up to five semitones: each is a task of its own, with its own trainings. A
louder velocity comes before both, so a model knows when to remember. All notes are drawn at random, one after the
other, so only memory predicts the return. Only the return is trained, after its first note.

Nothing but memory helps: K and L are drawn uniformly from whole notes, K up to 90 and L up to 447. One in ten of either
is held out, and no training has it. L goes on beyond training until a kind has less than half, up to 16,380.

All kinds have the same curriculum, since without one most learn nothing: two notes at once, then more, then further
away, as soon as three of four pitches are right (`STAGES`). All train for as many seconds of a core: each step counts
those of `costs.json` (`step_costs.py`), beside those of an LSTM. Runs without `cpu_s` are older, and were timed.

The figure is the share of right pitches in the second half of the return, each guessed after the true notes before it.
The first half has said which motif it is and how far it moved. A model that copies without transposing has 1 and 0.
Chance is the share where another motif came first. The shares of right note lengths are kept beside them.

The rule that chooses optimizer and rate, for each kind and task: of AdamW and Muon with `RATES` the one with the most
right pitches after random seed 0, over `TRAINED`. Where that is the lowest or highest rate so far of its optimizer,
half or twice the rate is tried too. The table has `SEEDS` other random seeds with it.

Three ways in which set-up alone could make a difference between kinds, and what is measured against each:
- time: a CPU second is more steps for an LSTM. A kind with less than `WEAK` right pitches trains once more, the first
  of `SEEDS` with `LONGER` times the seconds, which is more steps than any other kind has;
- the range of training: lengths and places that no training has, and those beyond, are columns of their own;
- the rate: where the best is at an edge of what was tried, the next is tried too. All trials are kept.
Size is not varied: two layers, some 190 thousand parameters. Neither is the louder velocity that announces a motif.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any
from zlib import crc32

import numpy as np
import timed
import torch
import torch.nn.functional as F
from motif_plot import plot
from shared import options
from step_costs import OPTIMIZERS, Costs

from musictx.config.mistakes import in_one_line
from musictx.model.build import build_model, model_config
from musictx.system import processor
from musictx.terminal import say
from musictx.tokenizers import build_tokenizer

VOCAB = build_tokenizer("performance").vocab
NOTES, PITCHES, TIMES, FURTHEST = 8, (48, 73), (10, 20, 30, 40), 5
TASKS = {"as it was": False, "transposed": True}
STAGES = [(notes, 0, 0) for notes in (2, 4, 6, NOTES)]  # notes of the motif, most of L, most of K
STAGES += [(NOTES, *most) for most in ((0, 9), (3, 15), (9, 30), (21, 45), (33, 60))]
STAGES += [(NOTES, length, 90) for length in (63, 129, 255, 447)]
PASSED, LOOK = 0.75, 50  # right pitches that end a stage; steps from look to look
TRAINED, UNSEEN = (9, 33, 99, 192, 300, 447), (21, 51, 111, 201, 291, 441)  # L
FAR = (600, 1023, 2049, 4095, 8190, 16380)
OFFSETS, AT = (0, 30, 51, 90, 300, 900), 192  # K where L is `AT`; training has the first two and 90
STEP_IDS, SECONDS = 2048, 120.0  # ids a step, seconds of a training
COST_AT = (16, 32, 64, 128, 256, 512, 513, 588)  # ids of a piece; above 512 three of them are a step
LSTM_STEP_S = 0.0214  # on the core that timed the older runs: their LSTMs took 5,600 steps in 120 s
SCORED = {"near": 64, "far": 16}  # pieces of a length; far: beyond 1,023
RATES, SEEDS = (1e-3, 2e-3, 4e-3), (1, 2, 3, 4, 5)
WEAK, LONGER = 0.9, 4  # mean of right pitches over `TRAINED` and `SEEDS`; times the seconds
WIDTH: dict[str, Any] = {"d_model": 96, "n_layers": 2, "n_heads": 4, "d_ff": 192, "dropout": 0.0, "max_distance": 512}
CELLS: dict[str, Any] = {"n_layers": 2, "dropout": 0.0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # 186 to 196 thousand parameters; learned 249, a table 286
    "LSTM": ("recurrent", CELLS | {"d_model": 96}),
    "LSTM, recall": ("recurrent", CELLS | {"d_model": 90, "recall": True, "d_attention": 64, "window": 20000}),
    "table": ("transformer", WIDTH | {"position": "relative"}),
    "Fourier": ("transformer", WIDTH | {"position": "relative_fourier"}),
    "RoPE": ("transformer", WIDTH | {"position": "rope"}),
    "sines": ("transformer", WIDTH | {"position": "sinusoidal"}),
    "learned": ("transformer", WIDTH | {"position": "learned", "max_positions": 640}),
    "no position": ("transformer", WIDTH | {"position": "none"}),
}


def held_out(ids: int) -> bool:
    """Whether no training has this K or L: one in ten."""
    return ids // 3 % 10 == 7


def drawn(most: int, rng: np.random.Generator) -> int:
    """A K or L of training: whole notes, up to so many ids."""
    allowed = [ids for ids in range(0, most + 1, 3) if not held_out(ids)]
    return int(rng.choice(allowed))


def notes_of(pitch: np.ndarray, time: np.ndarray) -> np.ndarray:
    """(…, N) pitches and steps of 10 ms -> (…, 3 N) ids: each note begins, lasts and ends."""
    kinds = VOCAB.id("NOTE_ON", 0) + pitch, VOCAB.id("TIME_SHIFT", 1) - 1 + time, VOCAB.id("NOTE_OFF", 0) + pitch
    return np.stack(kinds, -1).reshape(*pitch.shape[:-1], -1)


def others(n: int, notes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pitches and times (n, notes) that nothing predicts."""
    return rng.integers(*PITCHES, (n, notes)), rng.choice(TIMES, (n, notes))


def pieces(
    n: int,
    length: int,
    offset: int,
    rng: np.random.Generator,
    transposed: bool = False,
    notes: int = NOTES,
    stranger: bool = False,
) -> np.ndarray:
    """(n, T) ids of pieces whose motif begins after `offset` ids and returns after `length`; `stranger`: another motif
    came first."""
    pitch, time = others(n, notes, rng)
    moved = rng.integers(1, FURTHEST + 1, (n, 1)) * rng.choice((-1, 1), (n, 1)) * transposed
    first = notes_of(*others(n, notes, rng)) if stranger else notes_of(pitch, time)
    before, between = (notes_of(*others(n, ids // 3, rng)) for ids in (offset, length))
    bos, loud, soft = (np.full((n, 1), x) for x in (VOCAB.bos, VOCAB.id("VELOCITY", 28), VOCAB.id("VELOCITY", 16)))
    return np.concatenate([bos, before, loud, first, soft, between, loud, notes_of(pitch + moved, time)], 1)


def step_loss(model: Any, ids: torch.Tensor, notes: int) -> torch.Tensor:
    """The mean loss of the return's ids, after its first note."""
    logits = model(ids[:, :-1])[:, -3 * (notes - 1) :]
    return F.cross_entropy(logits.flatten(0, 1), ids[:, -3 * (notes - 1) :].flatten())


@torch.no_grad()
def right(model: Any, ids: torch.Tensor, notes: int = NOTES) -> tuple[float, float] | None:
    """The shares of right pitches and of right note lengths in the second half of the returns; None where the model has
    too few positions."""
    half, rows = 3 * (notes - notes // 2), max(1, 20_000 // ids.shape[1])
    shares = []
    for part in ids.split(rows):
        if (logits := timed.within_positions(partial(model, part[:, :-1]))) is None:
            return None
        same = (logits[:, -half:].argmax(-1) == part[:, -half:]).unflatten(1, (-1, 3))  # (n, notes, 3)
        shares.append(same[..., :2].float().mean(1))
    pitch, time = torch.cat(shares).mean(0).tolist()
    return pitch, time


def accuracy(
    model: Any, task: str, length: int, offset: int | None, seed: int, stranger: bool = False
) -> tuple[float, float] | None:
    """`right` of new pieces, the same for all models; offset None: each has its own, of the range of training."""
    rng = np.random.default_rng([seed, 2, length, offset or 0, stranger])
    n, rows = SCORED["near" if length <= FAR[1] else "far"], []
    for _ in range(n // 4):
        begins = 3 * int(rng.integers(0, STAGES[-1][2] // 3 + 1)) if offset is None else offset
        ids = torch.from_numpy(pieces(4, length, begins, rng, TASKS[task], stranger=stranger))
        rows.append(right(model, ids))
    if None in rows:
        return None
    pitch, time = np.mean(rows, 0).tolist()  # type: ignore[arg-type] # none is None
    return pitch, time


class Curriculum:
    """The loss of each step, of pieces as the stage has them; one step in five is of an earlier stage."""

    def __init__(self, model: Any, task: str, seed: int) -> None:
        self.model, self.task, self.rng = model, task, np.random.default_rng([seed, 1])
        self.stage, self.steps, self.length = 0, 0, 0  # ids of a piece of the last step
        self.passed: list[int] = []  # steps

    def drawn(self, stage: int, rows: int | None = None) -> tuple[torch.Tensor, int]:
        """Pieces of a stage, and how many notes their motif has; `rows` None: as many as a step has."""
        notes, longest, latest = STAGES[stage]
        length, offset = drawn(longest, self.rng), drawn(latest, self.rng)
        rows = rows or STEP_IDS // (length + offset + 6 * notes + 4)
        return torch.from_numpy(pieces(rows, length, offset, self.rng, TASKS[self.task], notes)), notes

    def loss(self) -> torch.Tensor:
        if self.steps and self.steps % LOOK == 0 and self.stage < len(STAGES) - 1:
            looks = [right(self.model, *self.drawn(self.stage, 16)) for _ in range(4)]
            if np.mean([look[0] for look in looks if look]) > PASSED:
                self.stage += 1
                self.passed.append(self.steps)
        self.steps += 1
        earlier = self.stage and self.rng.random() < 0.2
        ids, notes = self.drawn(int(self.rng.integers(self.stage + 1)) if earlier else self.stage)
        self.length = ids.shape[1]
        return step_loss(self.model, ids, notes)

    def shares(self, cost: Callable[[int], float], seconds: float) -> Iterator[float]:
        """How much of the seconds is over, before each step; `cost` are those of a step with so many ids a piece."""
        over = 0.0
        while over < seconds:
            yield over / seconds
            over += cost(self.length)


def built(kind: str) -> Any:
    name, settings = KINDS[kind]
    return build_model(model_config(name, settings, vocab_size=VOCAB.size))


def gradients(model: Any, length: int) -> None:
    """What a step of pieces with so many ids computes."""
    ids = np.random.default_rng(0).integers(1, VOCAB.size, (STEP_IDS // length, length))
    step_loss(model, torch.from_numpy(ids), 2).backward()


def train(costs: Costs, kind: str, task: str, optimizer: str, rate: float, seed: int, seconds: float) -> dict[str, Any]:
    """What one model can after so much time: right pitches and note lengths by L, by K, and by chance."""
    torch.manual_seed(seed)
    model = built(kind)
    curriculum = Curriculum(model, task, seed)
    pace = LSTM_STEP_S / costs.step_s("LSTM", "adamw", 128)
    shares = curriculum.shares(lambda length: pace * costs.step_s(kind, optimizer, length), seconds)
    began = process_time()
    steps = timed.learn(model, curriculum.loss, rate, shares, optimizer=optimizer)
    found: dict[str, Any] = {"cpu_s": round(process_time() - began, 1), "steps": steps}
    found |= {"stages passed at": curriculum.passed, "processor": str(processor())}
    found["parameters"] = sum(p.numel() for p in model.parameters())
    found["length"] = {n: accuracy(model, task, n, None, seed) for n in (*TRAINED, *UNSEEN)}
    for n in FAR:
        found["length"][n] = reached = accuracy(model, task, n, None, seed)
        if reached is None or reached[0] < 0.5:
            break
    found["offset"] = {k: accuracy(model, task, AT, k, seed) for k in OFFSETS}
    return found | {"chance": accuracy(model, task, AT, None, seed, stranger=True)}


def near(run: dict[str, Any]) -> float:
    """The mean share of right pitches over lengths of training."""
    return float(np.mean([run["length"][str(n)][0] for n in TRAINED]))


def chosen(known: Callable[[str, float, int], Any]) -> tuple[str, float]:
    """Optimizer and rate, by the rule above."""

    def cost(optimizer: str, rate: float) -> float:
        return -near(known(optimizer, rate, 0))

    best = {each: timed.bracketed(RATES, partial(cost, each)) for each in OPTIMIZERS}
    return min(best.items(), key=lambda each: cost(*each))


def run_of(
    runs: timed.Runs, costs: Costs, kind: str, task: str, seconds: float, optimizer: str, rate: float, seed: int
) -> Any:
    """One run, made or known."""
    settings = crc32(repr((KINDS[kind], STAGES, STEP_IDS, TRAINED, UNSEEN, FAR, OFFSETS)).encode())
    key = f"{kind}, {task}, {optimizer}, {rate:g}, {seed}, {seconds:g} s, {settings:08x}"
    run = runs.get(key, partial(train, costs, kind, task, optimizer, rate, seed, seconds))
    say(f"{key}: {near(run):.3f}, {len(run['stages passed at'])} stages, {run['steps']} steps", flush=True)
    return run


def row_of(known: Callable[[float], Callable[[str, float, int], Any]], seconds: float) -> dict[str, Any]:
    """A kind and its task in the table: by `SEEDS`, each with what was chosen; `known(seconds)(optimizer, rate, seed)`
    is a run."""
    optimizer, rate = chosen(known(seconds))
    each = [known(seconds)(optimizer, rate, seed) for seed in SEEDS]
    row = {"optimizer": optimizer, "rate": rate, "parameters": each[0]["parameters"]}
    row |= {name: [run[name] for run in each] for name in ("steps", "stages passed at", "processor", "chance")}
    for by in ("length", "offset"):
        most = max((run[by] for run in each), key=len)  # one seed may reach further
        row[by] = {n: [run[by].get(n) for run in each] for n in most}
    if np.mean([near(run) for run in each]) < WEAK:
        row["longer"] = known(LONGER * seconds)(optimizer, rate, SEEDS[0])
    return row


def main() -> None:
    parser = options(__doc__, "out", "seconds", out=Path("outputs/planted"), seconds=SECONDS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], help="default: all")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    costs = Costs(args.out / "costs.json", {kind: partial(built, kind) for kind in KINDS}, gradients, COST_AT)
    table: dict[str, dict[str, Any]] = {}
    for kind in args.kinds:  # a file of runs each: two processes can train different kinds
        runs = timed.Runs(args.out / f"{kind.replace(', ', '-').replace(' ', '-')}.json")
        made = partial(partial, run_of, runs, costs, kind)
        table[kind] = {task: row_of(partial(made, task), args.seconds) for task in TASKS}
    if len(args.kinds) == len(KINDS):  # else another process has the rest
        timed.write_rows(args.out / "motif.json", table)
        plot(table, args.out / "motif.png", TRAINED, STAGES[-1][1])
        say(f"{args.out}: motif.json and motif.png")


if __name__ == "__main__":
    with in_one_line():
        main()
